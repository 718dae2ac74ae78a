"""Which node writes a column without columns inside as which Avro type. None: none does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from duolog.avro.encode.buffers import numpy_name, stored_kind
from duolog.avro.encode.decimals import MAX_DIGITS, Decimals
from duolog.avro.encode.misfits import called
from duolog.avro.encode.scalars import Booleans, Floats, Integers, Nothing
from duolog.avro.encode.text import BytesAsFixed, FixedAsBytes, Symbols, Text, UuidAsText
from duolog.avro.encode.times import DAY_SECONDS, INT32, INT64, PER_SECOND, Ticks
from duolog.avro.resolve import meaning
from duolog.avro.schema import Enum, Fixed, Kind, Logical, Primitive
from duolog.log.routing.kinds import is_string

if TYPE_CHECKING:
    from duolog.avro.encode.node import Node

_INT: Final = (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16())
_LONG: Final = (*_INT, pa.int64(), pa.uint32())
_HELD_BY_FLOAT: Final = (pa.int8(), pa.int16(), pa.uint8(), pa.uint16(), pa.float16(), pa.float32())
_HELD_BY_DOUBLE: Final = (*_HELD_BY_FLOAT, pa.int32(), pa.uint32(), pa.float64())

_UNITS: Final = {"millis": "ms", "micros": "us", "nanos": "ns"}
_DAY_MILLISECONDS: Final = DAY_SECONDS * 1000
_UINT64_DIGITS: Final = 20
_UUID_BYTES: Final = 16
_UUID_MARK: Final = {b"avro.logical": b"uuid", b"ARROW:extension:name": b"arrow.uuid"}


def leaf_of(field: pa.Field, schema: Primitive | Fixed | Enum, path: str) -> Node | None:
    """What writes this column. Wider types are taken where every value of the column has one."""
    kind = stored_kind(field.type)
    match schema:
        case Enum():
            return Symbols(path, schema.name, schema.symbols) if is_string(kind) else None
        case Fixed():
            return _fixed(kind, schema, path)
        case Primitive(kind=Kind.BYTES) | Primitive(kind=Kind.STRING):
            return _bytes(field, kind, schema, path)
        case _:
            return _number(kind, schema, path)


def _number(kind: pa.DataType, schema: Primitive, path: str) -> Node | None:
    logical = meaning(schema)
    if logical is not None:
        return _ticks(kind, logical, schema, path)
    match schema.kind:
        case Kind.NULL if pa.types.is_null(kind):
            return Nothing()
        case Kind.BOOLEAN if pa.types.is_boolean(kind):
            return Booleans()
        case Kind.INT if kind in _INT:
            return Integers(numpy_name(kind))
        case Kind.LONG if kind in _LONG:
            return Integers(numpy_name(kind))
        case Kind.FLOAT if kind in _HELD_BY_FLOAT:
            return Floats(numpy_name(kind), 4)
        case Kind.DOUBLE if kind in _HELD_BY_DOUBLE:
            return Floats(numpy_name(kind), 8)
    return None


def _ticks(kind: pa.DataType, logical: Logical, schema: Primitive, path: str) -> Node | None:
    family, _, unit = logical.name.rpartition("-")
    if logical.name == "date" and pa.types.is_date(kind):
        divided_by = 1 if pa.types.is_date32(kind) else _DAY_MILLISECONDS
        times, bounds = 1, INT32
    elif family == "time" and pa.types.is_time(kind) and kind != pa.time64("ns"):
        times, divided_by = _ratio(kind.unit, _UNITS[unit])
        bounds = (0, DAY_SECONDS * PER_SECOND[_UNITS[unit]] - 1)
    elif pa.types.is_timestamp(kind) and family == (
        "local-timestamp" if kind.tz is None else "timestamp"
    ):
        times, divided_by = _ratio(kind.unit, _UNITS[unit])
        bounds = INT64
    else:
        return None
    stored = f"int{kind.bit_width}"
    return Ticks(path, stored, str(kind), called(schema), times, divided_by, bounds)


def _ratio(unit: str, target: str) -> tuple[int, int]:
    have, want = PER_SECOND[unit], PER_SECOND[target]
    return max(1, want // have), max(1, have // want)


def _bytes(field: pa.Field, kind: pa.DataType, schema: Primitive, path: str) -> Node | None:
    logical = meaning(schema)
    if logical is not None and logical.name == "decimal":
        return _decimal(kind, logical, None, path)
    is_text = schema.kind is Kind.STRING
    if is_string(kind) or kind in (pa.binary(), pa.large_binary()):
        return Text(path, is_text)
    if is_text and (is_uuid(field) or (logical is not None and kind == pa.binary(_UUID_BYTES))):
        return UuidAsText()
    if pa.types.is_fixed_size_binary(kind):
        return FixedAsBytes(path, kind.byte_width, has_length=True, is_text=is_text)
    return None


def is_uuid(field: pa.Field) -> bool:
    """Whether these are the sixteen bytes of a UUID."""
    kind = field.type
    if isinstance(kind, pa.BaseExtensionType):
        return bool(kind.extension_name == "arrow.uuid")
    metadata = field.metadata or {}
    return kind == pa.binary(_UUID_BYTES) and any(
        metadata.get(name) == mark for name, mark in _UUID_MARK.items()
    )


def _fixed(kind: pa.DataType, schema: Fixed, path: str) -> Node | None:
    logical = meaning(schema)
    if logical is not None and logical.name == "decimal":
        return _decimal(kind, logical, schema.size, path)
    if isinstance(kind, pa.BaseExtensionType) and kind.extension_name == "arrow.uuid":
        kind = kind.storage_type
    if kind == pa.binary(schema.size):
        return FixedAsBytes(path, schema.size, has_length=False)
    if kind in (pa.binary(), pa.large_binary()):
        return BytesAsFixed(path, schema.size)
    return None


def _decimal(kind: pa.DataType, logical: Logical, size: int | None, path: str) -> Node | None:
    """Of decimals whose digits, before the point and behind it, all have a place."""
    if pa.types.is_uint64(kind):
        precision, scale = _UINT64_DIGITS, 0
    elif pa.types.is_decimal(kind):
        precision, scale = kind.precision, kind.scale
    else:
        return None
    added = logical.scale - scale
    if scale < 0 or added < 0 or logical.precision - added < precision:
        return None
    if precision + added > MAX_DIGITS:
        return None
    return Decimals(path, str(kind), logical.precision, added, size)
