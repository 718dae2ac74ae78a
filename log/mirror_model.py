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

    def cut(self, count: int) -> Run:
        """Its first records alone."""
        return replace(self, count=count)


class SkipReason(StrEnum):
    """Why records are not in Kafka."""

    TOO_LARGE = "too_large"
    TIME_REFUSED = "time_refused"  # a timestamp that the Kafka topic does not take
    GONE = "gone"  # retention was quicker than the mirror
    DAMAGED = "damaged"  # could not be decoded, and were skipped in the log

    @property
    def is_of_kafka(self) -> bool:
        """Whether Kafka has refused them; else the log does not have them."""
        return self in (SkipReason.TOO_LARGE, SkipReason.TIME_REFUSED)


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

    Begins with the log offset and the Kafka offset at which the mirror was begun. What lies before
    `restored_kafka_offset` was there when the log was restored from Kafka: others have written it.
    """

    cluster_id: str
    kafka_topic: str
    kafka_topic_id: str
    producer_id: int
    producer_epoch: int
    begin_log_offset: int
    begin_kafka_offset: int
    restored_kafka_offset: int = 0


@dataclass(frozen=True, slots=True)
class OffsetHeader:
    """From this log offset on each record in Kafka has its offset as a header; None: it has not."""

    first_log_offset: int
    name: str | None


@dataclass(frozen=True, slots=True)
class Pruned:
    """What is forgotten of runs and skips: those whose records both sides have let go.

    They reached up to these offsets, with so many records skipped among them.
    """

    next_log_offset: int = 0
    next_kafka_offset: int = 0
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class MirrorChange:
    """What becomes of runs and skips: the first ones are kept, others follow.

    Of those that are there then, the first `pruned_runs` and `pruned_skips` are forgotten.
    `offset_headers`, `copied_at` and `settled_upto` stay as they are where they are None.
    `version` is that of the mirror which was read; if it has changed since, nothing is done.
    """

    version: int
    kept_runs: int
    kept_skips: int
    runs: tuple[Run, ...] = ()
    skips: tuple[Skip, ...] = ()
    pruned_runs: int = 0
    pruned_skips: int = 0
    offset_headers: tuple[OffsetHeader, ...] | None = None
    copied_at: int | None = None
    settled_upto: int | None = None


ALL_THAT_IS_THERE = -1
"""For `settled_upto`: whatever the worker finds when it looks next."""


@dataclass(frozen=True, slots=True)
class Mirror:
    """One partition's mirror. Runs and skips are in order, and never overlap.

    `version` grows with each change. `copied_at` is where in Kafka somebody else was found to write
    the log's records too: the mirror stands still until that is settled. What lies in Kafka before
    `settled_upto` is not looked at again.
    """

    topic: str
    partition: int
    version: int
    target: MirrorTarget
    runs: tuple[Run, ...] = ()
    skips: tuple[Skip, ...] = ()
    offset_headers: tuple[OffsetHeader, ...] = ()
    pruned: Pruned = Pruned()
    copied_at: int | None = None
    settled_upto: int = 0

    @property
    def begin_log_offset(self) -> int:
        """Where it began, or up to where both sides have let everything go."""
        return max(self.target.begin_log_offset, self.pruned.next_log_offset)

    @property
    def begin_kafka_offset(self) -> int:
        """The same in Kafka."""
        return max(self.target.begin_kafka_offset, self.pruned.next_kafka_offset)

    @property
    def skipped(self) -> int:
        """How many records are not in Kafka, since it began."""
        return self.pruned.skipped + sum(skip.count for skip in self.skips)

    @property
    def offset_header(self) -> str | None:
        """The header that the records sent last have, if any."""
        return self.offset_headers[-1].name if self.offset_headers else None

    @property
    def next_log_offset(self) -> int:
        """Everything before it is in Kafka or skipped.

        Skips may lie beyond it: when Kafka has lost records, their runs are cut and skips stay.
        """
        reached = self.runs[-1].next_log_offset if self.runs else self.begin_log_offset
        for skip in self.skips:
            if skip.first_log_offset <= reached:
                reached = max(reached, skip.next_log_offset)
        return reached

    @property
    def next_kafka_offset(self) -> int:
        """Where Kafka's end was when the last of ours was written."""
        return self.runs[-1].next_kafka_offset if self.runs else self.begin_kafka_offset

    def skipped_before(self, log_offset: int) -> int:
        """How many records before this one are not in Kafka."""
        known = sum(skip.count for skip in self.skips if skip.first_log_offset < log_offset)
        return self.pruned.skipped + known

    def prunable(self, log_start: int, kafka_start: int) -> tuple[int, int]:
        """How many of the first runs and skips tell of records that neither side keeps.

        The last run stays, whatever it tells of: it says where the mirror is.
        """
        runs = 0
        for run in self.runs[:-1]:
            if run.next_log_offset > log_start or run.next_kafka_offset > kafka_start:
                break
            runs += 1
        if not self.runs:
            return 0, 0
        before = min(log_start, self.runs[runs].first_log_offset)
        skips = [skip for skip in self.skips if skip.next_log_offset <= before]
        return runs, len(skips)

    def pruned_by(self, runs: int, skips: int) -> Mirror:
        """Without so many of the first runs and skips."""
        if not runs and not skips:
            return self
        if not 0 <= runs < len(self.runs) or not 0 <= skips <= len(self.skips):
            raise InvalidRequest(
                f"The mirror of {self.topic}/{self.partition} has {len(self.runs)} runs and "
                f"{len(self.skips)} skips: {runs} and {skips} of them cannot be forgotten."
            )
        pruned = self.pruned
        if runs:
            last = self.runs[runs - 1]
            pruned = replace(
                pruned,
                next_log_offset=last.next_log_offset,
                next_kafka_offset=last.next_kafka_offset,
            )
        if skips:
            reached = max(pruned.next_log_offset, self.skips[skips - 1].next_log_offset)
            gone = sum(skip.count for skip in self.skips[:skips])
            pruned = replace(pruned, next_log_offset=reached, skipped=pruned.skipped + gone)
        return replace(self, runs=self.runs[runs:], skips=self.skips[skips:], pruned=pruned)

    def changed(self, change: MirrorChange) -> Mirror:
        """The mirror after a change, which must leave runs and skips in order."""
        runs = (*self.runs[: change.kept_runs], *change.runs)
        skips = (*self.skips[: change.kept_skips], *change.skips)
        begin = self.begin_log_offset
        _check_order(runs, begin)
        _check_order(skips, begin)
        stretches: list[Run | Skip] = [*runs, *skips]
        _check_order(sorted(stretches, key=lambda stretch: stretch.first_log_offset), begin)
        if any(b.first_kafka_offset < a.next_kafka_offset for a, b in pairwise(runs)):
            raise InvalidRequest(f"The runs of {self.topic}/{self.partition} overlap in Kafka.")
        headers = self.offset_headers if change.offset_headers is None else change.offset_headers
        _check_headers(headers)
        changed = replace(
            self,
            version=self.version + 1,
            runs=runs,
            skips=skips,
            offset_headers=headers,
            copied_at=self.copied_at if change.copied_at is None else change.copied_at,
            settled_upto=(
                self.settled_upto if change.settled_upto is None else change.settled_upto
            ),
        )
        return changed.pruned_by(change.pruned_runs, change.pruned_skips)


def with_offset_header(
    headers: Sequence[OffsetHeader], next_log_offset: int, name: str | None
) -> tuple[OffsetHeader, ...]:
    """What is to be stored before the record at this offset is sent with this header, or without.

    What was said of it and later ones does not hold: they are sent anew.
    """
    kept = tuple(each for each in headers if each.first_log_offset < next_log_offset)
    before = kept[-1].name if kept else None
    return kept if before == name else (*kept, OffsetHeader(next_log_offset, name))


def _check_headers(headers: Sequence[OffsetHeader]) -> None:
    for before, after in pairwise(headers):
        if before.first_log_offset >= after.first_log_offset:
            raise InvalidRequest(f"{after} cannot follow {before}.")


def _check_order(stretches: Sequence[Run | Skip], reached: int) -> None:
    for stretch in stretches:
        if stretch.count < 1 or stretch.first_log_offset < reached:
            raise InvalidRequest(
                f"{stretch} cannot be a part of a mirror: it is empty, or what is before it "
                f"reaches to {reached}."
            )
        reached = stretch.next_log_offset
