"""Counts and durations as they come up. Safe to use from many threads."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence

from duolog.bridge.metrics.bounds import TOGETHER, MetricRules, shown_alone
from duolog.bridge.metrics.names import Kind, Metric

Labels = tuple[str, ...]
Sample = tuple[Labels, float]
Samples = Mapping[Metric, Sequence[Sample]]


class Durations:
    """A histogram of one set of labels."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)  # by bucket, the last one without an upper end
        self.total = 0.0

    def note(self, seconds: float) -> None:
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.total += seconds


class Tally:
    """All counters, gauges and histograms of one host.

    A counter by topic has so many topics as `rules` say, and what comes later is counted together:
    a topic that had a series of its own keeps it, so no counter ever goes down.
    """

    def __init__(self, rules: MetricRules | None = None) -> None:
        self._rules = rules or MetricRules()
        self._topics: dict[Metric, set[str]] = {}  # those that have a series of their own
        self._guard = threading.Lock()
        self._numbers: dict[tuple[Metric, Labels], float] = {}
        self._durations: dict[tuple[Metric, Labels], Durations] = {}
        self._sources: tuple[Callable[[], Samples], ...] = ()

    def ask(self, source: Callable[[], Samples]) -> None:
        """Have metrics told by somebody else, whenever they are asked for, from any thread."""
        with self._guard:
            self._sources = (*self._sources, source)

    def asked(self) -> dict[Metric, Sequence[Sample]]:
        """What others tell now."""
        found: dict[Metric, Sequence[Sample]] = {}
        for source in self._sources:
            found.update(source())
        return found

    def add(self, metric: Metric, *labels: str, by: float = 1) -> None:
        """Count, up or (a gauge) down."""
        labels = _checked(metric, labels)
        with self._guard:
            if metric.labels == ("topic",):
                labels = (self._topic_shown(metric, *labels),)
            key = (metric, labels)
            self._numbers[key] = self._numbers.get(key, 0) + by

    def put(self, metric: Metric, *labels: str, number: float) -> None:
        """Set a gauge."""
        key = (metric, _checked(metric, labels))
        with self._guard:
            self._numbers[key] = number

    def put_topics(self, metric: Metric, numbers: Mapping[str, float]) -> None:
        """Set a gauge by topic to these and no others: the highest ones are shown alone."""
        ranked = sorted(numbers, key=lambda topic: (-numbers[topic], topic))
        most, is_named = self._rules.max_topic_partitions, self._rules.is_named_topic
        alone = shown_alone(((topic, 1) for topic in ranked), most, is_named)
        shown = {topic: numbers[topic] for topic in alone}
        if len(alone) < len(numbers):
            shown[TOGETHER] = sum(numbers[topic] for topic in numbers.keys() - alone)
        with self._guard:
            for key in [key for key in self._numbers if key[0] is metric]:
                del self._numbers[key]
            self._numbers.update(
                {(metric, _checked(metric, (topic,))): shown[topic] for topic in shown}
            )

    def note(self, metric: Metric, *labels: str, seconds: float) -> None:
        """Add a duration to a histogram."""
        key = (metric, _checked(metric, labels))
        with self._guard:
            found = self._durations.get(key)
            if found is None:
                found = self._durations[key] = Durations(metric.bounds)
            found.note(seconds)

    def _topic_shown(self, metric: Metric, topic: str) -> str:
        alone = self._topics.setdefault(metric, set())
        if topic not in alone and not self._rules.is_named_topic(topic):
            if len(alone) >= self._rules.max_topic_partitions:
                return TOGETHER
            alone.add(topic)
        return topic

    def number(self, metric: Metric, *labels: str) -> float:
        """What it stands at; 0 when nothing was counted."""
        with self._guard:
            return self._numbers.get((metric, labels), 0)

    def numbers(self, metric: Metric) -> list[Sample]:
        """What each set of labels stands at. Without labels there is always one."""
        with self._guard:
            found = [(key[1], number) for key, number in self._numbers.items() if key[0] is metric]
        if not metric.labels and not found:
            return [((), 0)]
        return found

    def durations(self, metric: Metric) -> Iterator[tuple[Labels, Durations]]:
        """A copy of each set of labels."""
        with self._guard:
            found = [(key[1], each) for key, each in self._durations.items() if key[0] is metric]
            copies = []
            for labels, each in found:
                copy = Durations(each.bounds)
                copy.counts, copy.total = list(each.counts), each.total
                copies.append((labels, copy))
        yield from copies


def _checked(metric: Metric, labels: Labels) -> Labels:
    if len(labels) != len(metric.labels):
        raise ValueError(f"{metric.name} has the labels {metric.labels}; got {labels}")
    if metric.kind is Kind.HISTOGRAM and not metric.bounds:
        raise ValueError(f"{metric.name} is a histogram without buckets")
    return labels
