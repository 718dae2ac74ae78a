"""The token file: a JSON object a line, with the hash of each token and never the token itself.

    {"name": "billing", "role": "service", "topics": ["orders.*"], "sha256": "9f86d0…"}

Where it ends by itself there is `"expires"`; after it was replaced there may be `"former"`, the
hash that was before, and `"former_until"`. Times are seconds since 1970.

A token is 32 random bytes, so a plain hash of it cannot be searched. To take a token back, remove
its line. The file is read again when it has changed.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from duolog.bridge.http.callers import Caller, Role
from duolog.errors import InvalidFilter, InvalidSetting, NameTaken
from duolog.log.model import Filter
from duolog.log.routing.filter.parse import parse_filter
from duolog.log.routing.filter.tree import columns

_PATIENCE_SECONDS = 10.0
_LOOK_AGAIN_SECONDS = 0.02
_PREFIX = "duolog_"  # so that scanners for secrets know one when they see it
_HASH = re.compile(r"[0-9a-f]{64}")
_LIMITS = ("topics", "groups", "tables", "subjects")
_FIELDS = frozenset(
    {"name", "role", *_LIMITS, "where", "sha256", "expires", "former", "former_until"}
)
_NAME = re.compile(r"[A-Za-z0-9._@-]{1,100}")


@dataclass(frozen=True, slots=True)
class StoredToken:
    """One line of the file. Times are seconds since 1970."""

    caller: Caller
    sha256: str
    expires_at: int | None = None
    former_sha256: str | None = None  # of the token that this one took the place of
    former_until: int = 0

    def hashes(self, now: float) -> Iterator[str]:
        """Of the tokens that count now."""
        if self.expires_at is None or now < self.expires_at:
            yield self.sha256
            if self.former_sha256 is not None and now < self.former_until:
                yield self.former_sha256


def make_token() -> str:
    """A new token, which nobody can guess."""
    return _PREFIX + secrets.token_urlsafe(32)


def hash_of(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def caller_of(token: str, known: Sequence[StoredToken], now: float) -> Caller | None:
    """Whose token it is. All are compared, so the time taken does not tell which came close."""
    hashed = hash_of(token)
    found: Caller | None = None
    for each in known:
        for counted in each.hashes(now):
            if hmac.compare_digest(hashed, counted):
                found = each.caller
    return found


def read_tokens(path: Path) -> tuple[StoredToken, ...]:
    """All tokens of the file. Raises InvalidSetting, which never repeats what a line holds."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InvalidSetting(
            f"There is no token file {path}. Make it with: duolog token create --role service "
            f"--name NAME --file {path}"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InvalidSetting(f"The token file {path} cannot be read: {reason}.") from None
    found = tuple(
        _parsed(line, f"Line {number} of the token file {path}")
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip()
    )
    names = [each.caller.name for each in found]
    for name in names:
        if names.count(name) > 1:
            raise InvalidSetting(f"The token file {path} has two tokens named '{name}'.")
    return found


def add_token(path: Path, caller: Caller, expires_at: int | None = None) -> str:
    """Make a token and write its hash down, durably; the token, which is kept nowhere."""
    if not _NAME.fullmatch(caller.name):
        raise InvalidSetting(
            f"'{caller.name[:40]}' cannot name a token: use 1 to 100 of the characters A-Z a-z "
            "0-9 . _ @ -"
        )
    with _changing(path, create=True) as file:
        known = read_tokens(file)
        if any(each.caller.name == caller.name for each in known):
            raise NameTaken(
                f"The token file {path} already has a token named '{caller.name}'. Choose another "
                f"name, or take that one back: duolog token revoke {caller.name} --file {path}"
            )
        token = make_token()
        _write(file, (*known, StoredToken(caller, hash_of(token), expires_at)))
    return token


def revoke_token(path: Path, name: str) -> None:
    """Take a token back: hosts that use the file refuse it from now on."""
    with _changing(path) as file:
        known = read_tokens(file)
        _named(path, known, name)
        _write(file, [each for each in known if each.caller.name != name])


def rotate_token(
    path: Path,
    name: str,
    now: float,
    *,
    overlap_seconds: float = 0.0,
    expires_at: int | None = None,
) -> str:
    """Make a new token in the place of one, which is taken for so long besides."""
    with _changing(path) as file:
        known = read_tokens(file)
        before = _named(path, known, name)
        ends_at = before.expires_at if expires_at is None else expires_at
        if ends_at is not None and ends_at <= now:
            raise InvalidSetting(
                f"The token '{name}' has expired, and the new one would have, too. Say how long it "
                "is to count: --expires-seconds."
            )
        token = make_token()
        after = StoredToken(before.caller, hash_of(token), ends_at)
        until = int(now + overlap_seconds)
        if before.expires_at is not None:
            until = min(until, before.expires_at)
        if until > now:
            after = replace(after, former_sha256=before.sha256, former_until=until)
        _write(file, [after if each is before else each for each in known])
    return token


def put_back(path: Path, token: StoredToken) -> None:
    """Undo a `rotate_token` whose token nobody has seen."""
    with _changing(path) as file:
        known = read_tokens(file)
        _write(file, [token if each.caller.name == token.caller.name else each for each in known])


def _named(path: Path, known: Sequence[StoredToken], name: str) -> StoredToken:
    for each in known:
        if each.caller.name == name:
            return each
    names = ", ".join(each.caller.name for each in known) or "none"
    raise InvalidSetting(f"The token file {path} has no token named '{name}'. It has: {names}.")


@contextmanager
def _changing(link: Path, *, create: bool = False) -> Iterator[Path]:
    """The file itself, behind any links. One at a time: two that change it at once would lose what
    one of them did. The lock is the file's own, which nobody else may open.
    """
    give_up = time.monotonic() + _PATIENCE_SECONDS
    flags = os.O_RDONLY | os.O_NONBLOCK | (os.O_CREAT if create else 0)
    try:
        path = link.resolve()
        while True:
            descriptor = os.open(path, flags, 0o600)
            try:
                opened = os.fstat(descriptor)
                if not stat.S_ISREG(opened.st_mode):
                    raise InvalidSetting(f"The token file {link} is no regular file.")
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat(opened, path.stat()):  # not replaced meanwhile
                    yield path
                    return
            except BlockingIOError:
                if time.monotonic() > give_up:
                    raise InvalidSetting(
                        f"The token file {link} is being changed by somebody else. Try again."
                    ) from None
                time.sleep(_LOOK_AGAIN_SECONDS)
            finally:
                os.close(descriptor)
    except FileNotFoundError:
        if not create:
            read_tokens(link)  # says how to make one
        raise InvalidSetting(
            f"The token file {link} cannot be written: No such file or directory."
        ) from None
    except OSError as error:
        raise InvalidSetting(
            f"The token file {link} cannot be written: {error.strerror}."
        ) from error


def _write(path: Path, tokens: Sequence[StoredToken]) -> None:
    """Replace the file at once: a host that reads it meanwhile sees the old or the new one. It
    stays with those whom it belonged to: a host may be another user than who changes it.
    """
    unfinished = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    try:
        before = path.stat()
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            if not os.geteuid():
                os.fchown(descriptor, before.st_uid, before.st_gid)
            os.fchmod(descriptor, stat.S_IMODE(before.st_mode) & 0o660)
            file.writelines(map(_line, tokens))
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except OSError as error:
        with suppress(OSError):
            unfinished.unlink()
        raise InvalidSetting(
            f"The token file {path} cannot be written: {error.strerror}."
        ) from error


def _line(token: StoredToken) -> str:
    caller = token.caller
    fields: dict[str, Any] = {"name": caller.name, "role": caller.role.word}
    for limit in _LIMITS:
        if getattr(caller, limit) is not None:
            fields[limit] = list(getattr(caller, limit))
    if caller.where is not None:
        fields["where"] = caller.where.text
    fields["sha256"] = token.sha256
    if token.expires_at is not None:
        fields["expires"] = token.expires_at
    if token.former_sha256 is not None:
        fields |= {"former": token.former_sha256, "former_until": token.former_until}
    return json.dumps(fields) + "\n"


def _parsed(line: str, where: str) -> StoredToken:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict) or not fields.keys() <= _FIELDS:
        raise InvalidSetting(
            f"{where} is not as `duolog token create` writes it. It holds hashes, not tokens."
        )
    name, role = fields.get("name"), fields.get("role")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidSetting(f"{where} has no name that a token can have.")
    if not isinstance(role, str) or role not in {each.word for each in Role}:
        raise InvalidSetting(f"{where} ('{name}') has no role that is known.")
    where = f"{where} ('{name}')"
    limits = {limit: _patterns(fields.get(limit), limit, where) for limit in _LIMITS}
    former = fields.get("former")
    return StoredToken(
        Caller(name, Role.of(role), **limits, where=_condition(fields.get("where"), where)),
        _hash_in(fields.get("sha256"), "sha256", where),
        None if "expires" not in fields else _moment(fields["expires"], "expires", where),
        None if former is None else _hash_in(former, "former", where),
        _moment(fields.get("former_until", 0), "former_until", where),
    )


def _hash_in(value: Any, field: str, where: str) -> str:
    if not isinstance(value, str) or not _HASH.fullmatch(value):
        raise InvalidSetting(f"{where} has no {field} of 64 small hexadecimal digits.")
    return value


def _patterns(value: Any, field: str, where: str) -> tuple[str, ...] | None:
    if value is None:
        return None
    if not (isinstance(value, list) and value and all(isinstance(each, str) for each in value)):
        raise InvalidSetting(f"{where}: {field} is a list of patterns.")
    return tuple(value)


def condition_of(text: str) -> Filter:
    """The condition on records that is meant; InvalidFilter, InvalidSetting."""
    where = parse_filter(text)
    if any(column.side != "row" for column in columns(where.tree)):
        raise InvalidSetting(
            "A token's condition is about a record's value and op: leave out before and after. A "
            "field of such a name is written in double quotes."
        )
    return where


def _condition(value: Any, where: str) -> Filter | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidSetting(f"{where}: where is a condition.")
    try:
        return condition_of(value)
    except (InvalidFilter, InvalidSetting) as error:
        raise InvalidSetting(f"{where}: where is no condition: {error}") from None


def _moment(value: Any, field: str, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InvalidSetting(f"{where}: {field} is a number of seconds since 1970.")
    return value
