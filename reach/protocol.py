"""The words that both sides of the wire share: version, headers, and how host and clients of one
machine prove to each other that they know the log's secret, which never travels.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from typing import Final, TypeGuard

from duolog.errors import InvalidRequest, UnsupportedFormat

VERSION: Final = 2
PREFIX: Final = "/v1/internal"

PROTOCOL_HEADER: Final = "Duolog-Protocol"
LOG_HEADER: Final = "Duolog-Log"  # the id of the log that is meant
CRC32_HEADER: Final = "Duolog-Crc32"  # of an uploaded part

_NONCE: Final = re.compile(r"[0-9a-f]{32,128}")
_LOCAL: Final = "duolog-local."


def new_nonce() -> str:
    return secrets.token_hex(32)


def is_nonce(text: object) -> TypeGuard[str]:
    return isinstance(text, str) and _NONCE.fullmatch(text) is not None


def proof_of(secret: str, nonce: str, host_nonce: str, log_id: str, address: str) -> str:
    """What only a host of this log on this machine can say.

    The address is that of host.json: what listens where a host used to cannot pass the question on
    to the host and pass its answer off as its own.
    """
    if not (is_nonce(nonce) and is_nonce(host_nonce)):
        raise InvalidRequest("A nonce is 32 to 128 hex digits.")
    return _said_with(secret, "host", nonce, host_nonce, log_id, address)


def local_token(secret: str, nonce: str, host_nonce: str, log_id: str) -> str:
    """What a client on this machine is known by, to this run of the host alone. It proves that the
    client knows the secret too, and tells nobody what it is.
    """
    return f"{_LOCAL}{nonce}.{_said_with(secret, 'client', nonce, host_nonce, log_id)}"


def nonce_of(token: str) -> str | None:
    """The nonce that a local token was made with; None if the token is none."""
    nonce = token.removeprefix(_LOCAL).partition(".")[0]
    return nonce if token.startswith(_LOCAL) and is_nonce(nonce) else None


def _said_with(secret: str, *words: str) -> str:
    said = "\n".join(("duolog", str(VERSION), *words))
    return hmac.new(bytes.fromhex(secret), said.encode(), hashlib.sha256).hexdigest()


def check_version(said: str | None, who: str) -> None:
    """Refuse to speak with another version. `who` is "The host at …" or "The client"."""
    if said != str(VERSION):
        raise UnsupportedFormat(
            f"{who} speaks version {said!r} of Duolog's protocol, this one speaks {VERSION}. Use "
            "the same Duolog on both sides."
        )
