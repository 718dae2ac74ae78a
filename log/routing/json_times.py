"""Dates and times as ISO 8601: fractions of a second in three, six or nine digits, as needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from duolog.errors import InvalidRows
from duolog.log.routing.json_text import characters, from_characters

if TYPE_CHECKING:
    import numpy.typing as npt

_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_DAY_SECONDS = 86_400
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31


def date_text(dates: pa.Array, name: str) -> pa.StringArray:
    """YYYY-MM-DD."""
    days = dates.cast(pa.date32())
    _check_range(days.cast(pa.int32()), _FIRST_DAY, _LAST_DAY, name, dates.type)
    return days.cast(pa.string())


def time_text(times: pa.Array, name: str) -> pa.StringArray:
    """HH:MM:SS and the fraction."""
    numbers = times.cast(pa.int32() if times.type.bit_width == 32 else pa.int64())
    per_second = 10 ** _DIGITS[times.type.unit]
    _check_range(numbers, 0, _DAY_SECONDS * per_second - 1, name, times.type)
    return _trimmed(times, numbers, times.type.unit)


def timestamp_text(moments: pa.Array, name: str) -> pa.StringArray:
    """YYYY-MM-DDTHH:MM:SS and the fraction; in UTC where the type has a zone."""
    unit = moments.type.unit
    numbers = moments.cast(pa.int64())
    per_day = _DAY_SECONDS * 10 ** _DIGITS[unit]
    _check_range(numbers, _FIRST_DAY * per_day, (_LAST_DAY + 1) * per_day - 1, name, moments.type)
    return _trimmed(numbers.cast(pa.timestamp(unit)), numbers, unit)


def _trimmed(times: pa.Array, numbers: pa.Array, unit: str) -> pa.StringArray:
    """The text of times without needless digits, and with a T before the time of day.

    What is kept depends on the value alone, so that a row's text is the same in any batch.
    """
    rows = len(times)
    if times.null_count == rows:
        return pa.nulls(rows, pa.string())
    fixed = times.fill_null(pa.scalar(0, times.type)).cast(pa.string())
    _, content = characters(fixed)
    cells = content.reshape(rows, -1).copy()
    if pa.types.is_timestamp(times.type):
        cells[:, 10] = ord("T")
    fraction = numbers.fill_null(0).to_numpy() % 10 ** _DIGITS[unit]
    width = np.full(rows, cells.shape[1])
    for dropped in range(3, _DIGITS[unit] + 1, 3):
        width -= 3 * (fraction % 10**dropped == 0)
    width -= fraction == 0 if unit != "s" else 0  # the point goes too
    if width.min() == width.max():
        kept = cells[:, : width[0]].reshape(-1)
    else:
        kept = cells[np.arange(cells.shape[1]) < width[:, None]]
    bounds = np.concatenate(([0], np.cumsum(width)))
    return from_characters(bounds, kept, times)


def _check_range(numbers: pa.Array, lowest: int, highest: int, name: str, kind: object) -> None:
    values: npt.NDArray[np.int64] = numbers.drop_null().to_numpy()
    outside = (values < lowest) | (values > highest)
    if outside.any():
        raise InvalidRows(
            f"Column '{name}' of type {kind} holds {values[outside][0]}, which ISO 8601 has no "
            "text for: years go from 1 to 9999 and times of day to 24 hours. Correct the value, or "
            "cast the column to a number."
        )
