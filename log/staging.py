"""Where tasks stage parts, and how parts that nobody needs any more are swept.

    staging/<hash of the writer>/<epoch>/<uuid>.part

Between processes on one disk a staged file is named by its path; over the wire only by what is
below `staging/`, which is resolved inside the log's own folder and nowhere else.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from duolog.errors import DamagedPart, DiskFull, DuologError, InvalidRequest, NotWritten
from duolog.log.model import Writer
from duolog.log.open_files import is_too_many, too_many_open_files
from duolog.log.private import make_folder

ABANDONED_MS = 7 * 24 * 3600 * 1000
REPEATED_MS = 3600 * 1000
_NAME = re.compile(r"[0-9a-f]{24}/(0|[1-9][0-9]{0,18})/[0-9a-f]{32}\.part")


class StagedFile(Protocol):
    """A file that a task writes. To be finished or aborted."""

    def write(self, content: bytes) -> object: ...
    def finish(self) -> str:
        """Complete it; how it is named from now on."""

    def abort(self) -> None:
        """Throw it away, finished or not."""


class StagingPlace(Protocol):
    """Takes what the tasks of one epoch stage. Picklable; needs only the standard library.

    `LogAccess.staging` makes one. The log removes what is in it once the epoch is committed.
    """

    def at(self, epoch: int) -> StagingPlace:
        """The same writer's place for another epoch."""

    def begin(self) -> StagedFile: ...
    def read(self, name: str) -> bytes:
        """A finished file, whole; DamagedPart when it is not there."""

    def remove(self, name: str) -> None:
        """Remove a finished file. One that is gone already is no mistake."""

    def remove_writer(self) -> None:
        """Remove all that this writer has staged, in every epoch."""


@dataclass(frozen=True, slots=True)
class LocalStaging:
    """A folder that tasks and the owner of the log both see."""

    folder: Path

    def at(self, epoch: int) -> LocalStaging:
        return LocalStaging(self.folder.parent / str(epoch))

    def begin(self) -> StagedFile:
        path = self.folder / f"{uuid.uuid4().hex}.part"
        try:
            return _LocalFile(path)
        except OSError as error:
            raise not_staged(path, error) from error

    def read(self, name: str) -> bytes:
        try:
            return Path(name).read_bytes()
        except OSError as error:
            if is_too_many(error):
                raise too_many_open_files(f"The staged file {name} cannot be read") from error
            raise DamagedPart(
                f"The staged file {name} cannot be read ({error.strerror}). The staging folder "
                "must be the same for tasks, driver and the owner of the log."
            ) from error

    def remove(self, name: str) -> None:
        Path(name).unlink(missing_ok=True)

    def remove_writer(self) -> None:
        remove_parts(self.folder.parent)


class _LocalFile:
    def __init__(self, path: Path) -> None:
        make_folder(path.parent)
        self._path = path
        self._content = path.open("xb")

    def write(self, content: bytes) -> object:
        try:
            return self._content.write(content)
        except OSError as error:
            raise not_staged(self._path, error) from error

    def finish(self) -> str:
        try:
            self._content.close()
        except OSError as error:
            raise not_staged(self._path, error) from error
        return os.fspath(self._path)

    def abort(self) -> None:
        try:
            self._content.close()
        except OSError:  # closing writes out what is buffered, which may be what failed before
            pass
        finally:
            self._path.unlink(missing_ok=True)


def not_staged(path: Path, error: OSError) -> DuologError:
    """What to tell of a file that could not be staged."""
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return DiskFull(
            f"The disk of {path.parent} is full: a part could not be staged there. Nothing of the "
            "write was committed; free some space and run it again."
        )
    if is_too_many(error):
        return NotWritten(f"{too_many_open_files(f'A part could not be staged as {path}')}")
    return NotWritten(
        f"A part could not be staged as {path}: {error.strerror}. Nothing of the write was "
        "committed; look at the folder and its disk, and run it again."
    )


def staging_folder(log_folder: Path, writer: Writer, epoch: int) -> Path:
    """The folder for the parts of one epoch."""
    return _writer_folder(log_folder, str(writer)) / str(epoch)


def remove_parts(writer_folder: Path) -> None:
    """Remove all that a writer has staged. What was handed over of it stays: so long as the store
    is in doubt, it may be needed to open the log again (`lost_files.py`).
    """
    for part in writer_folder.glob("*/*"):
        if part.suffix not in {".sst", ".given"}:
            with suppress(OSError):
                part.unlink()
    for folder in (*writer_folder.glob("*"), writer_folder):
        with suppress(OSError):  # something is in it
            folder.rmdir()


def epoch_name(writer: Writer, epoch: int) -> str:
    """The folder of an epoch, below `staging/`."""
    return f"{_hash(str(writer))}/{epoch}"


def staged_name(log_folder: Path, path: str) -> str:
    """A staged file's name below `staging/`; InvalidRequest for what lies elsewhere."""
    try:
        name = Path(path).relative_to(log_folder / "staging").as_posix()
    except ValueError:
        raise InvalidRequest(
            f"The part {path} was not staged in {log_folder / 'staging'}. Stage parts in the place "
            "that the log gives for their epoch."
        ) from None
    return check_staged_name(name)


def check_staged_name(name: object) -> str:
    """Return a name below `staging/`, or refuse what is none."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidRequest(
            f"{str(name)[:100]!r} is no name of a staged part: it must be "
            "<24 hex digits>/<epoch>/<32 hex digits>.part."
        )
    return name


def staged_path(log_folder: Path, name: object) -> Path:
    """The file of a staged part, inside the log's staging folder and not behind a link."""
    path = log_folder / "staging" / check_staged_name(name)
    if any(place.is_symlink() for place in (path, *path.parents[:3])):
        raise InvalidRequest(
            f"The staged part {name} lies behind a symbolic link, which is not followed. Stage "
            "parts as files."
        )
    return path


def sweep(log_folder: Path, writer: str, upto_epoch: int) -> int:
    """Remove the parts of a writer's epochs up to a committed one; how many folders went.

    The epoch is durable: what cannot be removed now goes another time, and is nobody's error.
    """
    try:
        done = [
            epoch
            for epoch in _writer_folder(log_folder, writer).iterdir()
            if epoch.name.isdigit() and int(epoch.name) <= upto_epoch
        ]
    except OSError:
        return 0
    for epoch in done:
        shutil.rmtree(epoch, ignore_errors=True)
    return len(done)


def sweep_all(log_folder: Path, committed: Mapping[str, int], now_ms: int) -> int:
    """Remove what earlier owners committed and did not come to remove.

    A writer may be about to send its last epoch again, and needs what it stages for that: such
    files go when nobody has touched them for an hour. The repeat itself removes them at once.

    Also what writers left that never committed anything and have not touched it for a week: batch
    jobs without a name that were killed. Nobody else would ever remove it.

    The last epochs are read only of writers that have a folder.
    """
    staging = log_folder / "staging"
    folders = {folder.name: folder for folder in staging.iterdir()} if staging.is_dir() else {}
    if not folders:
        return 0
    known = {name: writer for writer in committed if (name := _hash(writer)) in folders}
    swept = 0
    for name, folder in folders.items():
        writer = known.get(name)
        epoch = None if writer is None else committed.get(writer)
        if writer is not None and epoch is not None:
            swept += _sweep_known(log_folder, writer, epoch, now_ms)
        elif now_ms - _last_touched_ms(folder) > ABANDONED_MS:
            shutil.rmtree(folder, ignore_errors=True)
            swept += 1
    return swept


def _sweep_known(log_folder: Path, writer: str, epoch: int, now_ms: int) -> int:
    folder = _writer_folder(log_folder, writer)
    try:
        is_old = now_ms - _modified_ms(folder) > REPEATED_MS
    except OSError:  # somebody else is removing it
        return 0
    swept = sweep(log_folder, writer, epoch - 1)
    last = folder / str(epoch)
    if last.is_dir() and now_ms - _last_touched_ms(last) > REPEATED_MS:
        swept += sweep(log_folder, writer, epoch)
    if is_old:
        with suppress(OSError):  # something is in it
            folder.rmdir()
    return swept


def _last_touched_ms(folder: Path) -> int:
    try:
        return max(_modified_ms(path) for path in (folder, *folder.rglob("*")))
    except OSError:  # somebody else is removing it
        return 0


def _modified_ms(path: Path) -> int:
    return path.stat().st_mtime_ns // 1_000_000


def _writer_folder(log_folder: Path, writer: str) -> Path:
    return log_folder / "staging" / _hash(writer)


def _hash(writer: str) -> str:
    return hashlib.sha256(writer.encode()).hexdigest()[:24]
