"""One owner at a time: an exclusive flock on `owner.lock`, taken before RocksDB is opened.

Not RocksDB's own lock: closing any descriptor of its LOCK file in the owner, as a backup or a copy
of the directory does, silently gives that one up. A flock stays with the descriptor that took it.
Process ids are shown to people but are never evidence: they mean nothing across containers.

An owner that is a host says in `host.json` where it can be asked. That is a hint: it is proved by
the `secret`, which only those can read who may open the log themselves.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import pwd
import re
import secrets
import socket
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from weakref import WeakSet

from duolog.clock import Clock
from duolog.errors import LogBusy, LogNotFound, RestoreUnfinished, UnsupportedLocation
from duolog.log.open_files import is_too_many, too_many_open_files
from duolog.log.private import opener

_FIRST_PAUSE_SECONDS = 0.001
_LONGEST_PAUSE_SECONDS = 0.05
_SECRET_BYTES = 32
_FOLDERS_INSIDE = ("db", "staging", "checkpoints", "restoring")
UNFINISHED = "restoring"
"""The folder in which a log is restored; as long as there is no FORMAT beside it, it is none."""


@dataclass(frozen=True, slots=True)
class HostHint:
    """What host.json says: where the log's host can be asked. A hint, proved by a handshake."""

    address: str
    log_id: str


class Ownership:
    """The right to open the log in a folder, held until it is released or the process ends."""

    def __init__(self, folder: Path, descriptor: int) -> None:
        self.folder = folder
        self._descriptor: int | None = descriptor
        _owned_here.add(self)

    def announce(self, hint: HostHint) -> None:
        """Say where the log's host can be asked."""
        written = self.folder / "host.json.new"
        written.unlink(missing_ok=True)
        with open(written, "x", opener=opener) as opened:
            json.dump(asdict(hint), opened)
        written.replace(self.folder / "host.json")

    def secret(self) -> str:
        """What the host and those who may read the log's folder know; made when there is none."""
        known = read_secret(self.folder)
        if known is not None:
            return known
        made = secrets.token_hex(_SECRET_BYTES)
        written = self.folder / "secret.new"
        written.unlink(missing_ok=True)
        descriptor = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            os.write(descriptor, made.encode())
        finally:
            os.close(descriptor)
        written.replace(self.folder / "secret")
        return made

    def close_to_others(self) -> None:
        """Also a folder that was there before, made by whoever with whatever rights: its files are
        the records. Once it is known to be a log. Where it is another user's, the folders inside
        are closed; see `open_to_others`.
        """
        if not _close(self.folder):
            for name in _FOLDERS_INSIDE:
                _close(self.folder / name)

    def is_in_place(self) -> bool:
        """Whether the folder that was locked is still the one at its path."""
        if self._descriptor is None:
            return False
        try:
            found = (self.folder / "owner.lock").stat()
            return os.path.samestat(found, os.fstat(self._descriptor))
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:  # nobody can say: a disk that fails is found by what is written
            return True

    def release(self) -> None:
        """Let the next one in."""
        if self._descriptor is not None:
            if self.is_in_place():
                (self.folder / "host.json").unlink(missing_ok=True)
            self._forget()

    def _forget(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _close(folder: Path) -> bool:
    """Whether it is closed to others now."""
    try:
        mode = stat.S_IMODE(folder.stat().st_mode)
        if mode & 0o077:
            folder.chmod(mode & ~0o077)
    except OSError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Exposure:
    """What others may do to a log, and what its owner can do about that."""

    found: str
    advice: str


def open_to_others(folder: Path) -> Exposure | None:
    """Whether others may rename and remove what is in a log's folder, since its user may not close
    it: as in a volume that belongs to root.
    """
    mode = stat.S_IMODE(folder.stat().st_mode)
    if not mode & 0o022 or mode & stat.S_ISVTX:
        return None
    return Exposure(
        f"{folder} belongs to {owner_of(folder)}, and other users may write into it (mode "
        f"{mode:04o}). They cannot read the records, but they can rename or remove them",
        f"Keep the log in a folder of its own inside, like {folder / 'log'}, or give the folder to "
        f"the log's user: chown {this_user()} {folder} && chmod 700 {folder}",
    )


def file_of_another(file: Path, folder: Path) -> UnsupportedLocation:
    """What to tell where the system refuses a file of the log in a folder."""
    user = this_user()
    return UnsupportedLocation(
        f"The log in {folder} cannot be used by {user}: {file} belongs to {owner_of(file)}, and "
        f"the system says: Permission denied. Nothing is damaged. As root, give all of it to one "
        f"user, and run Duolog as that one alone: chown -R {user} {folder}"
    )


def owner_of(path: Path) -> str:
    """The user whom a file belongs to."""
    try:
        return _user_name(path.stat().st_uid)
    except OSError:
        return "another user"


def this_user() -> str:
    return _user_name(os.geteuid())


def _user_name(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:  # as in containers
        return str(number)


_owned_here: WeakSet[Ownership] = WeakSet()


def _forget_all() -> None:
    """A forked child closes its copies of the locks; they stay with the parent's."""
    for ownership in tuple(_owned_here):
        ownership._forget()  # noqa: SLF001


os.register_at_fork(after_in_child=_forget_all)


def host_hint(folder: Path) -> HostHint | None:
    """Where the log's host may be asked, if one has said so."""
    try:
        fields = json.loads((folder / "host.json").read_text())
        return HostHint(str(fields["address"]), str(fields["log_id"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def read_secret(folder: Path) -> str | None:
    """The secret of a log's host; None when there is none, or others could have read it."""
    path = folder / "secret"
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LogBusy(
            f"{path} cannot be read ({error.strerror}), so the log's host cannot be asked. Run as "
            "the user whom the log belongs to, or give the host's url and a token."
        ) from error
    with os.fdopen(descriptor) as opened:
        text = opened.read(4 * _SECRET_BYTES)
        is_private = not stat.S_IMODE(os.fstat(descriptor).st_mode) & 0o077
    return text if is_private and re.fullmatch(f"[0-9a-f]{{{2 * _SECRET_BYTES}}}", text) else None


def take_ownership(
    folder: Path,
    *,
    wait_seconds: float,
    clock: Clock,
    create: bool = True,
    meanwhile: Callable[[], object] = lambda: None,
) -> Ownership:
    """Become the owner. Others that work for milliseconds are waited for, up to a deadline.

    `meanwhile` is called each time that somebody else is seen to own it, and may raise.
    """
    try:
        if not create and not (folder / "db").is_dir():
            if (folder / UNFINISHED).is_dir():
                raise unfinished(folder)
            raise LogNotFound(f"There is no log in {folder}. Check the path, or create one there.")
    except PermissionError as error:
        raise UnsupportedLocation(
            f"{folder} cannot be read by this user ({error.strerror}). Run as the user whom the "
            "log belongs to, or give its host's url and a token."
        ) from error
    _make_durably(folder)
    deadline = clock.monotonic() + wait_seconds
    pause = _FIRST_PAUSE_SECONDS
    while True:
        descriptor = _try_lock(folder)
        if descriptor is not None:
            with suppress(OSError):  # a full disk: it is only for the messages that others get
                _introduce(descriptor)
                (folder / "host.json").unlink(missing_ok=True)  # of a host that was killed
            return Ownership(folder, descriptor)
        meanwhile()
        if clock.monotonic() >= deadline:
            raise _busy(folder, wait_seconds)
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)


def unfinished(folder: Path) -> RestoreUnfinished:
    return RestoreUnfinished(
        f"A log was being restored into {folder}, and that has not come to its end. Run the same "
        "`duolog restore` again: it begins anew, in the same folder."
    )


def _make_durably(folder: Path) -> None:
    """Make a folder so that a power loss cannot take its name away."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise UnsupportedLocation(f"{folder} cannot be made: {error.strerror}.") from error
    for path in missing:
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _try_lock(folder: Path) -> int | None:
    path = folder / "owner.lock"
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if is_too_many(error):
            raise too_many_open_files(f"{path} cannot be opened") from error
        if isinstance(error, PermissionError) and path.exists():
            raise file_of_another(path, folder) from error
        raise UnsupportedLocation(
            f"{path} cannot be opened: {error.strerror}. The owner of a log needs to write there."
        ) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.stat(path).st_ino == os.fstat(descriptor).st_ino:  # noqa: PTH116 - not replaced
            return descriptor
    except BlockingIOError:
        pass
    except FileNotFoundError:
        pass  # the folder was removed in between
    except OSError as error:
        os.close(descriptor)
        if error.errno in {errno.ENOLCK, errno.ENOTSUP, errno.EINVAL}:
            raise UnsupportedLocation(
                f"The file system of {folder} has no locks ({error.strerror}). Use a local disk."
            ) from error
        raise
    os.close(descriptor)
    return None


def _introduce(descriptor: int) -> None:
    """Leave word for the message that others get."""
    words = json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode()
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, words, 0)


def _busy(folder: Path, waited_seconds: float) -> LogBusy:
    hint = host_hint(folder)
    if hint is not None:
        return LogBusy(
            f"The log in {folder} is owned by a host at {hint.address}. Ask it there, or stop it."
        )
    try:
        words = json.loads((folder / "owner.lock").read_text())
        holder = f"process {words['pid']} on {words['host']}"
    except (OSError, ValueError, KeyError, TypeError):
        holder = "another process"
    return LogBusy(
        f"The log in {folder} is held by {holder} and was not free within {waited_seconds:g} s. "
        "Close it there, or serve it by a bridge so that many can use it."
    )
