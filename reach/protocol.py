"""The words that both sides of the wire share: version, headers, and the proof of a host."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from typing import Final

from duolog.errors import InvalidRequest, UnsupportedFormat

VERSION: Final = 1
PREFIX: Final = "/v1/internal"

PROTOCOL_HEADER: Final = "Duolog-Protocol"
LOG_HEADER: Final = "Duolog-Log"  # the id of the log that is meant
CRC32_HEADER: Final = "Duolog-Crc32"  # of an uploaded part

_NONCE: Final = re.compile(r"[0-9a-f]{32,128}")


def new_nonce() -> str:
    return secrets.token_hex(32)


def proof_of(secret: str, nonce: str, log_id: str, address: str) -> str:
    """What only a host of this log on this machine can say.

    The address is that of host.json: what listens where a host used to cannot pass the question on
    to the host and pass its answer off as its own.
    """
    if not _NONCE.fullmatch(nonce):
        raise InvalidRequest("A nonce is 32 to 128 hex digits.")
    said = f"duolog host\n{VERSION}\n{nonce}\n{log_id}\n{address}"
    return hmac.new(bytes.fromhex(secret), said.encode(), hashlib.sha256).hexdigest()


def check_version(said: str | None, who: str) -> None:
    """Refuse to speak with another version. `who` is "The host at …" or "The client"."""
    if said != str(VERSION):
        raise UnsupportedFormat(
            f"{who} speaks version {said!r} of Duolog's protocol, this one speaks {VERSION}. Use "
            "the same Duolog on both sides."
        )
