"""Where a read begins or ends, before the log is asked what that means."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from duolog.connector.option_text import numbers_by_partition
from duolog.errors import InvalidSetting
from duolog.log.model import AtOffset, AtTimestamp, Earliest, Latest, Start

LATEST_NUMBER: Final = -1
EARLIEST_NUMBER: Final = -2
_WORDS: Final[Mapping[str, Start]] = {"earliest": Earliest(), "latest": Latest()}


@dataclass(frozen=True, slots=True)
class Everywhere:
    """The same for all partitions."""

    at: Start


@dataclass(frozen=True, slots=True)
class Each:
    """One for each topic and partition, all of which have to be named."""

    option: str
    at: Mapping[tuple[str, int], Start]


Points: TypeAlias = Everywhere | Each


def starting_points(known: Mapping[str, str], *, streaming: bool) -> Points:
    """By startingTimestamp, else startingOffsetsByTimestamp, else startingOffsets."""
    default: Start = Latest() if streaming else Earliest()
    return _points(known, "starting", default, lambda at: _check_start(at, streaming))


def ending_points(known: Mapping[str, str]) -> Points:
    """By endingTimestamp, else endingOffsetsByTimestamp, else endingOffsets."""
    return _points(known, "ending", Latest(), _check_end)


def _points(
    known: Mapping[str, str], begins: str, default: Start, check: Callable[[Start], None]
) -> Points:
    once, by_timestamp, by_offset = (
        f"{begins}{rest}" for rest in ("Timestamp", "OffsetsByTimestamp", "Offsets")
    )
    if once in known:
        return Everywhere(_timestamp(once, known[once]))
    if by_timestamp in known:
        times = numbers_by_partition(by_timestamp, known[by_timestamp])
        return Each(by_timestamp, {place: AtTimestamp(ts) for place, ts in times.items()})
    words = known.get(by_offset)
    if words is None:
        return Everywhere(default)
    word = _WORDS.get(words.lower())
    if word is not None:
        check(word)
        return Everywhere(word)
    numbers = numbers_by_partition(by_offset, words)
    points = {place: _by_number(by_offset, number) for place, number in numbers.items()}
    for point in points.values():
        check(point)
    return Each(by_offset, points)


def _by_number(name: str, number: int) -> Start:
    if number == LATEST_NUMBER:
        return Latest()
    if number == EARLIEST_NUMBER:
        return Earliest()
    if number < 0:
        raise InvalidSetting(
            f"Option '{name}' has the offset {number}. Offsets are 0 or more; -1 is latest, -2 is "
            "earliest."
        )
    return AtOffset(number)


def _timestamp(name: str, words: str) -> AtTimestamp:
    try:
        return AtTimestamp(int(words))
    except ValueError:
        raise InvalidSetting(
            f"Option '{name}' must be milliseconds since 1970, for all partitions; got '{words}'."
        ) from None


def _check_start(at: Start, streaming: bool) -> None:
    if at == Latest() and not streaming:
        raise InvalidSetting(
            "A batch read cannot start at the latest offset: it would find nothing. Give option "
            "'startingOffsets' as earliest, or as offsets without -1."
        )


def _check_end(at: Start) -> None:
    if at == Earliest():
        raise InvalidSetting(
            "A batch read cannot end at the earliest offset: it would find nothing. Give option "
            "'endingOffsets' as latest, or as offsets without -2."
        )
