"""Metrics that are read off the log when somebody asks for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from duolog.bridge.metrics import names
from duolog.bridge.metrics.bounds import TOGETHER, MetricRules, shown_alone
from duolog.bridge.metrics.names import Metric
from duolog.bridge.metrics.tally import Labels, Sample
from duolog.log.model import Side
from duolog.log.offset_map import OffsetMap

if TYPE_CHECKING:
    from duolog.clock import Clock
    from duolog.log.access import LogAccess
    from duolog.log.model import GroupPosition, PartitionOffsets

Place = tuple[str, int, int]  # topic, partition, offset
GroupInTopic = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Standing:
    """A group in one partition, as one side has it."""

    at: GroupPosition
    side: Side
    position: int
    begins: int  # what is before that is read, or is not kept any longer
    lag: int

    @property
    def group(self) -> GroupInTopic:
        return self.at.group, self.at.topic

    @property
    def place(self) -> Place:
        return self.at.topic, self.at.partition, self.begins


class LookedUp:
    """Reads one log. Call it from one thread at a time."""

    def __init__(self, log: LogAccess, clock: Clock, rules: MetricRules | None = None) -> None:
        self._log = log
        self._clock = clock
        self._rules = rules or MetricRules()
        self._times: dict[Place, int | None] = {}  # of the records that groups are at

    def samples(self) -> Mapping[Metric, list[Sample]]:
        """All of them, as of now."""
        found: dict[Metric, list[Sample]] = {}
        heads = self._log.all_offsets()
        self._add_topics(found, heads)
        self._add_groups(found, {(each.topic, each.partition): each for each in heads})
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

    def _add_topics(
        self, found: dict[Metric, list[Sample]], heads: Sequence[PartitionOffsets]
    ) -> None:
        sizes: Counter[str] = Counter()
        partitions: Counter[str] = Counter()
        for head in heads:
            sizes[head.topic] += head.bytes
            partitions[head.topic] += 1
        ranked = sorted(sizes, key=lambda topic: (-sizes[topic], topic))
        alone = shown_alone(
            ((topic, partitions[topic]) for topic in ranked),
            self._rules.max_topic_partitions,
            self._rules.is_named_topic,
        )
        found[names.TOPICS] = _counts(len(alone), len(sizes))
        shown = [head for head in heads if head.topic in alone]
        places = [(head.topic, str(head.partition)) for head in shown]
        for metric, numbers in (
            (names.TOPIC_START, [head.start for head in shown]),
            (names.TOPIC_NEXT, [head.next_offset for head in shown]),
            (names.TOPIC_BYTES, [head.bytes for head in shown]),
        ):
            found[metric] = list(zip(places, numbers, strict=True))
        if len(alone) < len(sizes):
            others = sum(size for topic, size in sizes.items() if topic not in alone)
            found[names.TOPIC_BYTES].append(((TOGETHER, TOGETHER), others))
        found[names.TOPIC_DAMAGED] = self._damaged()

    def _damaged(self) -> list[Sample]:
        """Also of topics that are shown together: it is what somebody has to look at."""
        damaged: Counter[tuple[str, str]] = Counter()
        for each in self._log.damage():
            damaged[each.topic, str(each.partition)] += each.next_offset - each.first_offset
        most, is_named = self._rules.max_topic_partitions, self._rules.is_named_topic
        ranked = ((place, 1) for place, _ in damaged.most_common())
        alone = shown_alone(ranked, most, lambda place: is_named(place[0]))
        shown: Counter[Labels] = Counter()
        for place, count in damaged.items():
            shown[place if place in alone else (TOGETHER, TOGETHER)] += count
        return list(shown.items())

    def _add_groups(
        self,
        found: dict[Metric, list[Sample]],
        heads: Mapping[tuple[str, int], PartitionOffsets],
    ) -> None:
        now_ms = self._clock.now_ms()
        standings = list(self._standings(heads))
        groups = {each.group for each in standings}
        alone = self._groups_alone(standings)
        found[names.GROUPS] = _counts(len(alone), len(groups))
        shown = [each for each in standings if each.group in alone]
        self._look_up_times({each.place for each in shown if each.lag})
        for each in shown:
            labels = (*each.group, str(each.at.partition), each.side.value)
            made_ms = self._times.get(each.place) if each.lag else None
            waited_ms = 0 if made_ms is None else max(0, now_ms - made_ms)
            for metric, number in (
                (names.GROUP_POSITION, float(each.position)),
                (names.GROUP_LAG, float(each.lag)),
                (names.GROUP_LAG_SECONDS, waited_ms / 1000),
            ):
                found.setdefault(metric, []).append((labels, number))
            if each.side is Side.NATIVE:
                stalled = (labels, _stalled_seconds(each, now_ms))
                found.setdefault(names.GROUP_STALLED, []).append(stalled)
        self._add_together(found, [each for each in standings if each.group not in alone], now_ms)

    def _standings(self, heads: Mapping[tuple[str, int], PartitionOffsets]) -> Iterator[_Standing]:
        maps = {
            (each.topic, each.partition): OffsetMap.of_mirror(each) for each in self._log.mirrors()
        }
        for at in self._log.group_positions():
            head = heads.get((at.topic, at.partition))
            if head is None:
                continue
            for side, position in _positions(at, maps.get((at.topic, at.partition))).items():
                begins = max(position, head.start)
                yield _Standing(at, side, position, begins, max(0, head.next_offset - begins))

    def _groups_alone(self, standings: Iterable[_Standing]) -> set[GroupInTopic]:
        """Those that are most behind, on the side on which they are."""
        lags: dict[GroupInTopic, Counter[Side]] = {}
        partitions: dict[GroupInTopic, set[int]] = {}
        for each in standings:
            lags.setdefault(each.group, Counter())[each.side] += each.lag
            partitions.setdefault(each.group, set()).add(each.at.partition)
        ranked = sorted(lags, key=lambda group: (-max(lags[group].values()), group))
        return shown_alone(
            ((group, len(partitions[group])) for group in ranked),
            self._rules.max_group_partitions,
            lambda group: self._rules.is_named_group(group[0]),
        )

    def _look_up_times(self, places: set[Place]) -> None:
        """When records were made, all at once. What a group stands at seldom moves between two
        looks when it matters most, so the last answers are kept.
        """
        known: dict[Place, int | None] = {
            place: made for place, made in self._times.items() if place in places and made
        }
        unknown = sorted(places - known.keys())
        if unknown:
            known |= dict(zip(unknown, self._log.record_times(unknown), strict=True))
        self._times = known

    def _add_together(
        self, found: dict[Metric, list[Sample]], others: Iterable[_Standing], now_ms: int
    ) -> None:
        lags: Counter[Side] = Counter()
        stalled: dict[Side, float] = {}
        for each in others:
            lags[each.side] += each.lag
            if each.side is Side.NATIVE:
                longest = stalled.get(each.side, 0.0)
                stalled[each.side] = max(longest, _stalled_seconds(each, now_ms))
        for metric, numbers in ((names.GROUP_LAG, lags), (names.GROUP_STALLED, stalled)):
            for side, number in numbers.items():
                labels = (TOGETHER, TOGETHER, TOGETHER, side.value)
                found.setdefault(metric, []).append((labels, number))


def _counts(alone: int, of: int) -> list[Sample]:
    return [(("alone",), alone), (("together",), of - alone)]


def _positions(at: GroupPosition, places: OffsetMap | None) -> dict[Side, int]:
    """Where a group is on each side, as offsets of the log."""
    positions = {Side.NATIVE: at.position}
    held = None if at.kafka is None else at.kafka.held
    if places is not None and held is not None:
        there = places.to_log(held)
        if there is not None:
            positions[Side.KAFKA] = there
    return positions


def _stalled_seconds(standing: _Standing, now_ms: int) -> float:
    return max(0, now_ms - standing.at.changed_at_ms) / 1000 if standing.lag else 0.0
