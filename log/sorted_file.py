"""One file in RocksDB's own format, written outside the database."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import rocksdict


class FileFailed(Exception):
    """The file could not be written. It never leaves the log."""


class SortedFile:
    """Takes ascending keys. Complete and durable once it is finished."""

    def __init__(self, path: Path, options: Any) -> None:
        self._writer = rocksdict.SstFileWriter(options)
        self.size_bytes = 0
        self.first_key = self.last_key = b""
        try:
            self._writer.open(str(path))
        except Exception as error:  # rocksdict raises bare Exception
            raise FileFailed(error) from error

    def put(self, key: bytes, value: bytes) -> None:
        try:
            self._writer[key] = value
        except Exception as error:
            raise FileFailed(error) from error
        self.first_key = self.first_key or key
        self.last_key = key
        self.size_bytes += len(key) + len(value)

    def finish(self) -> None:
        try:
            self._writer.finish()
        except Exception as error:
            raise FileFailed(error) from error
