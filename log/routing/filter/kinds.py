"""What kinds of values a filter knows, and what two of them become when they meet.

Integers are calculated in 64 bits (unsigned ones of 64 bits as decimals), texts are plain UTF-8,
dictionaries are decoded. A type of None is a column's whose schema is not known yet.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, TypeAlias

import pyarrow as pa

Type: TypeAlias = Any  # a pyarrow data type, or None while it is not known

BOOLEAN = pa.bool_()
INTEGER = pa.int64()
FLOAT = pa.float32()
DOUBLE = pa.float64()
TEXT = pa.string()
BYTES = pa.binary()
DATE = pa.date32()
NULL = pa.null()

MAX_DIGITS = 76
_INTEGER_DIGITS = 19
_TEXTS = frozenset(("string", "large_string", "string_view"))
_BYTES = frozenset(("binary", "large_binary", "binary_view"))
_UNITS = ("s", "ms", "us", "ns")


class Kind(Enum):
    """A family of types; the value is how messages call one of it."""

    UNKNOWN = "a column of unknown type"
    NULL = "NULL"
    BOOLEAN = "a boolean"
    INTEGER = "an integer"
    DECIMAL = "a decimal"
    FLOAT = "a floating-point number"
    TEXT = "a text"
    BYTES = "binary"
    DATE = "a date"
    TIMESTAMP = "a timestamp"
    OTHER = "a value of another type"


NUMBERS = frozenset((Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT))
MOMENTS = frozenset((Kind.DATE, Kind.TIMESTAMP))


class NoCommonType(Exception):
    """These two types cannot meet."""


def kind_of(type_: Type) -> Kind:
    """The family of a type that `working_type` gave."""
    if type_ is None:
        return Kind.UNKNOWN
    plain = _KINDS.get(type_)
    if plain is not None:
        return plain
    if pa.types.is_decimal(type_):
        return Kind.DECIMAL
    return Kind.TIMESTAMP if pa.types.is_timestamp(type_) else Kind.OTHER


_KINDS = {
    NULL: Kind.NULL,
    BOOLEAN: Kind.BOOLEAN,
    INTEGER: Kind.INTEGER,
    FLOAT: Kind.FLOAT,
    DOUBLE: Kind.FLOAT,
    TEXT: Kind.TEXT,
    BYTES: Kind.BYTES,
    DATE: Kind.DATE,
}


def working_type(type_: Type) -> Type:
    """The type that a column of this type is calculated in."""
    if type_ is None:
        return None
    if pa.types.is_dictionary(type_):
        return working_type(type_.value_type)
    if pa.types.is_uint64(type_):
        return pa.decimal128(20, 0)
    if pa.types.is_integer(type_):
        return INTEGER
    if pa.types.is_decimal(type_):
        # Narrow decimals have few kernels, and places before the point none.
        return decimal(type_.precision - min(type_.scale, 0), max(type_.scale, 0))
    if pa.types.is_float16(type_):
        return FLOAT
    if pa.types.is_date64(type_):
        return DATE
    if str(type_) in _TEXTS:
        return TEXT
    if str(type_) in _BYTES or pa.types.is_fixed_size_binary(type_):
        return BYTES
    return type_


def decimal(precision: int, scale: int) -> Type:
    """The decimal type with room for this many digits, or as many as there can be."""
    precision = min(precision, MAX_DIGITS)
    return (pa.decimal128 if precision <= 38 else pa.decimal256)(precision, scale)


def common_type(left: Type, right: Type) -> Type:
    """What both become to be compared, or to be results of one CASE."""
    kinds = {kind_of(left), kind_of(right)}
    if Kind.OTHER in kinds:
        raise NoCommonType
    if Kind.UNKNOWN in kinds:
        return None
    if Kind.NULL in kinds:
        return right if left == NULL else left
    if kinds <= NUMBERS:
        return _common_number(left, right, kinds)
    if kinds <= MOMENTS:
        return _common_moment(left, right)
    if kinds == {Kind.TEXT, Kind.BYTES}:
        return BYTES
    if len(kinds) > 1:
        raise NoCommonType
    return left


def _common_number(left: Type, right: Type, kinds: set[Kind]) -> Type:
    if Kind.FLOAT in kinds:
        # As DataFusion: an integer or a decimal takes the float's width.
        return DOUBLE if DOUBLE in (left, right) else FLOAT
    if kinds == {Kind.INTEGER}:
        return INTEGER
    (left_digits, left_places), (right_digits, right_places) = digits(left), digits(right)
    places = max(left_places, right_places)
    whole = max(left_digits - left_places, right_digits - right_places)
    if whole + places > MAX_DIGITS:
        raise NoCommonType
    return decimal(whole + places, places)


def digits(type_: Type) -> tuple[int, int]:
    """All digits of an integer or a decimal, and those after the point."""
    if type_ == INTEGER:
        return _INTEGER_DIGITS, 0
    return type_.precision, type_.scale


def _common_moment(left: Type, right: Type) -> Type:
    stamps = [each for each in (left, right) if each != DATE]
    if not stamps:
        return DATE
    unit = max((each.unit for each in stamps), key=_UNITS.index)
    zone = next((each.tz for each in stamps if each.tz), None)
    return pa.timestamp(unit, zone)
