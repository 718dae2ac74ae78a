"""Large shares of an epoch, as files that RocksDB takes as they are.

A partition's new records lie behind all that it has, so they can be written as a sorted file beside
the database, which then takes it by its name: not through the write-ahead log and memory, and with
nothing left to write out later. Nobody sees them before the heads say so, as with any other record.

RocksDB is told to take a file only where it lies over nothing, also not over something removed:
then it needs no sequence number, and what the mark says of lost writes stays true. After an append
that failed half-way something may lie there; its repeat goes the other way.

RocksDB gets a second name of each file. The first one stays until the epoch is durable, so that
what the MANIFEST may name is there whatever fails (`lost_files.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from duolog.errors import DiskFull, NotWritten
from duolog.log.epoch_parts import Place
from duolog.log.lost_files import named_by_keys, remove_kept, second_name, unnamed_path
from duolog.log.model import TopicPartition
from duolog.log.open_files import is_too_many, too_many_open_files
from duolog.log.owner import sync_folder
from duolog.log.private import make_folder
from duolog.log.sorted_file import FileFailed, SortedFile
from duolog.log.store import Store

SHARE_BYTES: Final = 8 << 20
"""A share from here on goes into files. RocksDB does not join them by itself: `joining.py` does."""

_FOLDERS_OF_THE_LOG: Final = 3  # the writer's, staging, and the log's own
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
        self.paths: list[Path] = []
        self._open: SortedFile | None = None

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
            made = self.paths[-1]
            self.paths[-1] = made.rename(named_by_keys(made, current.first_key, current.last_key))
        except (OSError, FileFailed) as error:
            raise self._not_made(error) from error

    def hand_over(self, incarnation: int) -> bool:
        """Let the store have them all, durably, or none: False, when they lie over something."""
        try:
            for folder in (self._folder, *self._folder.parents[:_FOLDERS_OF_THE_LOG]):
                sync_folder(folder)
        except OSError as error:
            raise self._not_made(error) from error
        given = [second_name(path) for path in self.paths]
        try:
            return self._store.take_files("records", given, incarnation)
        finally:
            remove_kept([path for path in given if path not in self.paths])

    def remove(self) -> None:
        """What was handed over is durable, or nothing of it was: nobody needs them any more."""
        self._open = None
        remove_kept(self.paths)

    def _begun(self) -> SortedFile:
        make_folder(self._folder)
        self.paths.append(unnamed_path(self._folder))
        return self._store.begin_file("records", self.paths[-1])

    def _not_made(self, error: Exception) -> DiskFull | NotWritten:
        if "No space left" in str(error) or "Disk quota exceeded" in str(error):
            return DiskFull(
                f"The disk of {self._folder} is full: the records could not be made ready there. "
                "Nothing of the write was kept; free some space and send it again."
            )
        if is_too_many(error):
            return NotWritten(f"{too_many_open_files('The records could not be made ready')}")
        return NotWritten(
            f"The records could not be made ready in {self._folder} ({error}). Nothing of the "
            "write was kept; look at the disk and send it again."
        )
