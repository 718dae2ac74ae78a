"""A log made anew from a backup: copied, read to its last byte, and only then a log."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from duolog.errors import DamagedLog, LogBusy
from duolog.log.backup import copy_backup, read_backup, size_of
from duolog.log.embedded import open_log
from duolog.log.options import LogOptions
from duolog.log.restoring import restoring
from duolog.log.whole import Whole

Begin = Callable[[str, int], Callable[[int], object]]


@dataclass(frozen=True, slots=True)
class RestoredBackup:
    """A log with an id of its own, and what it holds."""

    log_id: str
    copied_from: str | None
    whole: Whole
    mirrored_topics: tuple[str, ...]
    """Their mirrors belong to the log that this was copied from, and halt until that is settled."""


def restore_backup(source: Path, folder: Path, options: LogOptions, begin: Begin) -> RestoredBackup:
    """Make the log in a folder that is empty, or not there; all of it or nothing.

    `begin` is told of each step and of its bytes.
    """
    read_backup(source)
    with restoring(folder, options) as place, _not_in_use(source):
        size = size_of(source)
        place.check_room(size)
        copy_backup(source, place.work, begin("Copying", size))
        try:
            with open_log(place.work, create=False, options=options) as log:
                held = sum(part.bytes for topic in log.topics() for part in log.offsets(topic.id))
                whole = log.check_whole(begin("Reading", held))
                mirrored = tuple(sorted({mirror.topic for mirror in log.mirrors()}))
        except DamagedLog as error:
            raise DamagedLog(
                f"The backup in {source} is not whole, so nothing was restored. Take another one. "
                f"What was found: {error}"
            ) from error
        identity = place.finish()
    return RestoredBackup(identity.log_id, identity.copied_from, whole, mirrored)


@contextmanager
def _not_in_use(source: Path) -> Iterator[None]:
    """A log's own folder may be copied while nobody has it open; a backup has no lock."""
    try:
        lock = (source / "owner.lock").open("rb")
    except OSError:
        yield
        return
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LogBusy(
                f"{source} is a log that is in use. Make a backup of it with `duolog backup`, and "
                "restore that one."
            ) from None
        yield
