"""What values become in another type, and which of them have a counterpart there.

Each function gives the new values and a mask; where the mask is not true, the value means nothing.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duolog.log.routing.filter import moments
from duolog.log.routing.filter.decimals import to_floats, with_places
from duolog.log.routing.filter.kinds import (
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    MAX_DIGITS,
    TEXT,
    Kind,
    decimal,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from duolog.log.routing.filter.steps import Array
    from duolog.log.routing.filter.tree import TypeName

Converted: TypeAlias = tuple[Any, Any]

_BITS = {"tinyint": 8, "smallint": 16, "integer": 32, "bigint": 64}
_YES = ("t", "tr", "tru", "true", "y", "ye", "yes", "on", "1")
_NO = ("f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0")
_INTEGER = r"\A[+-]?[0-9]+\z"
_DECIMAL = r"\A[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)\z"
_FLOAT = r"(?i)\A[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf(?:inity)?|nan)\z"
TEXT_PLACES = 37  # of a text that becomes a decimal; what follows cannot change a rounding
PLAIN_PLACES = 6  # with more, Arrow writes small decimals as 1E-7
_MAX_DAYS = 106_751_991  # as far from 1970 as 64 bits of microseconds reach


def only(values: Array, mask: Array) -> Array:
    """The values of the mask, NULL elsewhere."""
    return pc.if_else(mask, values, pa.scalar(None, values.type))


def _all(values: Array, converted: Array) -> Converted:
    return converted, values.is_valid()


def _within(values: Array, low: Any, high: Any) -> Array:
    """Whether low <= value < high."""
    low, high = (pc.cast(pa.scalar(each), values.type) for each in (low, high))
    return pc.and_(pc.greater_equal(values, low), pc.less(values, high))


def _same(values: Array, _: TypeName) -> Converted:
    return _all(values, values)


def _boolean_from_integer(values: Array, _: TypeName) -> Converted:
    return _all(values, pc.not_equal(values, 0))


def _boolean_from_text(values: Array, _: TypeName) -> Converted:
    words = pc.ascii_lower(pc.ascii_trim_whitespace(values))
    yes = pc.is_in(words, value_set=pa.array(_YES, TEXT))
    return yes, pc.or_(yes, pc.is_in(words, value_set=pa.array(_NO, TEXT)))


def _integer_from_boolean(values: Array, _: TypeName) -> Converted:
    return _all(values, pc.cast(values, INTEGER))


def _integer_from_integer(values: Array, to: TypeName) -> Converted:
    return _narrowed(values, values.is_valid(), to)


def _integer_from_float(values: Array, to: TypeName) -> Converted:
    whole = pc.trunc(pc.cast(values, DOUBLE))
    fits = _within(whole, -(2.0**63), 2.0**63)
    return _narrowed(pc.cast(only(whole, fits), INTEGER), fits, to)


def _integer_from_decimal(values: Array, to: TypeName) -> Converted:
    room = min(max(values.type.precision, values.type.scale + 20), MAX_DIGITS)
    whole = pc.trunc(values.cast(pa.decimal256(room, values.type.scale)))
    fits = _within(whole, Decimal(-(2**63)), Decimal(2**63))
    return _narrowed(pc.cast(only(whole, fits), INTEGER), fits, to)


def _integer_from_text(values: Array, to: TypeName) -> Converted:
    numbers, fits = _numbers(values, _INTEGER)
    whole, within = _integer_from_decimal(numbers, to)
    return whole, pc.and_(fits, within)


def _narrowed(values: Array, fits: Array, to: TypeName) -> Converted:
    half = 1 << (_BITS[to.word] - 1)
    if to.word != "bigint":
        fits = pc.and_(fits, _within(values, -half, half))
    return values, fits


def _float_from_number(values: Array, to: TypeName) -> Converted:
    return _all(values, pc.cast(values, _float_type(to), safe=False))


def _float_from_decimal(values: Array, to: TypeName) -> Converted:
    return _all(values, to_floats(values, _float_type(to)))


def _float_from_text(values: Array, to: TypeName) -> Converted:
    trimmed = pc.ascii_trim_whitespace(values)
    fits = pc.match_substring_regex(trimmed, pattern=_FLOAT)
    texts = pc.fill_null(only(trimmed, fits), "nan").to_numpy(zero_copy_only=False)
    with np.errstate(over="ignore"):
        found = texts.astype(np.float64 if to.word == "double" else np.float32)
    return pa.array(found), fits


def _float_type(to: TypeName) -> Any:
    return DOUBLE if to.word == "double" else FLOAT


def _decimal_from_decimal(values: Array, to: TypeName) -> Converted:
    """Rounds half away from zero."""
    scale = values.type.scale
    # Room for a carry, and to compare with the first number that does not fit.
    room = max(values.type.precision + 1, to.precision - to.scale + 1 + scale)
    rounded = values.cast(pa.decimal256(min(room, MAX_DIGITS), scale))
    if to.scale < scale:
        rounded = pc.round(rounded, ndigits=to.scale, round_mode="half_towards_infinity")
    whole = to.precision - to.scale
    fits = rounded.is_valid()
    if whole < rounded.type.precision - scale:
        bound = pc.cast(pa.scalar(Decimal(10) ** whole), rounded.type)
        fits = pc.less(pc.abs(rounded), bound)
    return only(rounded, fits).cast(decimal(to.precision, to.scale)), fits


def _decimal_from_integer(values: Array, to: TypeName) -> Converted:
    return _decimal_from_decimal(values.cast(pa.decimal128(19, 0)), to)


def _decimal_from_float(values: Array, to: TypeName) -> Converted:
    scaled = pc.round(
        pc.multiply(pc.cast(values, DOUBLE), 10.0**to.scale), round_mode="half_towards_infinity"
    )
    fits = pc.less(pc.abs(scaled), 10.0**to.precision)
    units = only(scaled, fits).cast(pa.decimal128(38, 0))
    shifted = with_places(units, to.scale)
    return shifted.cast(decimal(to.precision, to.scale)), fits


def _decimal_from_text(values: Array, to: TypeName) -> Converted:
    numbers, fits = _numbers(values, _DECIMAL)
    converted, within = _decimal_from_decimal(numbers, to)
    return converted, pc.and_(fits, within)


def _numbers(values: Array, pattern: str) -> Converted:
    """Texts of a pattern as decimals of 38 digits before the point."""
    texts = pc.ascii_trim_whitespace(values)
    fits = pc.match_substring_regex(texts, pattern=pattern)
    texts = pc.replace_substring_regex(
        texts, pattern=rf"\A([^.]*\.[0-9]{{{TEXT_PLACES}}})[0-9]+\z", replacement=r"\1"
    )
    texts = pc.replace_substring_regex(texts, pattern=r"\A([+-]?)0+([0-9])", replacement=r"\1\2")
    short = pc.match_substring_regex(texts, pattern=r"\A[+-]?[0-9]{0,38}(?:\.|\z)")
    fits = pc.and_(fits, short)
    return only(texts, fits).cast(pa.decimal256(38 + TEXT_PLACES, TEXT_PLACES)), fits


def _text_from_plain(values: Array, _: TypeName) -> Converted:
    return _all(values, values.cast(TEXT))


def _date_from_timestamp(values: Array, _: TypeName) -> Converted:
    return _all(values, moments.clock(values).cast(DATE, safe=False))


def _date_from_text(values: Array, _: TypeName) -> Converted:
    return moments.dates_from(values)


def _timestamp_from_date(values: Array, _: TypeName) -> Converted:
    fits = _within(values.cast(pa.int32()), -_MAX_DAYS, _MAX_DAYS)
    return only(values, fits).cast(pa.timestamp("us")), fits


def _timestamp_from_text(values: Array, _: TypeName) -> Converted:
    return moments.timestamps_from(values)


CONVERSIONS: dict[tuple[Kind, Kind], Callable[[Array, TypeName], Converted]] = {
    (Kind.BOOLEAN, Kind.BOOLEAN): _same,
    (Kind.INTEGER, Kind.BOOLEAN): _boolean_from_integer,
    (Kind.TEXT, Kind.BOOLEAN): _boolean_from_text,
    (Kind.BOOLEAN, Kind.INTEGER): _integer_from_boolean,
    (Kind.INTEGER, Kind.INTEGER): _integer_from_integer,
    (Kind.FLOAT, Kind.INTEGER): _integer_from_float,
    (Kind.DECIMAL, Kind.INTEGER): _integer_from_decimal,
    (Kind.TEXT, Kind.INTEGER): _integer_from_text,
    (Kind.BOOLEAN, Kind.FLOAT): _float_from_number,
    (Kind.INTEGER, Kind.FLOAT): _float_from_number,
    (Kind.FLOAT, Kind.FLOAT): _float_from_number,
    (Kind.DECIMAL, Kind.FLOAT): _float_from_decimal,
    (Kind.TEXT, Kind.FLOAT): _float_from_text,
    (Kind.INTEGER, Kind.DECIMAL): _decimal_from_integer,
    (Kind.FLOAT, Kind.DECIMAL): _decimal_from_float,
    (Kind.DECIMAL, Kind.DECIMAL): _decimal_from_decimal,
    (Kind.TEXT, Kind.DECIMAL): _decimal_from_text,
    (Kind.BOOLEAN, Kind.TEXT): _text_from_plain,
    (Kind.INTEGER, Kind.TEXT): _text_from_plain,
    (Kind.DECIMAL, Kind.TEXT): _text_from_plain,
    (Kind.DATE, Kind.TEXT): _text_from_plain,
    (Kind.TEXT, Kind.TEXT): _same,
    (Kind.DATE, Kind.DATE): _same,
    (Kind.TIMESTAMP, Kind.DATE): _date_from_timestamp,
    (Kind.TEXT, Kind.DATE): _date_from_text,
    (Kind.DATE, Kind.TIMESTAMP): _timestamp_from_date,
    (Kind.TEXT, Kind.TIMESTAMP): _timestamp_from_text,
}
