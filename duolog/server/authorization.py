"""The token that a request brings in its Authorization header."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable


def token_in(headers: Iterable[tuple[bytes, bytes]], *, takes_passwords: bool = True) -> str | None:
    """A bearer token, or the password of basic auth. None when no header came, "" for a bad one.

    The headers are as ASGI has them: names in lower case.
    """
    brought = [value for name, value in headers if name == b"authorization"]
    if not brought:
        return None
    if len(brought) > 1:
        return ""  # which one is meant?
    scheme, _, rest = brought[0].partition(b" ")
    match scheme.lower():
        case b"bearer":
            token = rest
        case b"basic" if takes_passwords:
            token = _password(rest)
        case _:
            token = b""
    return token.strip().decode("latin-1")


def _password(credentials: bytes) -> bytes:
    try:
        return base64.b64decode(credentials.strip(), validate=True).partition(b":")[2]
    except binascii.Error:
        return b""
