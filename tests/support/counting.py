"""A log that counts what is read of it."""

from __future__ import annotations

from typing import Any

from duolog.log.fetched import Fetched


class CountingLog:
    """Passes everything on. `read` are the records that were fetched, by partition and offset."""

    def __init__(self, log: Any) -> None:
        self._log = log
        self.read: list[tuple[int, int]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def fetch(self, *arguments: Any, **limits: Any) -> Fetched:
        fetched: Fetched = self._log.fetch(*arguments, **limits)
        for batch in fetched.batches:
            offsets = range(batch.base_offset, batch.next_offset)
            self.read += [(fetched.partition, offset) for offset in offsets]
        return fetched
