"""Large shares of an epoch, as files that RocksDB takes as they are.

A partition's new records lie behind all that it has, so they can be written as a sorted file beside
the database, which then takes it by its name: not through the write-ahead log and memory, and with
nothing left to write out later. Nobody sees them before the heads say so, as with any other record.

RocksDB is told to take a file only where it lies over nothing, also not over something removed:
then it needs no sequence number, and what the mark says of lost writes stays true. After an append
that failed half-way something may lie there; its repeat goes the other way.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from duolog.errors import DiskFull, NotWritten
from duolog.log.epoch_parts import Place
from duolog.log.model import TopicPartition
from duolog.log.sorted_file import FileFailed, SortedFile
from duolog.log.store import Store

SHARE_BYTES: Final = 8 << 20
"""A share from here on goes into files. RocksDB never joins them, and opens all that there are."""

_FILE_BYTES = 64 << 20  # at most, or a batch more; as large as those that RocksDB makes


def large_shares(places: Iterable[Place]) -> dict[TopicPartition, list[Place]]:
    """The batches of those partitions that get enough of them, in their order."""
    shares: dict[TopicPartition, list[Place]] = {}
    for place in places:
        shares.setdefault(place.where, []).append(place)
    return {
        where: share
        for where, share in shares.items()
        if sum(place.staged.length for place in share) >= SHARE_BYTES
    }


class RecordFiles:
    """Files that are written one after the other, and then handed over at once."""

    def __init__(self, store: Store, folder: Path) -> None:
        self._store = store
        self._folder = folder
        self._paths: list[Path] = []
        self._open: SortedFile | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Remove what was not taken."""
        self._open = None
        for path in self._paths:
            path.unlink(missing_ok=True)

    def add(self, key: bytes, encoded: bytes) -> None:
        """Add a batch. Keys ascend until `end_share`."""
        try:
            if self._open is None:
                self._open = self._begun()
            self._open.put(key, encoded)
            if self._open.size_bytes >= _FILE_BYTES:
                self.end_share()
        except (OSError, FileFailed) as error:
            raise self._not_made(error) from error

    def end_share(self) -> None:
        """What follows has other keys."""
        current, self._open = self._open, None
        if current is None:
            return
        try:
            current.finish()
        except FileFailed as error:
            raise self._not_made(error) from error

    def hand_over(self, incarnation: int) -> bool:
        """Let the store have them all, durably, or none: False, when they lie over something."""
        return self._store.take_files("records", self._paths, incarnation)

    def _begun(self) -> SortedFile:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self._folder / f"{uuid.uuid4().hex}.sst"
        self._paths.append(path)
        return self._store.begin_file("records", path)

    def _not_made(self, error: Exception) -> DiskFull | NotWritten:
        if "No space left" in str(error) or "Disk quota exceeded" in str(error):
            return DiskFull(
                f"The disk of {self._folder} is full: the records could not be made ready there. "
                "Nothing of the write was kept; free some space and send it again."
            )
        return NotWritten(
            f"The records could not be made ready in {self._folder} ({error}). Nothing of the "
            "write was kept; look at the disk and send it again."
        )
