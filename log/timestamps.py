"""Which timestamps a log takes, and how far ahead one counts. Pure.

A time far ahead would hold retention by age, which goes by the highest time so far. So a record may
be only a little later than the clock of the log's owner, and what is later all the same, in a log
that was written before this rule, counts as no time.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from duolog.errors import InvalidTimestamp

LATEST_TIME_MS: Final = 2**62
"""No log holds a later one, however far ahead times may be."""

_YEARS_AROUND_NOW: Final = 10
_YEAR_MS: Final = 365 * 86_400_000
_FINER_UNITS: Final = (("microseconds", 1000), ("nanoseconds", 1_000_000))


def latest_allowed_ms(now_ms: int, ahead_seconds: float) -> int:
    """The latest time that a record may have now."""
    return int(min(LATEST_TIME_MS, now_ms + ahead_seconds * 1000))


def check_not_ahead(ts_ms: int, latest_ms: int, what: str) -> None:
    """Raises InvalidTimestamp for a time beyond `latest_ms`, which comes of `latest_allowed_ms`."""
    if ts_ms > latest_ms:
        raise InvalidTimestamp(
            f"{what} has the time {shown_ms(ts_ms)}. {_advice(ts_ms, latest_ms)}"
        )


def shown_ms(ts_ms: int) -> str:
    """A time as a message shows it; Python refuses to write out very long numbers."""
    return str(ts_ms) if ts_ms.bit_length() <= 80 else f"of {ts_ms.bit_length()} bits"


def _advice(ts_ms: int, latest_ms: int) -> str:
    taken = f"The log takes up to {latest_ms} now ({_date(latest_ms)})"
    for unit, per_ms in _FINER_UNITS:
        if abs(ts_ms // per_ms - latest_ms) < _YEARS_AROUND_NOW * _YEAR_MS:
            return (
                f"{taken}, and this looks like {unit}: give milliseconds since 1970 "
                f"({ts_ms // per_ms})."
            )
    return (
        f"{taken}: milliseconds since 1970, at most max_timestamp_ahead_seconds ahead of its "
        "clock. Check the clock that gave this time."
    )


def _date(ts_ms: int) -> str:
    try:
        return datetime.fromtimestamp(ts_ms / 1000, UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError):
        return "without a limit"
