"""The default of a field as the bytes that it would have been written as.

So it is read by the same code as every other value, whatever its type.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any, Final

from duolog.avro.defaults import DefaultCheck
from duolog.avro.schema import (
    Array,
    Enum,
    Field,
    Fixed,
    Kind,
    Map,
    Primitive,
    Record,
    Schema,
    Union,
)
from duolog.avro.varint import varint
from duolog.errors import InvalidSchema

_MOST_STEPS: Final = 100_000


def default_bytes(field: Field) -> bytes:
    """The bytes of the field's default. InvalidSchema when it is none of its type."""
    try:
        value = json.loads(field.default or "")
        if not DefaultCheck(lambda _: None, _MOST_STEPS).fits(field.type, value):
            raise _invalid(field)
        return b"".join(_bytes(field.type, value))
    except (ValueError, OverflowError, RecursionError):
        raise _invalid(field) from None


def _bytes(schema: Schema, value: Any) -> Iterator[bytes]:
    match schema:
        case Primitive(kind=kind):
            yield _primitive(kind, value)
        case Fixed():
            yield value.encode("latin-1")
        case Enum(symbols=symbols):
            yield varint(symbols.index(value))
        case Array(items=items):
            if value:
                yield varint(len(value))
            for item in value:
                yield from _bytes(items, item)
            yield varint(0)
        case Map(values=values):
            if value:
                yield varint(len(value))
            for key, item in value.items():
                yield _primitive(Kind.STRING, key)
                yield from _bytes(values, item)
            yield varint(0)
        case Record(fields=fields):
            for field in fields:
                if field.name in value:
                    yield from _bytes(field.type, value[field.name])
                else:
                    yield default_bytes(field)
        case Union(branches=branches):
            check = DefaultCheck(lambda _: None, _MOST_STEPS)
            chosen = next(i for i, branch in enumerate(branches) if check.fits(branch, value))
            yield varint(chosen)
            yield from _bytes(branches[chosen], value)


def _primitive(kind: Kind, value: Any) -> bytes:
    match kind:
        case Kind.NULL:
            return b""
        case Kind.BOOLEAN:
            return b"\x01" if value else b"\x00"
        case Kind.INT | Kind.LONG:
            return varint(value)
        case Kind.FLOAT:
            return struct.pack("<f", float(value))
        case Kind.DOUBLE:
            return struct.pack("<d", float(value))
        case Kind.BYTES | Kind.STRING:
            text: bytes = value.encode("latin-1" if kind is Kind.BYTES else "utf-8")
            return varint(len(text)) + text


def _invalid(field: Field) -> InvalidSchema:
    return InvalidSchema(
        f"The default of field '{field.name}' is no value of its type: {field.default}. Correct "
        "the reader's schema."
    )
