"""The default of a field as the bytes that it would have been written as.

So it stands in a body like every other value, and is read by the same code, whatever its type.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from duolog.avro.defaults import DefaultCheck
from duolog.avro.json_tree import Json, read_json
from duolog.avro.schema import (
    MAX_DEPTH,
    Array,
    Enum,
    Field,
    Fixed,
    Kind,
    Map,
    Named,
    Primitive,
    Record,
    Reference,
    Schema,
    Union,
)
from duolog.avro.varint import varint
from duolog.errors import InvalidSchema

_STEPS: Final = 1_000_000
_NONE: Final[Mapping[str, Named]] = MappingProxyType({})


def default_bytes(field: Field, named: Mapping[str, Named] = _NONE) -> bytes:
    """The field's default as a value in a body. InvalidSchema when it is none of its type.

    `named` are the types that references in the field's type mean.
    """
    try:
        value = read_json(field.default or "")
        check = DefaultCheck(named.get, _STEPS)
        if not check.fits(field.type, value):
            raise _invalid(field)
        return _Writer(named, check).write(field.type, value)
    except (ValueError, OverflowError):  # a number that its type cannot hold
        raise _invalid(field) from None


def _invalid(field: Field) -> InvalidSchema:
    return InvalidSchema(
        f"The default of field '{field.name}' is no value of its type: {field.default}. Correct "
        "the schema."
    )


class _Writer:
    """Writes values that fit."""

    def __init__(self, named: Mapping[str, Named], check: DefaultCheck) -> None:
        self._named = named
        self._check = check

    def write(self, schema: Schema, value: Json, depth: int = 0) -> bytes:
        if depth > 2 * MAX_DEPTH:  # a record's own default may contain that record again
            raise InvalidSchema("The default of a field has no end. Correct the schema.")
        depth += 1
        match schema, value:
            case Reference(name=name), _:
                return self.write(self._named[name], value, depth)
            case Union(branches=branches), _:
                for index, branch in enumerate(branches):
                    if self._check.fits(branch, value):
                        return varint(index) + self.write(branch, value, depth)
            case Primitive(kind=kind), _:
                return _primitive(kind, value)
            case Fixed(), str():
                return value.encode("latin-1")
            case Enum(symbols=symbols), str():
                return varint(symbols.index(value))
            case Array(items=inner), list():
                return _block([self.write(inner, item, depth) for item in value])
            case Map(values=inner), dict():
                entries = value.items()
                return _block(
                    [_text(key) + self.write(inner, item, depth) for key, item in entries]
                )
            case Record(fields=fields), dict():
                return b"".join(self._member(member, value, depth) for member in fields)
        raise InvalidSchema(f"{value!r} is not of the type that it is the default of.")

    def _member(self, member: Field, record: dict[str, Json], depth: int) -> bytes:
        if member.name in record:
            return self.write(member.type, record[member.name], depth)
        return self.write(member.type, read_json(member.default or ""), depth)


def _block(items: list[bytes]) -> bytes:
    return (varint(len(items)) if items else b"") + b"".join(items) + b"\0"


def _text(text: str) -> bytes:
    encoded = text.encode()
    return varint(len(encoded)) + encoded


def _primitive(kind: Kind, value: Json) -> bytes:
    match kind, value:
        case Kind.BOOLEAN, bool():
            return bytes([value])
        case ((Kind.INT | Kind.LONG), int()):
            return varint(value)
        case Kind.FLOAT, (int() | float() | str()):
            return struct.pack("<f", float(value))
        case Kind.DOUBLE, (int() | float() | str()):
            return struct.pack("<d", float(value))
        case Kind.BYTES, str():
            content = value.encode("latin-1")
            return varint(len(content)) + content
        case Kind.STRING, str():
            return _text(value)
    return b""
