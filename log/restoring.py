"""A folder that becomes a log, wholly or not at all.

The log is made in a folder of its own inside, then its pieces are moved out and FORMAT is written:
that is the moment from which on it is one. Until then nobody else gets in, since the folder's lock
is held; and if this process dies, nobody takes what it left for a log. The next one begins anew.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from duolog.errors import DiskFull, FolderNotEmpty
from duolog.log.identity import FORMAT_FILE, Identity, rehome, write_format
from duolog.log.location import check_location
from duolog.log.mark import Mark
from duolog.log.options import LogOptions
from duolog.log.owner import UNFINISHED, sync_folder, take_ownership
from duolog.log.store import Store

_PIECES: Final = ("mark", "db")
_OURS: Final = {UNFINISHED, *_PIECES, "owner.lock", "host.json", "FORMAT.new"}


class Restoring:
    """The folder, and the one inside it in which the log is made."""

    def __init__(self, folder: Path, options: LogOptions) -> None:
        self.folder = folder
        self.work = folder / UNFINISHED
        self._options = options

    def check_room(self, size_bytes: int) -> None:
        """Refuse at once what would fill the disk."""
        free = shutil.disk_usage(self.folder).free
        if free - size_bytes < self._options.min_free_bytes:
            raise DiskFull(
                f"The disk of {self.folder} has {free:,} bytes free, and {size_bytes:,} are to be "
                "restored. Free some space, or take another disk; nothing was changed."
            )

    def finish(self) -> Identity:
        """It is a log from here on. The one inside has been closed."""
        fault = self._options.fault
        fault("restore.made")
        for piece in _PIECES:
            (self.work / piece).rename(self.folder / piece)
            fault("restore.moved_some")
        sync_folder(self.folder)
        mark = Mark(self.folder / "mark")
        try:
            store = Store(self.folder / "db", mark, self._options)
            store.open()
            try:
                identity = rehome(store, self.folder)
            finally:
                store.close()
        finally:
            mark.close()
        fault("restore.moved")
        write_format(self.folder)
        fault("restore.is_log")
        shutil.rmtree(self.work, ignore_errors=True)
        return identity


@contextmanager
def restoring(path: str | os.PathLike[str], options: LogOptions) -> Iterator[Restoring]:
    """Hold an empty folder, or one whose restore was cut short; nothing is left unless finished."""
    folder = check_location(path)
    was_there = folder.exists()
    _check_empty(folder)
    ownership = take_ownership(folder, wait_seconds=options.lock_wait_seconds, clock=options.clock)
    try:
        _check_empty(folder)
        _wipe(folder)
        restored = Restoring(folder, options)
        restored.work.mkdir(mode=0o700)
        sync_folder(folder)
        yield restored
    finally:
        if not (folder / FORMAT_FILE).exists():
            _wipe(folder)
            (folder / "owner.lock").unlink(missing_ok=True)
            ownership.release()
            if not was_there:
                with suppress(OSError):
                    folder.rmdir()
        else:
            ownership.release()


def _check_empty(folder: Path) -> None:
    if not folder.exists():
        return
    if (folder / FORMAT_FILE).exists():
        raise FolderNotEmpty(
            f"There is a log in {folder}. A restore never writes over one: give a new folder, or "
            "move the old one away."
        )
    names = {entry.name for entry in folder.iterdir()}
    is_begun = UNFINISHED in names
    strange = names - (_OURS if is_begun else {"owner.lock", "lost+found"}) - {"lost+found"}
    if strange:
        raise FolderNotEmpty(
            f"{folder} is not empty: it has {', '.join(sorted(strange)[:3])}. Give a new or an "
            "empty folder."
        )


def _wipe(folder: Path) -> None:
    """Remove what a restore has made. Its own folder last: it says whose the others are."""
    for piece in _PIECES:
        path = folder / piece
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    if (folder / UNFINISHED).exists():
        shutil.rmtree(folder / UNFINISHED)
