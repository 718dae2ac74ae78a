"""Metrics that are read off the log when somebody asks for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from duolog.bridge.metrics import names
from duolog.bridge.metrics.names import Metric
from duolog.bridge.metrics.tally import Sample
from duolog.errors import NotFound, OffsetOutOfRange
from duolog.log.model import Side
from duolog.log.offset_map import OffsetMap

if TYPE_CHECKING:
    from duolog.clock import Clock
    from duolog.log.access import LogAccess
    from duolog.log.model import GroupPosition, PartitionOffsets

Place = tuple[str, int]


class LookedUp:
    """Reads one log. Call it from one thread at a time."""

    def __init__(self, log: LogAccess, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._times: dict[tuple[str, int, int], int] = {}  # of the records that groups are at

    def samples(self) -> Mapping[Metric, list[Sample]]:
        """All of them, as of now."""
        found: dict[Metric, list[Sample]] = {}
        heads = self._heads()
        for (topic, partition), head in heads.items():
            labels = (topic, str(partition))
            found.setdefault(names.TOPIC_START, []).append((labels, head.start))
            found.setdefault(names.TOPIC_NEXT, []).append((labels, head.next_offset))
            found.setdefault(names.TOPIC_BYTES, []).append((labels, head.bytes))
        damaged: dict[tuple[str, str], float] = {}
        for damage in self._log.damage():
            place = damage.topic, str(damage.partition)
            count = damage.next_offset - damage.first_offset
            damaged[place] = damaged.get(place, 0) + count
        found[names.TOPIC_DAMAGED] = list(damaged.items())
        self._add_groups(found, heads)
        stats = self._log.stats()
        for metric, number in (
            (names.APPENDED, stats.records_appended),
            (names.DUPLICATES, stats.duplicates_dropped),
            (names.SYNCS, stats.syncs),
            (names.CACHE_HITS, stats.cache_hits),
            (names.CACHE_MISSES, stats.cache_misses),
        ):
            found[metric] = [((), number)]
        found[names.WRITERS_REMEMBERED] = [
            (("publisher",), stats.publishers_remembered),
            (("batch",), stats.batch_writers_remembered),
            (("stream",), stats.stream_writers_remembered),
        ]
        found[names.WRITERS_EXPIRED] = [
            (("publisher",), stats.publishers_expired),
            (("batch",), stats.batch_writers_expired),
        ]
        return found

    def _heads(self) -> dict[Place, PartitionOffsets]:
        heads: dict[Place, PartitionOffsets] = {}
        for topic in self._log.topics():
            try:
                heads.update(
                    {(each.topic, each.partition): each for each in self._offsets(topic.id)}
                )
            except NotFound:  # dropped meanwhile
                continue
        return heads

    def _offsets(self, topic_id: int) -> tuple[PartitionOffsets, ...]:
        return self._log.offsets(topic_id)

    def _add_groups(
        self, found: dict[Metric, list[Sample]], heads: Mapping[Place, PartitionOffsets]
    ) -> None:
        now_ms = self._clock.now_ms()
        times: dict[tuple[str, int, int], int] = {}
        maps = {
            (each.topic, each.partition): OffsetMap.of_mirror(each) for each in self._log.mirrors()
        }
        for at in self._log.group_positions():
            head = heads.get((at.topic, at.partition))
            if head is None:
                continue
            for side, position in _positions(at, maps.get((at.topic, at.partition))).items():
                begins = max(position, head.start)
                lag = max(0, head.next_offset - begins)
                oldest_ms = now_ms
                if lag:
                    place = (at.topic, at.partition, begins)
                    oldest_ms = times[place] = self._time_of(place, now_ms)
                labels = (at.group, at.topic, str(at.partition), side.value)
                for metric, number in (
                    (names.GROUP_POSITION, float(position)),
                    (names.GROUP_LAG, float(lag)),
                    (names.GROUP_LAG_SECONDS, max(0, now_ms - oldest_ms) / 1000),
                ):
                    found.setdefault(metric, []).append((labels, number))
                if side is Side.NATIVE:
                    stalled = _stalled_seconds(at, lag, now_ms)
                    found.setdefault(names.GROUP_STALLED, []).append((labels, stalled))
        self._times = times

    def _time_of(self, place: tuple[str, int, int], otherwise: int) -> int:
        """When the record at a place was made; what a group stands at seldom moves between two
        looks when it matters most, so the last answer is kept.
        """
        known = self._times.get(place)
        if known is not None:
            return known
        topic, partition, offset = place
        try:
            read = self._log.fetch(topic, partition, offset, max_records=1, skip_damaged=True)
        except (NotFound, OffsetOutOfRange):  # gone meanwhile
            return otherwise
        if not read.batches:
            return otherwise
        return int(read.batches[0].records.column("ts")[0].as_py())


def _positions(at: GroupPosition, places: OffsetMap | None) -> dict[Side, int]:
    """Where a group is on each side, as offsets of the log."""
    positions = {Side.NATIVE: at.position}
    held = None if at.kafka is None else at.kafka.held
    if places is not None and held is not None:
        there = places.to_log(held)
        if there is not None:
            positions[Side.KAFKA] = there
    return positions


def _stalled_seconds(at: GroupPosition, lag: int, now_ms: int) -> float:
    return max(0, now_ms - at.changed_at_ms) / 1000 if lag else 0.0
