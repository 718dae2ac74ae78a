"""The token file: a JSON object a line, with the hash of each token and never the token itself.

    {"name": "billing", "role": "service", "topics": ["orders.*"], "sha256": "9f86d0…"}

A token is 32 random bytes, so a plain hash of it cannot be searched. To take a token back, remove
its line. The file is read again when it has changed.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from duolog.bridge.http.callers import Caller, Role
from duolog.errors import InvalidSetting, NameTaken

_PREFIX = "duolog_"  # so that scanners for secrets know one when they see it
_HASH = re.compile(r"[0-9a-f]{64}")
_FIELDS = frozenset({"name", "role", "topics", "sha256"})
_NAME = re.compile(r"[A-Za-z0-9._@-]{1,100}")


@dataclass(frozen=True, slots=True)
class StoredToken:
    """One line of the file."""

    caller: Caller
    sha256: str


def make_token() -> str:
    """A new token, which nobody can guess."""
    return _PREFIX + secrets.token_urlsafe(32)


def hash_of(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def caller_of(token: str, known: Sequence[StoredToken]) -> Caller | None:
    """Whose token it is. All are compared, so the time taken does not tell which came close."""
    hashed = hash_of(token)
    found: Caller | None = None
    for each in known:
        if hmac.compare_digest(hashed, each.sha256):
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


def add_token(path: Path, caller: Caller) -> str:
    """Make a token and write its hash down, durably; the token, which is kept nowhere."""
    if not _NAME.fullmatch(caller.name):
        raise InvalidSetting(
            f"'{caller.name[:40]}' cannot name a token: use 1 to 100 of the characters A-Z a-z "
            "0-9 . _ @ -"
        )
    known = read_tokens(path) if path.exists() else ()
    if any(each.caller.name == caller.name for each in known):
        raise NameTaken(
            f"The token file {path} already has a token named '{caller.name}'. Choose another "
            "name, or remove that line first."
        )
    token = make_token()
    _write(path, (*known, StoredToken(caller, hash_of(token))))
    return token


def _write(path: Path, tokens: Sequence[StoredToken]) -> None:
    """Replace the file at once: a host that reads it meanwhile sees the old or the new one."""
    unfinished = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    try:
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.writelines(map(_line, tokens))
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise InvalidSetting(
            f"The token file {path} cannot be written: {error.strerror}."
        ) from error


def _line(token: StoredToken) -> str:
    caller = token.caller
    fields: dict[str, Any] = {"name": caller.name, "role": caller.role.word}
    if caller.topics is not None:
        fields["topics"] = list(caller.topics)
    return json.dumps({**fields, "sha256": token.sha256}) + "\n"


def _parsed(line: str, where: str) -> StoredToken:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict) or not fields.keys() <= _FIELDS:
        raise InvalidSetting(
            f"{where} is not as `duolog token create` writes it. It holds hashes, not tokens."
        )
    name, role, hashed = (fields.get(key) for key in ("name", "role", "sha256"))
    topics = fields.get("topics")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidSetting(f"{where} has no name that a token can have.")
    if not isinstance(role, str) or role not in {each.word for each in Role}:
        raise InvalidSetting(f"{where} ('{name}') has no role that is known.")
    if not isinstance(hashed, str) or not _HASH.fullmatch(hashed):
        raise InvalidSetting(f"{where} ('{name}') has no sha256 of 64 small hexadecimal digits.")
    if topics is not None and not (
        isinstance(topics, list) and topics and all(isinstance(each, str) for each in topics)
    ):
        raise InvalidSetting(f"{where} ('{name}'): topics is a list of patterns.")
    patterns = None if topics is None else tuple(topics)
    return StoredToken(Caller(name, Role.of(role), patterns), hashed)
