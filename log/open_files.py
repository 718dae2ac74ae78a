"""How many files this process may have open, and how many of them RocksDB gets.

RocksDB keeps a file open for each table that it has read. Without a limit, a log of some gigabytes
takes all that a process may have, and then nothing opens any more: no table, no socket, no part.
"""

from __future__ import annotations

import errno
import resource
from contextlib import suppress
from typing import Final

from duolog.errors import TooManyOpenFiles

_WANTED: Final = 65_536  # more than that helps nobody, and a process may count its descriptors
_SHARE: Final = 8  # of all; a host gives three quarters to clients
_FEWEST_TABLES: Final = 32
_MOST_TABLES: Final = 8192
_TEXT: Final = "Too many open files"
_NUMBERS: Final = {errno.EMFILE, errno.ENFILE}


def allow_many_files() -> int:
    """Raise the soft limit towards the hard one; how many files may be open then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = files_within(soft, hard)
    if soft in {wanted, resource.RLIM_INFINITY}:
        return wanted
    with suppress(OSError, ValueError):  # some systems have a lower limit of their own
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    return soft


def files_within(soft: int, hard: int) -> int:
    """How many files may be open once a log was opened."""
    if resource.RLIM_INFINITY in {soft, hard}:
        return _WANTED if soft == resource.RLIM_INFINITY else max(soft, _WANTED)
    return max(soft, min(hard, _WANTED))


def tables_within(open_files: int) -> int:
    """How many tables RocksDB may keep open in a process that may have so many files open."""
    return min(max(open_files // _SHARE, _FEWEST_TABLES), _MOST_TABLES)


def is_too_many(error: BaseException | str) -> bool:
    """Whether something failed because no more files may be open."""
    return (isinstance(error, OSError) and error.errno in _NUMBERS) or _TEXT in str(error)


def too_many_open_files(what: str) -> TooManyOpenFiles:
    """What to tell of something that failed because of that."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return TooManyOpenFiles(
        f"{what}: this process has too many files open (it may have {_shown(soft)}, and at most "
        f"{_shown(hard)} with `ulimit -n`). Nothing is damaged. Close what is not needed, or raise "
        "the limit (`ulimit -Hn`, LimitNOFILE= of systemd, --ulimit nofile= of Docker), and try "
        "again."
    )


def _shown(limit: int) -> str:
    return "any number" if limit == resource.RLIM_INFINITY else f"{limit:,}"
