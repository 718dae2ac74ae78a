"""What the log remembers of its mirror in Kafka, as plain values.

Nothing here knows Kafka itself: offsets, ids and names are what the mirror was told there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise

from duolog.errors import InvalidRequest


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch of log offsets that lies in Kafka with one constant difference.

    Between two runs may be log offsets that Kafka could not take (skips), and Kafka offsets that
    somebody else wrote (holes). `skipped_before` counts the skips of the partition before the run.
    """

    first_log_offset: int
    first_kafka_offset: int
    count: int
    skipped_before: int = 0

    @property
    def next_log_offset(self) -> int:
        return self.first_log_offset + self.count

    @property
    def next_kafka_offset(self) -> int:
        return self.first_kafka_offset + self.count

    @property
    def difference(self) -> int:
        """What to add to a log offset of the run to get its Kafka offset."""
        return self.first_kafka_offset - self.first_log_offset

    def count_before(self, offset_within: int) -> int:
        """How many of its records lie before one that is so far from its first."""
        return min(self.count, max(0, offset_within))

    def cut(self, count: int) -> Run:
        """Its first records alone."""
        return replace(self, count=count)


class SkipReason(StrEnum):
    """Why records are not in Kafka."""

    TOO_LARGE = "too_large"
    TIME_REFUSED = "time_refused"  # a timestamp that the Kafka topic does not take
    GONE = "gone"  # retention was quicker than the mirror


@dataclass(frozen=True, slots=True)
class Skip:
    """Records that will never be in Kafka. Durable before what follows them is sent."""

    first_log_offset: int
    count: int
    reason: SkipReason

    @property
    def next_log_offset(self) -> int:
        return self.first_log_offset + self.count


@dataclass(frozen=True, slots=True)
class MirrorProducer:
    """The one producer id that a log has in a Kafka cluster."""

    cluster_id: str
    producer_id: int
    producer_epoch: int


@dataclass(frozen=True, slots=True)
class MirrorTarget:
    """Where a partition's records go. `kafka_topic_id` tells a topic from one made anew.

    Begins with the log offset and the Kafka offset at which the mirror was begun.
    """

    cluster_id: str
    kafka_topic: str
    kafka_topic_id: str
    producer_id: int
    producer_epoch: int
    begin_log_offset: int
    begin_kafka_offset: int


@dataclass(frozen=True, slots=True)
class MirrorChange:
    """What becomes of runs and skips: the first ones are kept, others follow.

    `version` is that of the mirror which was read; if it has changed since, nothing is done.
    """

    version: int
    kept_runs: int
    kept_skips: int
    runs: tuple[Run, ...] = ()
    skips: tuple[Skip, ...] = ()


@dataclass(frozen=True, slots=True)
class Mirror:
    """One partition's mirror. Runs and skips are in order, and never overlap.

    `version` grows with each change.
    """

    topic: str
    partition: int
    version: int
    target: MirrorTarget
    runs: tuple[Run, ...] = ()
    skips: tuple[Skip, ...] = ()

    @property
    def next_log_offset(self) -> int:
        """Everything before it is in Kafka or skipped.

        Skips may lie beyond it: when Kafka has lost records, their runs are cut and skips stay.
        """
        reached = self.runs[-1].next_log_offset if self.runs else self.target.begin_log_offset
        for skip in self.skips:
            if skip.first_log_offset <= reached:
                reached = max(reached, skip.next_log_offset)
        return reached

    @property
    def next_kafka_offset(self) -> int:
        """Where Kafka's end was when the last of ours was written."""
        return self.runs[-1].next_kafka_offset if self.runs else self.target.begin_kafka_offset

    def kafka_offset_of(self, position: int) -> int:
        """Where the first mirrored record at or after a position is; else where the last ends."""
        for run in self.runs:
            if position < run.next_log_offset:
                return run.first_kafka_offset + max(0, position - run.first_log_offset)
        return self.next_kafka_offset

    def is_same_place(self, position: int, kafka_offset: int) -> bool:
        """Whether as many of the mirrored records lie before the one as before the other."""
        before = sum(run.count_before(position - run.first_log_offset) for run in self.runs)
        return before == sum(
            run.count_before(kafka_offset - run.first_kafka_offset) for run in self.runs
        )

    def skipped_before(self, log_offset: int) -> int:
        """How many records before this one are not in Kafka."""
        return sum(skip.count for skip in self.skips if skip.first_log_offset < log_offset)

    def changed(self, change: MirrorChange) -> Mirror:
        """The mirror after a change, which must leave runs and skips in order."""
        runs = (*self.runs[: change.kept_runs], *change.runs)
        skips = (*self.skips[: change.kept_skips], *change.skips)
        begin = self.target.begin_log_offset
        _check_order(runs, begin)
        _check_order(skips, begin)
        stretches: list[Run | Skip] = [*runs, *skips]
        _check_order(sorted(stretches, key=lambda stretch: stretch.first_log_offset), begin)
        if any(b.first_kafka_offset < a.next_kafka_offset for a, b in pairwise(runs)):
            raise InvalidRequest(f"The runs of {self.topic}/{self.partition} overlap in Kafka.")
        return replace(self, version=self.version + 1, runs=runs, skips=skips)


def _check_order(stretches: Sequence[Run | Skip], reached: int) -> None:
    for stretch in stretches:
        if stretch.count < 1 or stretch.first_log_offset < reached:
            raise InvalidRequest(
                f"{stretch} cannot be a part of a mirror: it is empty, or what is before it "
                f"reaches to {reached}."
            )
        reached = stretch.next_log_offset
