"""Messages and rows of a publish request, as the log takes them."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable
from typing import Any

from duolog.bridge.http.models import NewHeader, NewMessage
from duolog.errors import InvalidRecord
from duolog.log.model import Op, PayloadMode, Record

_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_OPS = {op.word: op for op in Op if op.word is not None}
_PAYLOADS = {payload.word: payload for payload in PayloadMode if payload.word is not None}


def records_of(messages: Iterable[NewMessage]) -> list[Record]:
    """Messages in their order. Raises InvalidRecord."""
    return list(map(record_of, messages))


def record_of(message: NewMessage) -> Record:
    """One message. Raises InvalidRecord."""
    given = message.model_fields_set
    if ("value" in given) == ("payload" in given):
        raise InvalidRecord("A message has a value or a payload, one of both (null for none).")
    if message.key is not None and message.key_base64 is not None:
        raise InvalidRecord("A message has a key or a key_base64, not both.")
    return Record(
        value=_either("value", message.value, "payload", message.payload),
        key=_either("key", message.key, "key_base64", message.key_base64),
        headers=tuple(map(_header, message.headers)),
        partition=message.partition_id,
        ts_ms=message.ts,
        op=Op.NONE if message.op is None else op_of(message.op),
        table=message.source_table,
        payload=_payload_mode(message.payload_mode),
    )


def op_of(word: str) -> Op:
    """The operation that a word names. Raises InvalidRecord."""
    op = _OPS.get(word.lower())
    if op is None:
        raise InvalidRecord(f"op is one of {', '.join(_OPS)}.")
    return op


def _payload_mode(word: str | None) -> PayloadMode:
    if word is None:
        return PayloadMode.NONE
    mode = _PAYLOADS.get(word.lower())
    if mode is None:
        raise InvalidRecord(f"payload_mode is one of {', '.join(_PAYLOADS)}.")
    return mode


def _header(header: NewHeader) -> tuple[str, bytes | None]:
    if header.value is not None and header.value_base64 is not None:
        raise InvalidRecord("A header has a value or a value_base64, not both.")
    return header.name, _either("value", header.value, "value_base64", header.value_base64)


def _either(name: str, plain: Any, name_of_encoded: str, encoded: str | None) -> bytes | None:
    if encoded is not None:
        try:
            return base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError) as error:
            raise InvalidRecord(f"{name_of_encoded} is not base64: {error}.") from None
    if plain is None:
        return None
    try:
        return (plain if isinstance(plain, str) else _compact(plain)).encode()
    except (ValueError, RecursionError) as error:  # half a surrogate pair, an endless number
        raise InvalidRecord(f"{name} cannot be written: {error}.") from None
