"""Files from one folder into another, durably."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from duolog.errors import DiskFull, DuologError, NotABackup, UnsupportedLocation
from duolog.log.owner import sync_folder

_CHUNK_BYTES: Final = 4 << 20
_NOT_LINKED: Final = {errno.EXDEV, errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.EACCES}
_NO_ROOM: Final = {errno.ENOSPC, errno.EDQUOT}
_LEFT_OUT: Final = {"LOCK"}  # RocksDB's own, and a LOG that nobody needs
_NEVER_CHANGED: Final = ".sst"


def files_in(folder: Path, pieces: Iterable[str]) -> tuple[str, ...]:
    """The files of these pieces of a folder, by their paths in it. Links are not followed."""
    found: list[str] = []
    for piece in pieces:
        path = folder / piece
        if path.is_dir() and not path.is_symlink():
            found += [
                f"{piece}/{entry.name}"
                for entry in sorted(path.iterdir())
                if entry.is_file()
                and not entry.is_symlink()
                and entry.name not in _LEFT_OUT
                and not entry.name.startswith("LOG")
            ]
        elif path.is_file() and not path.is_symlink():
            found.append(piece)
    return tuple(found)


def copy_files(
    source: Path,
    target: Path,
    files: Sequence[str],
    advance: Callable[[int], object],
    *,
    may_link: bool = False,
) -> int:
    """Copy them into a folder, made when it is not there; their bytes. Durable on return.

    What RocksDB never changes may be linked where both are on one file system.
    """
    size = 0
    try:
        for folder in sorted({target, *((target / file).parent for file in files)}):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for file in files:
            is_linked = may_link and file.endswith(_NEVER_CHANGED)
            if is_linked and _link(source / file, target / file):
                copied = (target / file).stat().st_size
                advance(copied)
            else:
                copied = _copy(source / file, target / file, advance)
            size += copied
        for folder in {target, *((target / file).parent for file in files)}:
            sync_folder(folder)
    except FileNotFoundError as error:
        raise NotABackup(
            f"{error.filename} went away while it was copied: another backup of the same log has "
            "begun. Begin anew when that one has ended."
        ) from error
    except OSError as error:
        raise not_copied(target, error) from error
    return size


def not_copied(target: Path, error: OSError) -> DuologError:
    """What to tell of a copy that could not be made."""
    if error.errno in _NO_ROOM:
        return DiskFull(
            f"The disk of {target} is full. Free some space, remove what was begun there, and "
            "begin anew."
        )
    return UnsupportedLocation(
        f"{error.filename or 'A file'} cannot be copied to {target}: {error.strerror}. Look at the "
        "disk, remove what was begun there, and begin anew."
    )


def _link(source: Path, target: Path) -> bool:
    try:
        target.hardlink_to(source)
    except OSError as error:
        if error.errno not in _NOT_LINKED:
            raise
        return False
    return True


def _copy(source: Path, target: Path, advance: Callable[[int], object]) -> int:
    size = 0
    with source.open("rb") as read, target.open("xb") as written:
        os.fchmod(written.fileno(), 0o600)
        while chunk := read.read(_CHUNK_BYTES):
            written.write(chunk)
            size += len(chunk)
            advance(len(chunk))
        written.flush()
        os.fsync(written.fileno())
    return size
