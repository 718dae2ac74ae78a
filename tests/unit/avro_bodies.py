"""Bodies as the specification has them, and what the decoder makes of them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from duolog.avro.decode.decoder import decoder_of
from duolog.avro.to_arrow import arrow_type
from duolog.avro.varint import varint
from duolog.errors import Undecodable
from tests.unit.avro_cases import parsed


def record(**fields: Any) -> dict[str, Any]:
    kinds = [{"name": name, "type": kind} for name, kind in fields.items()]
    return {"type": "record", "name": "Row", "fields": kinds}


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def decode(schema: Any, bodies: list[bytes | None]) -> pa.Array:
    decoder = decoder_of(parsed(schema))
    values = decoder.decode(pa.array(bodies, pa.binary()))
    values.validate(full=True)
    assert values.type == decoder.type == arrow_type(parsed(schema))
    assert len(values) == len(bodies)
    return values


def refusal(schema: Any, *bodies: bytes) -> str:
    with pytest.raises(Undecodable) as caught:
        decoder_of(parsed(schema)).decode(pa.array(bodies, pa.binary()))
    return str(caught.value)


def text(content: str | bytes) -> bytes:
    raw = content.encode() if isinstance(content, str) else content
    return varint(len(raw)) + raw


def block(items: list[bytes], *, is_sized: bool) -> bytes:
    content = b"".join(items)
    if is_sized:
        return varint(-len(items)) + varint(len(content)) + content
    return varint(len(items)) + content
