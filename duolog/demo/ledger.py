"""What a consumer has done: a line a record, written before it is acknowledged.

PARTITION OFFSET
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Self


class Ledger:
    """A consumer's own. What was written is there also after kill -9."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)

    def note(self, places: Iterable[tuple[int, int]]) -> None:
        """These partitions' offsets are done."""
        lines = "".join(f"{partition} {offset}\n" for partition, offset in places).encode()
        while lines:
            lines = lines[os.write(self._file, lines) :]

    def close(self) -> None:
        os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class LedgerReader:
    """Reads a ledger along, as far as it is written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_bytes = 0

    def more(self) -> Iterator[tuple[int, int]]:
        """What was done since the last look."""
        try:
            with self._path.open("rb") as ledger:
                ledger.seek(self._read_bytes)
                lines = ledger.read()
        except FileNotFoundError:
            return
        whole = lines[: lines.rfind(b"\n") + 1]
        self._read_bytes += len(whole)
        for line in whole.splitlines():
            partition, offset = line.split()
            yield int(partition), int(offset)
