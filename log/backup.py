"""A consistent copy of a log that is in use.

RocksDB makes a checkpoint: links to its files, which it never changes, and copies of the few that
grow. That takes milliseconds and holds nobody up. What leaves the log's disk is copied from there,
when the log has long gone on.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from duolog.errors import (
    DamagedLog,
    DiskFull,
    DuologError,
    FolderNotEmpty,
    LogClosed,
    LogMoved,
    NotABackup,
    NotWritten,
    UnsupportedFormat,
    UnsupportedLocation,
)
from duolog.log.copying import copy_files, files_in, not_copied
from duolog.log.identity import FORMAT_FILE, read_format, write_format
from duolog.log.mark import Mark
from duolog.log.open_files import too_many_open_files
from duolog.log.owner import sync_folder
from duolog.log.private import make_folder
from duolog.log.state import State
from duolog.log.store import WriteFailed

CHECKPOINTS: Final = "checkpoints"
NOTE_FILE: Final = "backup.json"
_VERSION: Final = 1
_PIECES: Final = ("db", "mark")


@dataclass(frozen=True, slots=True)
class BackupNote:
    """What a backup says of itself."""

    log_id: str
    taken_ms: int
    version: int = _VERSION


def write_backup(state: State, folder: Path) -> Path:
    """Copy into a folder that is not there yet. Opened, the copy is a log of its own."""
    if folder.exists():
        raise UnsupportedLocation(f"{folder} is already there. Give the backup a new folder.")
    if folder.is_relative_to(state.folder):
        raise UnsupportedLocation(f"A backup of {state.folder} cannot lie inside it.")
    return _write(state, folder)


def write_checkpoint(state: State, note: BackupNote) -> str:
    """A copy inside the log's own folder, to be fetched from there; its name.

    There is one at a time: those of backups that were cut short go away.
    """
    checkpoints = state.folder / CHECKPOINTS
    shutil.rmtree(checkpoints, ignore_errors=True)
    folder = _write(state, checkpoints / uuid.uuid4().hex)
    (folder / NOTE_FILE).write_text(json.dumps(asdict(note)))
    return folder.name


def remove_checkpoints(log_folder: Path) -> None:
    """What was fetched is not needed any more."""
    shutil.rmtree(log_folder / CHECKPOINTS, ignore_errors=True)


def _write(state: State, folder: Path) -> Path:
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        make_folder(folder, exist_ok=False)
        sequence = _checkpoint(state, folder / "db")
        mark = Mark(folder / "mark")
        try:
            mark.read_or_create(is_new=True)
            mark.advance(sequence)
        finally:
            mark.close()
        write_format(folder)
        sync_folder(folder.parent)
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        for path in made[1:]:
            with suppress(OSError):
                path.rmdir()
        if isinstance(error, OSError):
            raise not_copied(folder, error) from error
        raise
    return folder


def _checkpoint(state: State, path: Path) -> int:
    """RocksDB makes no checkpoint after one of its own writes has failed, also where nobody was
    told of that yet. So the log is recovered then, as for a write.
    """
    if not state.store.in_doubt:
        try:
            return state.store.checkpoint(path)
        except WriteFailed as failure:
            if not state.store.in_doubt:
                raise _not_written(state, path.parent, failure) from failure
    _recover(state, path.parent)
    for left in path.parent.iterdir():  # of the first try
        shutil.rmtree(left)
    try:
        return state.store.checkpoint(path)
    except WriteFailed as failure:
        raise _not_written(state, path.parent, failure) from failure


def _recover(state: State, folder: Path) -> None:
    try:
        recovered = state.recover()
        reason = state.store.not_reopened_for
    except (LogClosed, LogMoved):
        raise
    except (DuologError, OSError) as error:
        recovered, reason = False, str(error)
    if not recovered:
        raise NotWritten(
            f"No backup of the log in {state.folder} could be written to {folder}, since an "
            f"earlier write failed and the log cannot be recovered yet ({reason}). Look at its "
            "disk and begin anew; reads go on."
        )


def _not_written(state: State, folder: Path, failure: WriteFailed) -> DuologError:
    told = f"No backup of the log in {state.folder} could be written to {folder}"
    if failure.damage:
        return DamagedLog(f"{told}, since the log is damaged ({failure}). Restore an older one.")
    if failure.disk_full:
        return DiskFull(f"{told}: a disk is full ({failure}). Free some space and begin anew.")
    if failure.too_many_files:
        return too_many_open_files(told)
    return NotWritten(f"{told} ({failure}). Look at the disks of both and begin anew.")


def fetch_checkpoint(
    log_folder: Path,
    name: str,
    target: Path,
    advance: Callable[[int], object],
    *,
    may_link: bool = False,
) -> int:
    """Bring a checkpoint to the folder of a backup; its bytes.

    FORMAT comes last: without it, nobody takes the folder for a backup.
    """
    checkpoint = log_folder / CHECKPOINTS / name
    files = files_in(checkpoint, (*_PIECES, NOTE_FILE))
    size = copy_files(checkpoint, target, files, advance, may_link=may_link)
    write_format(target)
    sync_folder(target.parent)
    return size


def check_target(log_folder: Path, target: Path) -> None:
    """Refuse a place that a backup cannot have."""
    real = Path(os.path.realpath(target))
    if real.is_relative_to(os.path.realpath(log_folder)):
        raise UnsupportedLocation(f"A backup of {log_folder} cannot lie inside it.")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        begun = target.is_dir() and not (target / FORMAT_FILE).exists()
        hint = " It may be a backup that was cut short: remove it then." if begun else ""
        raise FolderNotEmpty(f"{target} is not empty. Give the backup a new folder.{hint}")


def size_of(folder: Path) -> int:
    """How many bytes a backup, or a log that is not in use, takes."""
    return sum((folder / file).stat().st_size for file in files_in(folder, _PIECES))


def read_backup(source: Path) -> BackupNote | None:
    """What a backup says of itself; None for a copy of a log that says nothing.

    Refuses what is no backup, or was not finished, or comes from a newer Duolog.
    """
    if not source.is_dir():
        raise NotABackup(f"{source} is no folder. Give the folder of a backup.")
    missing = [name for name in (FORMAT_FILE, *_PIECES) if not (source / name).exists()]
    if missing:
        raise NotABackup(
            f"{source} is no finished backup: it has no {', '.join(missing)}. Give the folder that "
            "`duolog backup` has written to its end."
        )
    read_format(source)
    note = source / NOTE_FILE
    if not note.exists():
        return None
    try:
        fields = json.loads(note.read_text())
        version = int(fields["version"])
        if version <= _VERSION:
            return BackupNote(str(fields["log_id"]), int(fields["taken_ms"]), version)
    except (ValueError, KeyError, TypeError) as error:
        raise NotABackup(f"{note} cannot be read: {error}. Take another backup.") from error
    raise UnsupportedFormat(
        f"The backup in {source} has version {version}, this Duolog knows up to {_VERSION}. Use a "
        "newer Duolog."
    )


def copy_backup(source: Path, target: Path, advance: Callable[[int], object]) -> int:
    """Bring a backup to where it is looked at; its bytes. The log shares nothing with it then."""
    size = copy_files(source, target, files_in(source, _PIECES), advance)
    write_format(target)
    return size
