"""Which log offsets have to lie at which Kafka offsets, and what is wrong with that itself. Pure.

The runs are believed to be a list and nothing more: that they are in order, do not overlap, leave
nothing out and stay within both logs is what is judged here.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from duolog.bridge.kafka.audit.report import Difference, Finding
from duolog.log.mirror_model import Mirror, OffsetHeader, Run, SkipReason

SAMPLE_RECORDS = 100
"""A sample is made of stretches of so many records."""


@dataclass(frozen=True, slots=True)
class Edges:
    """The first offset that is kept, and the one after the last."""

    start: int
    next_offset: int


@dataclass(frozen=True, slots=True)
class Stretch:
    """Records that follow one another on both sides."""

    log_offset: int
    kafka_offset: int
    count: int
    offset_header: str | None = None  # the last header of each, in Kafka alone: its log offset

    @property
    def next_log_offset(self) -> int:
        return self.log_offset + self.count

    def part(self, begin: int, count: int) -> Stretch:
        """Some of its records."""
        first = self.log_offset + begin, self.kafka_offset + begin
        return Stretch(*first, count, self.offset_header)


@dataclass(frozen=True, slots=True)
class Layout:
    """One partition, as the runs tell it."""

    stretches: tuple[Stretch, ...]  # on both sides still kept
    pending: int
    skipped: int
    not_comparable: int
    wrong: tuple[Difference, ...]

    @property
    def records(self) -> int:
        return sum(stretch.count for stretch in self.stretches)


def layout(mirror: Mirror, log: Edges, kafka: Edges) -> Layout:
    """What to compare of a partition, and what is wrong before anything is read."""
    wrong = [*_in_order(mirror.runs), *_within(mirror.runs, log, kafka), *_gaps(mirror, log)]
    stretches: list[Stretch] = []
    not_comparable = 0
    for run in mirror.runs:
        lost = _lost_in_kafka(run, log, kafka)
        if lost is not None:
            wrong.append(lost)
        # What only Kafka keeps still; the log's retention goes first.
        gone = min(max(0, log.start - run.first_log_offset), run.count)
        not_comparable += max(
            0, run.first_kafka_offset + gone - max(run.first_kafka_offset, kafka.start)
        )
        begin = max(gone, kafka.start - run.first_kafka_offset)
        end = min(
            run.count,
            kafka.next_offset - run.first_kafka_offset,
            log.next_offset - run.first_log_offset,
        )
        if begin < end:
            whole = Stretch(run.first_log_offset, run.first_kafka_offset, run.count)
            stretches += _by_header(whole.part(begin, end - begin), mirror.offset_headers)
    return Layout(
        tuple(stretches),
        pending=max(0, log.next_offset - max(mirror.next_log_offset, log.start)),
        skipped=mirror.skipped,
        not_comparable=not_comparable,
        wrong=tuple(wrong),
    )


def _by_header(stretch: Stretch, headers: Sequence[OffsetHeader]) -> Iterator[Stretch]:
    """The stretch, cut where another header begins to hold."""
    at, name = stretch.log_offset, None
    for header in (*headers, OffsetHeader(stretch.next_log_offset, None)):
        upto = min(header.first_log_offset, stretch.next_log_offset)
        if upto > at:
            part = stretch.part(at - stretch.log_offset, upto - at)
            yield replace(part, offset_header=name)
            at = upto
        name = header.name


def holes(mirror: Mirror, kafka: Edges) -> Iterator[Edges]:
    """Kafka offsets that no run has, from where the mirror began."""
    at = max(mirror.target.begin_kafka_offset, kafka.start)
    for run in sorted(mirror.runs, key=lambda run: run.first_kafka_offset):
        if run.first_kafka_offset > at:
            yield Edges(at, run.first_kafka_offset)
        at = max(at, run.next_kafka_offset)
    if at < kafka.next_offset:
        yield Edges(at, kafka.next_offset)


def sampled(
    stretches: Sequence[Stretch], records: int, seed: int | None = None
) -> tuple[Stretch, ...]:
    """About so many records: the first and the last, and stretches at random between them."""
    pieces: list[tuple[int, int]] = []  # of which stretch, from which of its records on
    for at, stretch in enumerate(stretches):
        pieces += [(at, begin) for begin in range(0, stretch.count, SAMPLE_RECORDS)]
    wanted = max(2, -(-records // SAMPLE_RECORDS))
    if wanted < len(pieces):
        between = random.Random(seed).sample(pieces[1:-1], wanted - 2)  # noqa: S311 not a secret
        pieces = [pieces[0], *sorted(between), pieces[-1]]
    return tuple(
        stretches[at].part(begin, min(SAMPLE_RECORDS, stretches[at].count - begin))
        for at, begin in pieces
    )


def _in_order(runs: Sequence[Run]) -> Iterator[Difference]:
    for first, second in pairwise(runs):
        if (
            second.first_log_offset < first.next_log_offset
            or second.first_kafka_offset < first.next_kafka_offset
        ):
            yield Difference(
                Finding.RUNS_OVERLAP,
                f"{_named(second)} begins before {_named(first)} has ended.",
                second.first_log_offset,
                second.first_kafka_offset,
            )


def _within(runs: Sequence[Run], log: Edges, kafka: Edges) -> Iterator[Difference]:
    for run in runs:
        if run.next_kafka_offset > kafka.next_offset:
            yield Difference(
                Finding.RUN_BEYOND_KAFKA,
                f"Kafka's log ends at {kafka.next_offset}, before the end of {_named(run)}.",
                run.first_log_offset + max(0, kafka.next_offset - run.first_kafka_offset),
                kafka.next_offset,
            )
        if run.next_log_offset > log.next_offset:
            yield Difference(
                Finding.RUN_BEYOND_LOG,
                f"The log ends at {log.next_offset}, before the end of {_named(run)}.",
                log.next_offset,
            )


def _gaps(mirror: Mirror, log: Edges) -> Iterator[Difference]:
    """What lies before the mirror's end, in the log still, and in no run and no skip."""
    told = [(run.first_log_offset, run.next_log_offset) for run in mirror.runs]
    told += [(skip.first_log_offset, skip.next_log_offset) for skip in mirror.skips]
    told = sorted(each for each in told if each[0] < mirror.next_log_offset)
    at = max(mirror.target.begin_log_offset, log.start)
    for first, after in told:
        if first > at:
            yield Difference(
                Finding.NOT_ACCOUNTED_FOR,
                f"{first - at} records from offset {at} on are in no run, and not skipped.",
                at,
            )
        at = max(at, after)


def skips_without_holes(
    mirror: Mirror, log: Edges, log_holes: Sequence[tuple[int, int]]
) -> Iterator[Difference]:
    """What the mirror has passed over as damaged, and the log has not skipped."""
    for skip in mirror.skips:
        if skip.reason is not SkipReason.DAMAGED:
            continue
        at, stop = max(skip.first_log_offset, log.start), skip.next_log_offset
        for first, after in sorted(log_holes):
            if first <= at < after:
                at = after
        if at < stop:
            yield Difference(
                Finding.NOT_ACCOUNTED_FOR,
                f"{stop - at} records from offset {at} on were passed over as damaged, and are "
                "not skipped in the log.",
                at,
            )


def _lost_in_kafka(run: Run, log: Edges, kafka: Edges) -> Difference | None:
    """What the log still keeps, and Kafka has deleted."""
    first = max(run.first_log_offset, log.start)
    upto = min(run.next_log_offset, kafka.start - run.difference)
    if first >= upto:
        return None
    return Difference(
        Finding.MISSING_IN_KAFKA,
        f"{upto - first} records from offset {first} on are gone from Kafka, which begins at "
        f"{kafka.start}. The log still has them.",
        first,
        first + run.difference,
    )


def _named(run: Run) -> str:
    return (
        f"the run of {run.count} records from offset {run.first_log_offset} "
        f"(Kafka's {run.first_kafka_offset}) on"
    )
