"""Cuts off the end of a MANIFEST that a power loss has torn.

RocksDB syncs each record of its MANIFEST before it relies on it. If the power fails before that
sync, some pages of the last records may be on the disk and others not, and RocksDB then takes the
file for damaged. What those records would have said is not needed: the tables that a flush or a
compaction was made of, and the write-ahead logs, are removed only after the sync.

A record in the middle of the file that rots looks the same, and there the rest is needed. So the
file is cut only where everything is there without the rest, and a trial shows it: the write-ahead
logs that the kept records ask for, all that was durable by the mark, and a stored batch for each
entry of the index of times. Until then nothing of the database is changed.

RocksDB does not look so closely: it takes a record that seems to reach beyond the end of the file
for a torn one, also where a byte of its length has rotted, and opens without what follows it. So
lengths are looked at before RocksDB opens the database, and checksums if it refuses to.
"""

from __future__ import annotations

import errno
import os
import shutil
import struct
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from duolog.errors import DiskFull, NotWritten, WritesRefused
from duolog.log.keys import record_key_of_time
from duolog.log.manifest import (
    LOWEST_LEVEL,
    NeededLogs,
    Table,
    Unreadable,
    manifest_path,
    needed_logs,
    readable_length,
    tables_in,
)

TRIAL: Final = "trial"
_LINKED: Final = {".sst", ".log"}
_LEFT_OUT: Final = ("LOCK", "LOG")

OpenReadOnly = Callable[[Path], Any]
_FIRST_FRAGMENT: Final = struct.Struct("<4xHBQ")  # of a write-ahead log: length, kind, sequence


@dataclass(frozen=True, slots=True)
class TornManifest:
    """A MANIFEST of which only the beginning is as it was written."""

    path: Path
    content: bytes
    length: int

    @property
    def readable(self) -> bytes:
        return self.content[: self.length]

    def cut(self) -> None:
        """Remove what follows, durably."""
        try:
            with self.path.open("r+b") as manifest:
                manifest.truncate(self.length)
                os.fsync(manifest.fileno())
        except OSError as error:
            raise NotWritten(
                f"The end of {self.path}, which a power loss has torn, could not be cut off: "
                f"{error.strerror}. Look at the disk and open the log again: nothing of it is lost."
            ) from error


def find_torn_manifest(database: Path, *, checksums: bool) -> TornManifest | None:
    """The MANIFEST in use, if its end is not as it was written.

    Without `checksums` only an end that is cut off is found, or that is zero; RocksDB finds the
    others by itself.
    """
    try:
        path = manifest_path(database)
        content = path.read_bytes()
    except (Unreadable, OSError):
        return None  # there is none, or RocksDB says what is wrong
    if readable_length(content, checksums=checksums) == len(content):
        return None
    return TornManifest(path, content, readable_length(content, checksums=True))


def missing_without_end(
    database: Path, torn: TornManifest, open_read_only: OpenReadOnly, check: Callable[[Any], object]
) -> str | None:
    """What would be missing if the MANIFEST were cut; None if nothing is.

    Raises what opening such a database raises, and what `check` does; DiskFull and NotWritten where
    it cannot be tried.
    """
    try:
        needed = needed_logs(torn.readable)
        tables = tables_in(torn.readable, "records")
    except Unreadable as error:
        return f"what it says is not known ({error})"
    if needed is None:
        return "what is readable of it names no write-ahead log"
    if not _has_logs(database, needed):
        return f"write-ahead logs from {needed.oldest:06}.log on are gone"
    try:
        _make_trial(database, torn)
        opened = open_read_only(database.parent / TRIAL)
        try:
            check(opened)
            return None if _each_batch_is_there(opened, tables) else "records of it are missing"
        finally:
            opened.close()
    except OSError as error:
        raise _not_tried(torn, error) from error
    finally:
        remove_trial(database)


def remove_trial(database: Path) -> None:
    """Remove what a process that died has left of a trial."""
    trial = database.parent / TRIAL
    if trial.is_symlink() or trial.is_file():
        trial.unlink(missing_ok=True)
    else:
        shutil.rmtree(trial, ignore_errors=True)


def _has_logs(database: Path, needed: NeededLogs) -> bool:
    """Whether no log was removed that is needed. RocksDB removes the oldest one first."""
    if (database / f"{needed.oldest:06}.log").exists():
        return True
    if needed.recovered_sequence is None:
        return False
    sequences = (_first_sequence(log) for log in sorted(database.glob("*.log")))
    first = next((sequence for sequence in sequences if sequence is not None), None)
    if first is None:  # nothing was written since then, or it is gone
        return needed.last_sequence <= needed.recovered_sequence
    return first <= needed.recovered_sequence + 1


def _first_sequence(log: Path) -> int | None:
    """The sequence number that a write-ahead log begins with; None if nothing readable is in it."""
    with log.open("rb") as file:
        begin = file.read(_FIRST_FRAGMENT.size)
    if len(begin) < _FIRST_FRAGMENT.size:
        return None
    length, kind, sequence = _FIRST_FRAGMENT.unpack(begin)
    return int(sequence) if length and kind else None


def _make_trial(database: Path, torn: TornManifest) -> None:
    remove_trial(database)
    trial = database.parent / TRIAL
    trial.mkdir(mode=0o700)
    for path in database.iterdir():
        if path.name.startswith(_LEFT_OUT) or path.is_dir():
            continue
        if path.suffix in _LINKED:
            (trial / path.name).symlink_to(path.absolute())
        elif path.name == torn.path.name:
            (trial / path.name).write_bytes(torn.readable)
        else:
            shutil.copy(path, trial)


def _each_batch_is_there(opened: Any, tables: Sequence[Table]) -> bool:
    """Whether a batch is stored for each entry of the index of times. Both are in one order.

    Tables of the lowest level do not overlap, and a record that lies within one of them is in it:
    those need not be read, and are nearly all of a large log.
    """
    lowest = sorted((each.first_key, each.last_key) for each in tables
                    if each.level == LOWEST_LEVEL)  # fmt: skip
    begins = [first for first, _ in lowest]
    times, records = (opened.get_column_family(name).iter() for name in ("times", "records"))
    times.seek_to_first()
    while times.valid():
        wanted = record_key_of_time(times.key())
        at = bisect_right(begins, wanted) - 1
        if at < 0 or lowest[at][1] < wanted:
            records.seek(wanted)
            if not records.valid() or records.key() != wanted:
                return False
        times.next()
    times.status()
    return True


def _not_tried(torn: TornManifest, error: OSError) -> WritesRefused:
    told = (
        f"The end of {torn.path} is torn, and whether the log is whole without it cannot be tried: "
        f"{error.strerror or error}"
    )
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return DiskFull(f"{told}. Free some space and open it again; nothing was changed.")
    return NotWritten(f"{told}. Look at the disk and open it again; nothing was changed.")
