"""Columns that a schema has no place for, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from duolog.avro.schema import (
    Array,
    Enum,
    Fixed,
    Kind,
    Map,
    Primitive,
    Record,
    Reference,
    Schema,
    Union,
)
from duolog.errors import InvalidRows

if TYPE_CHECKING:
    from duolog.avro.schema import Logical

_COLUMNS = {
    Kind.NULL: "null",
    Kind.BOOLEAN: "bool",
    Kind.INT: "int32",
    Kind.LONG: "int64",
    Kind.FLOAT: "float",
    Kind.DOUBLE: "double",
    Kind.BYTES: "binary",
    Kind.STRING: "string",
}
_UNITS = {"millis": "ms", "micros": "us", "nanos": "ns"}


def misfit(path: str, kind: pa.DataType, schema: Schema) -> InvalidRows:
    """That this column cannot be written as this, and what could."""
    return InvalidRows(
        f"Column '{path}' is of type {kind}, which cannot be written as Avro's {called(schema)}. "
        f"{_refused(kind) or _advice(schema)}"
    )


def called(schema: Schema) -> str:
    """An Avro type in words."""
    match schema:
        case Primitive(kind=kind, logical=logical):
            return f"{kind}{_meaning(logical)}"
        case Fixed(name=name, size=size, logical=logical):
            return f"fixed '{name}' of {size} bytes{_meaning(logical)}"
        case Enum(name=name):
            return f"enum '{name}'"
        case Record(name=name) | Reference(name=name):
            return f"record '{name}'"
        case Array():
            return "array"
        case Map():
            return "map"
        case Union(branches=branches):
            return f"union of {', '.join(map(called, branches))}"


def _meaning(logical: Logical | None) -> str:
    if logical is None:
        return ""
    if logical.name == "decimal":
        return f" (decimal({logical.precision}, {logical.scale}))"
    return f" ({logical.name})"


def _refused(kind: pa.DataType) -> str:
    """What to do with a type that Avro has no form for at all."""
    if pa.types.is_time64(kind) and kind.unit == "ns":
        return "Cast it to time64[us]."
    if pa.types.is_duration(kind):
        return "Cast it to int64."
    if pa.types.is_interval(kind):
        return "Make it numbers or a string first."
    if pa.types.is_union(kind):
        return "Make it a struct with a column for each of its types."
    if pa.types.is_decimal(kind) and kind.scale < 0:
        return "Cast it to a decimal whose scale is not negative."
    if isinstance(kind, pa.BaseExtensionType):
        return f"Cast it to {kind.storage_type}."
    return ""


def _advice(schema: Schema) -> str:
    match schema:
        case Primitive(kind=kind, logical=None):
            return f"Cast it to {_COLUMNS[kind]}, if that loses nothing."
        case Primitive(logical=logical) | Fixed(logical=logical) if logical is not None:
            return f"Cast it to {_column(logical)}, if that loses nothing."
        case Fixed(size=size):
            return f"Cast it to fixed_size_binary[{size}]."
        case Enum():
            return "Cast it to string."
        case Union():
            return "Make it a struct with the columns member0, member1 ..., one for each type."
    return "Give it that form first, or register a schema that fits."


def _column(logical: Logical) -> str:
    """The Arrow type of a logical type."""
    name = logical.name
    if name == "decimal":
        width = 128 if logical.precision <= 38 else 256
        return f"decimal{width}({logical.precision}, {logical.scale})"
    if name == "date":
        return "date32"
    if name == "uuid":
        return "string"
    unit = _UNITS[name.rpartition("-")[2]]
    if name.startswith("time-"):
        return f"time{32 if unit == 'ms' else 64}[{unit}]"
    zone = "" if name.startswith("local-") else ", tz=UTC"
    return f"timestamp[{unit}{zone}]"
