"""What an audit says. Equal only when everything that was to be compared was, and is equal."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

MOST_SHOWN = 100
"""So many differences are kept of each partition; all are counted."""


class Finding(StrEnum):
    """In which way the two sides differ."""

    MISSING_IN_KAFKA = "missing_in_kafka"
    KEY_DIFFERS = "key_differs"
    VALUE_DIFFERS = "value_differs"
    HEADERS_DIFFER = "headers_differ"
    OFFSET_HEADER_DIFFERS = "offset_header_differs"  # the one that the mirror adds
    TIME_DIFFERS = "time_differs"
    COPY_IN_KAFKA = "copy_in_kafka"  # one of ours, once more, where no run is
    NOT_ACCOUNTED_FOR = "not_accounted_for"  # before the mirror's end, in no run and no skip
    RUNS_OVERLAP = "runs_overlap"
    RUN_BEYOND_KAFKA = "run_beyond_kafka"  # Kafka's log ends before a run does
    RUN_BEYOND_LOG = "run_beyond_log"
    DAMAGED_IN_LOG = "damaged_in_log"  # cannot be decoded there, and was not skipped
    OTHER_TOPIC = "other_topic"  # deleted and made anew, or gone
    PARTITIONS_DIFFER = "partitions_differ"
    NOT_MIRRORED = "not_mirrored"  # a partition whose sisters are
    POSITION_DIFFERS = "position_differs"


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not equal, with its place."""

    finding: Finding
    said: str
    log_offset: int | None = None
    kafka_offset: int | None = None

    def as_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {"finding": self.finding.value, "said": self.said}
        if self.log_offset is not None:
            told["offset"] = self.log_offset
        if self.kafka_offset is not None:
            told["kafka_offset"] = self.kafka_offset
        return told


class Differences:
    """The first of them as they are, all of them as counts."""

    def __init__(self, most_shown: int = MOST_SHOWN) -> None:
        self._most_shown = most_shown
        self._shown: list[Difference] = []
        self._counts: dict[Finding, int] = {}

    def add(self, difference: Difference) -> None:
        self._counts[difference.finding] = self._counts.get(difference.finding, 0) + 1
        if len(self._shown) < self._most_shown:
            self._shown.append(difference)

    @property
    def shown(self) -> tuple[Difference, ...]:
        return tuple(self._shown)

    @property
    def counts(self) -> dict[Finding, int]:
        return dict(self._counts)


@dataclass(frozen=True, slots=True)
class PartitionReport:
    """One partition. Offsets are the log's but where Kafka is named."""

    topic: str
    partition: int
    kafka_topic: str
    compared: int = 0
    pending: int = 0  # in the log and not yet in Kafka
    skipped: int = 0  # what Kafka could not take
    foreign: int = 0  # in Kafka, and nobody of us wrote it
    not_comparable: int = 0  # still in Kafka, and the log has let it go, or skipped it
    runs: int = 0
    differences: tuple[Difference, ...] = ()
    counts: dict[Finding, int] = field(default_factory=dict)

    @property
    def is_equal(self) -> bool:
        return not self.counts

    def as_json(self) -> dict[str, Any]:
        return {
            "topic": self.topic,
            "partition": self.partition,
            "kafka_topic": self.kafka_topic,
            "equal": self.is_equal,
            "compared": self.compared,
            "pending": self.pending,
            "skipped": self.skipped,
            "foreign": self.foreign,
            "not_comparable": self.not_comparable,
            "runs": self.runs,
            "counts": {finding.value: count for finding, count in self.counts.items()},
            "differences": [difference.as_json() for difference in self.differences],
        }


@dataclass(frozen=True, slots=True)
class PositionReport:
    """One group in one partition. `expected` is Kafka's offset for the log's position.

    Another offset is as good when nothing of ours lies between the two.
    """

    group: str
    topic: str
    partition: int
    position: int | None
    expected: int | None
    kafka_position: int | None
    is_equal: bool

    def as_json(self) -> dict[str, Any]:
        return {
            "group": self.group,
            "topic": self.topic,
            "partition": self.partition,
            "equal": self.is_equal,
            "position": self.position,
            "expected": self.expected,
            "kafka_position": self.kafka_position,
        }


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The whole of it."""

    partitions: tuple[PartitionReport, ...]
    positions: tuple[PositionReport, ...]
    sampled: int | None
    seconds: float

    @property
    def compared(self) -> int:
        return sum(report.compared for report in self.partitions)

    @property
    def is_equal(self) -> bool:
        """Whether all is equal, and there was something to compare."""
        return (
            bool(self.partitions)
            and all(report.is_equal for report in self.partitions)
            and all(report.is_equal for report in self.positions)
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "equal": self.is_equal,
            "compared": self.compared,
            "sampled": self.sampled,
            "seconds": round(self.seconds, 3),
            "partitions": [report.as_json() for report in self.partitions],
            "positions": [report.as_json() for report in self.positions],
        }
