"""Dates and timestamps: out of texts, into other units and zones, and their parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duolog.log.routing.filter.kinds import DATE, INTEGER, TEXT, Type
from duolog.log.routing.filter.steps import Array, Refusal, Values

_DAY = r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)"
_TIME = r"(?P<hour>[01]\d|2[0-3]):(?P<minute>[0-5]\d):(?P<second>[0-5]\d)(?:\.(?P<fraction>\d+))?"
_ZONE = r"(?: ?(?P<zone>[Zz]|(?P<sign>[+-])(?P<hours>[01]\d|2[0-3])(?::?(?P<minutes>[0-5]\d))?))?"
_TIMESTAMP = rf"\A{_DAY}(?:[ Tt]{_TIME}{_ZONE})?\z"
_LOOSE_DAY = r"\A(?P<year>\d{4})(?:-(?P<month>\d\d?)-(?P<day>\d\d?)|(?P<mm>\d\d)(?P<dd>\d\d))\z"

_UTC = frozenset(("UTC", "Etc/UTC", "GMT", "Z", "+00:00"))  # needs no time zone database
_DAY_SECONDS = 86_400
_NANOSECONDS = 1_000_000_000
_MAX_SECONDS = 9_223_372_036  # as far from 1970 as 64 bits of nanoseconds reach


def dates_from(texts: Array) -> tuple[Array, Array]:
    """Dates, and which of the texts are dates: 2024-01-31, 2024-1-31, 20240131, or timestamps."""
    stamps = _stamps(texts)
    loose = _Fields(texts, _LOOSE_DAY)
    days, real = _days(loose["year"], loose["month"] + loose["mm"], loose["day"] + loose["dd"])
    days = np.where(stamps.known, stamps.seconds // _DAY_SECONDS, days)
    known = stamps.known | (loose.matched & real)
    return _column(days.astype(np.int32), known).cast(DATE), pa.array(known)


def timestamps_from(texts: Array) -> tuple[Array, Array]:
    """Nanoseconds, in UTC where a text names a zone, and which of the texts are timestamps."""
    stamps = _stamps(texts)
    known = stamps.known & (np.abs(stamps.seconds) < _MAX_SECONDS)
    total = np.where(known, stamps.seconds, 0) * _NANOSECONDS + stamps.nanoseconds
    return _column(total, known).cast(pa.timestamp("ns")), pa.array(known)


def literal(text: str, type_: Type) -> Values:
    """A text in the filter itself, as the date or the timestamp that it is compared with."""
    stamps = _stamps(pa.array([text], TEXT))
    seconds, nanoseconds = int(stamps.seconds[0]), int(stamps.nanoseconds[0])
    if type_ == DATE:
        if not stamps.known[0] or len(text) != len("YYYY-MM-DD"):
            raise Refusal(f"'{text}' is no date: write YYYY-MM-DD.")
        return pc.cast(pa.scalar(seconds // _DAY_SECONDS, pa.int32()), DATE)
    if not stamps.known[0]:
        raise Refusal(f"'{text}' is no timestamp: write YYYY-MM-DD HH:MM:SS.")
    if stamps.zoned[0] and not type_.tz:
        raise Refusal(f"'{text}' names a zone, but what it is compared with has none.")
    value, unit = seconds * 1_000_000 + nanoseconds // 1000, "us"
    if nanoseconds % 1000:
        value, unit = seconds * _NANOSECONDS + nanoseconds, "ns"
        if abs(seconds) >= _MAX_SECONDS:
            raise Refusal(f"'{text}' is too far from 1970 to be counted in nanoseconds.")
    stamp = pc.cast(pa.scalar(value, INTEGER), pa.timestamp(unit))
    if stamps.zoned[0]:
        return pc.cast(stamp, pa.timestamp(unit, type_.tz))
    return in_zone(stamp, type_.tz) if type_.tz else stamp


def convert(values: Values, to: Type) -> Values:
    """Dates or timestamps as timestamps of a finer unit; what has no zone is local to the new."""
    if to.tz and not getattr(values.type, "tz", None):
        return in_zone(pc.cast(values, pa.timestamp(to.unit)), to.tz)
    return pc.cast(values, to)


def in_zone(values: Values, zone: str) -> Values:
    """Timestamps without a zone, understood as clock times of this one."""
    if zone in _UTC:
        return pc.cast(values, pa.timestamp(values.type.unit, zone))
    return pc.assume_timezone(values, zone)


def clock(values: Array) -> Array:
    """Timestamps as their zone's clocks show them, without the zone."""
    zone = values.type.tz
    if not zone:
        return values
    if zone in _UTC:
        return values.cast(pa.timestamp(values.type.unit))
    return pc.local_timestamp(values)


def extract(unit: str, values: Array) -> Array:
    """A part of dates or timestamps, as a number."""
    if values.type == DATE:
        if unit in ("hour", "minute", "second"):
            return pc.if_else(values.is_valid(), 0, pa.scalar(None, INTEGER))
        return getattr(pc, unit)(values)
    return getattr(pc, unit)(clock(values))


def truncate(unit: str, values: Array) -> Array:
    """Timestamps at the start of their year, quarter, month … or second."""
    if values.type == DATE:
        values = values.cast(pa.timestamp("us"))
    floored = pc.floor_temporal(clock(values), unit=unit)
    return in_zone(floored, values.type.tz) if values.type.tz else floored


@dataclass(frozen=True, slots=True)
class _Stamps:
    seconds: Any  # numpy, since 1970
    nanoseconds: Any
    known: Any
    zoned: Any


def _stamps(texts: Array) -> _Stamps:
    fields = _Fields(texts, _TIMESTAMP)
    days, real = _days(fields["year"], fields["month"], fields["day"])
    seconds = days * _DAY_SECONDS + fields["hour"] * 3600 + fields["minute"] * 60 + fields["second"]
    ahead = fields["hours"] * 3600 + fields["minutes"] * 60
    seconds -= np.where(fields.texts("sign") == "-", -ahead, ahead)
    return _Stamps(seconds, fields["fraction"], fields.matched & real, fields.texts("zone") != "")


class _Fields:
    """The groups of a pattern in each text, as integers; 0 where there is none."""

    def __init__(self, texts: Array, pattern: str) -> None:
        self._found = pc.extract_regex(texts, pattern=pattern)
        self.matched = self._found.is_valid().to_numpy(zero_copy_only=False)

    def texts(self, name: str) -> Any:
        return pc.fill_null(pc.struct_field(self._found, name), "").to_numpy(zero_copy_only=False)

    def __getitem__(self, name: str) -> Any:
        group = pc.fill_null(pc.struct_field(self._found, name), "")
        if name == "fraction":
            group = pc.utf8_slice_codeunits(pc.utf8_rpad(group, 9, "0"), 0, 9)
        return pc.cast(pc.if_else(pc.equal(group, ""), "0", group), INTEGER).to_numpy()


def _days(year: Any, month: Any, day: Any) -> tuple[Any, Any]:
    """Days since 1970, and whether the calendar has such a day."""
    months = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    first = months.astype("datetime64[D]").astype(np.int64)
    length = (months + 1).astype("datetime64[D]").astype(np.int64) - first
    real = (month >= 1) & (month <= 12) & (day >= 1) & (day <= length)
    return first + day - 1, real


def _column(values: Any, known: Any) -> Array:
    return pa.array(values, mask=~known)
