"""Single values as JSON text, by type."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duolog.log.routing.json_strings import base64_text, escaped
from duolog.log.routing.json_text import Text, text_of
from duolog.log.routing.json_times import date_text, time_text, timestamp_text
from duolog.log.routing.kinds import is_binary, is_string

if TYPE_CHECKING:
    from collections.abc import Callable

    Writer = Callable[[pa.Array, str], Text]  # the values, and their column's name for errors


def scalar_writer(kind: pa.DataType, *, int64_as_string: bool) -> Writer | None:
    """What writes values of this type; none when JSON has no form for it, or it is nested."""
    types = pa.types
    if int64_as_string and (types.is_int64(kind) or types.is_uint64(kind)):
        return _quoted_number
    if is_string(kind):
        return string_text
    if is_binary(kind):
        return _base64
    for belongs, writer in (
        (types.is_null, _plain),
        (types.is_boolean, _plain),
        (types.is_integer, _plain),
        (types.is_floating, _floating),
        (types.is_decimal, _decimal),
        (types.is_date, _date),
        (types.is_time, _time),
        (types.is_timestamp, _timestamp),
    ):
        if belongs(kind):
            return writer
    return None


def string_text(values: pa.Array, _name: str) -> Text:
    """Strings of any kind, in quotes."""
    return text_of('"', escaped(values.cast(pa.string())), '"')


def _plain(values: pa.Array, _name: str) -> Text:
    return text_of(values.cast(pa.string()))


def _quoted_number(values: pa.Array, _name: str) -> Text:
    return text_of('"', values.cast(pa.string()), '"')


def _base64(values: pa.Array, _name: str) -> Text:
    return text_of('"', base64_text(values.cast(pa.binary())), '"')


def _date(values: pa.Array, name: str) -> Text:
    return text_of('"', date_text(values, name), '"')


def _time(values: pa.Array, name: str) -> Text:
    return text_of('"', time_text(values, name), '"')


def _timestamp(values: pa.Array, name: str) -> Text:
    return text_of('"', timestamp_text(values, name), '"' if values.type.tz is None else 'Z"')


def _floating(values: pa.Array, _name: str) -> Text:
    numbers = values.to_numpy(zero_copy_only=False)  # a null becomes NaN
    if pa.types.is_float16(values.type):
        single = pa.array(numbers.astype(np.float32))
        values = pc.if_else(values.is_valid(), single, pa.scalar(None, pa.float32()))
    text = values.cast(pa.string())
    finite = np.isfinite(numbers)
    whole = finite & (np.trunc(numbers) == numbers)
    if whole.any():
        # Arrow writes 1.0 as 1, which would read back as an integer.
        some = text.filter(pa.array(whole))
        pointed = text_of(some, ".0").joined()
        pointed = pc.if_else(pc.match_substring(some, "e"), some, pointed)
        text = pc.replace_with_mask(text, pa.array(whole), pointed)
    unwritable = ~finite & values.is_valid().to_numpy(zero_copy_only=False)
    if unwritable.any():
        odd = numbers[unwritable]
        words = np.where(np.isnan(odd), '"NaN"', np.where(odd > 0, '"Infinity"', '"-Infinity"'))
        text = pc.replace_with_mask(text, pa.array(unwritable), pa.array(words, pa.string()))
    return text_of(text)


def _decimal(values: pa.Array, _name: str) -> Text:
    precision, scale = values.type.precision, values.type.scale
    if scale < 0:
        values = values.cast(pa.decimal256(precision - scale, 0))
    elif values.type.bit_width < 128:
        values = values.cast(pa.decimal128(precision, scale))
    text = values.cast(pa.string())
    # Arrow writes values close to zero, and zero itself at larger scales, with an exponent.
    small = pc.match_substring(text, "E").fill_null(False)
    if pc.any(small).as_py():
        text = pc.replace_with_mask(text, small, _without_exponent(text.filter(small), scale))
    return text_of('"', text, '"')


def _without_exponent(text: pa.StringArray, scale: int) -> pa.StringArray:
    """Of decimals below one: the digits, set behind the point by the scale."""
    digits = pc.replace_substring_regex(text, "[-.]|E.*", "")
    sign = pc.if_else(pc.starts_with(text, "-"), "-", "")
    return text_of(sign, "0.", pc.utf8_lpad(digits, scale, "0")).joined()
