"""Where a read begins and ends in a certain log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from duolog.connector.source.choice import Kept, Place
from duolog.connector.source.points import Each, Everywhere, Points
from duolog.errors import InvalidSetting, OffsetOutOfRange
from duolog.log.model import AtOffset, AtTimestamp, Earliest, Latest, Start

if TYPE_CHECKING:
    from duolog.log.access import LogAccess


def starts(
    log: LogAccess,
    points: Points,
    places: Mapping[Place, Kept],
    *,
    error_without_match: bool,
    fail_on_data_loss: bool,
) -> dict[Place, int]:
    """The first offset to read of each partition.

    OffsetOutOfRange for an offset that is not kept, unless loss is to be passed over.
    """
    found = {}
    for place, point in _by_place(log, points, places).items():
        kept = places[place]
        offset = _offset(log, place, kept, point)
        if isinstance(point, AtTimestamp) and offset == kept.latest and error_without_match:
            raise InvalidSetting(
                f"The {place} has no record as late as {point.ts_ms}. Take an earlier timestamp, "
                "or set option startingOffsetsByTimestampStrategy to latest."
            )
        if not kept.earliest <= offset <= kept.latest:
            if fail_on_data_loss:
                raise _out_of_range(place, kept, offset)
            offset = max(kept.earliest, min(offset, kept.latest))
        found[place] = offset
    return found


def ends(
    log: LogAccess, points: Points, places: Mapping[Place, Kept], *, fail_on_data_loss: bool
) -> dict[Place, int]:
    """The first offset of each partition that is not read any more."""
    found = {}
    for place, point in _by_place(log, points, places).items():
        kept = places[place]
        offset = _offset(log, place, kept, point)
        if offset > kept.latest:
            if fail_on_data_loss:
                raise _out_of_range(place, kept, offset)
            offset = kept.latest
        found[place] = offset
    return found


def _by_place(
    log: LogAccess, points: Points, places: Mapping[Place, Kept]
) -> Mapping[Place, Start]:
    if isinstance(points, Everywhere):
        return dict.fromkeys(places, points.at)
    return _named(log, points, places)


def _named(log: LogAccess, points: Each, places: Mapping[Place, Kept]) -> dict[Place, Start]:
    """As in Kafka's source, all partitions have to be named and no others."""
    by_id = {(place.topic_id, place.partition): place for place in places}
    found: dict[Place, Start] = {}
    for (topic, partition), point in points.at.items():
        place = by_id.get((log.topic(topic).id, partition))
        if place is None:
            raise InvalidSetting(
                f"Option '{points.option}' names topic '{topic}' partition {partition}, which is "
                "not among what is read. Leave it out, or read it too."
            )
        found[place] = point
    missing = [str(place) for place in places if place not in found]
    if missing:
        raise InvalidSetting(
            f"Option '{points.option}' leaves out {', '.join(missing[:5])}. Name all partitions "
            "(in offsets, -2 is earliest and -1 is latest)."
        )
    return found


def _offset(log: LogAccess, place: Place, kept: Kept, point: Start) -> int:
    match point:
        case Earliest():
            return kept.earliest
        case Latest():
            return kept.latest
        case AtOffset(offset):
            return offset
        case AtTimestamp():
            return log.resolve(place.topic_id, place.partition, point)


def _out_of_range(place: Place, kept: Kept, offset: int) -> OffsetOutOfRange:
    return OffsetOutOfRange(
        topic=place.topic,
        partition=place.partition,
        offset=offset,
        earliest=kept.earliest,
        latest=kept.latest,
    )
