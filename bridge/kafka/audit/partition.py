"""One partition, from its edges to its report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from duolog.bridge.kafka.audit.kafka_reader import KafkaReader
from duolog.bridge.kafka.audit.others import others
from duolog.bridge.kafka.audit.records import differences
from duolog.bridge.kafka.audit.report import (
    Difference,
    Differences,
    Finding,
    PartitionReport,
)
from duolog.bridge.kafka.audit.stretches import (
    Edges,
    Layout,
    Stretch,
    holes,
    layout,
    sampled,
    skips_without_holes,
)
from duolog.errors import OffsetOutOfRange
from duolog.log.fetched import FetchedBatch

if TYPE_CHECKING:
    from duolog.log import LogAccess
    from duolog.log.damage_model import LeftOut
    from duolog.log.mirror_model import Mirror

_RECORDS_AT_ONCE = 50_000
_BYTES_AT_ONCE = 16 << 20

Advance = Callable[[int], None]
"""Is told how many records more were compared."""


class PartitionAudit:
    """Made before anything is read, so that all partitions know how much there is to compare."""

    def __init__(
        self, log: LogAccess, reader: KafkaReader, mirror: Mirror, *, sample: int | None
    ) -> None:
        self._log = log
        self._reader = reader
        self._mirror = mirror
        self._topic = mirror.target.kafka_topic
        self._is_sampled = sample is not None
        self._holes = tuple(
            (hole.first_offset, hole.next_offset)
            for hole in log.holes(mirror.topic)
            if hole.partition == mirror.partition
        )
        # The log's edges come after the runs, and Kafka's last: each holds what was told before.
        offsets = log.offsets(mirror.topic)[mirror.partition]
        self._log_edges = Edges(offsets.start, offsets.next_offset)
        self._kafka_edges = reader.edges(self._topic, mirror.partition)
        self._layout: Layout = layout(mirror, self._log_edges, self._kafka_edges)
        self._stretches = self._layout.stretches
        if sample is not None:
            self._stretches = sampled(self._stretches, sample)

    @property
    def records(self) -> int:
        """So many are to be compared."""
        return sum(stretch.count for stretch in self._stretches)

    def run(self, advance: Advance) -> PartitionReport:
        """Compare them."""
        found = Differences()
        for difference in self._layout.wrong:
            found.add(difference)
        for difference in skips_without_holes(self._mirror, self._log_edges, self._holes):
            found.add(difference)
        compared = not_there = 0

        def pass_over(left_out: LeftOut) -> None:
            nonlocal not_there
            if left_out.is_damaged:
                found.add(_damaged(left_out))
            else:
                not_there += left_out.count
            advance(left_out.count)

        for stretch in self._stretches:
            for piece, ours in self._records_of(stretch, pass_over):
                theirs = self._reader.read(
                    self._topic,
                    self._mirror.partition,
                    piece.kafka_offset,
                    piece.kafka_offset + piece.count,
                )
                for difference in differences(piece, ours, theirs):
                    if not self._is_gone_since(difference):
                        found.add(difference)
                compared += piece.count
                advance(piece.count)
        foreign = self._others(found)
        return PartitionReport(
            self._mirror.topic,
            self._mirror.partition,
            self._topic,
            compared=compared,
            pending=self._layout.pending,
            skipped=self._layout.skipped,
            foreign=foreign,
            not_comparable=self._layout.not_comparable + not_there,
            runs=len(self._mirror.runs),
            differences=found.shown,
            counts=found.counts,
        )

    def _is_gone_since(self, difference: Difference) -> bool:
        """Whether retention has taken it meanwhile, from both sides."""
        if difference.finding is not Finding.MISSING_IN_KAFKA or difference.log_offset is None:
            return False
        start = self._log.offsets(self._mirror.topic)[self._mirror.partition].start
        return difference.log_offset < start

    def _others(self, found: Differences) -> int:
        """How many are somebody else's. In a sample, copies of ours are not looked for."""
        # What was on its way when the audit began is in a run by now.
        now = self._log.mirror(self._mirror.topic, self._mirror.partition) or self._mirror
        theirs = others(
            self._reader,
            self._topic,
            self._mirror.partition,
            tuple(holes(now, self._kafka_edges)),
        )
        copies = 0
        if theirs.count and not self._is_sampled:
            begin = max(self._log_edges.start, self._mirror.target.begin_log_offset)
            whole = Stretch(begin, 0, self._log_edges.next_offset - begin)
            for piece, ours in self._records_of(whole):
                for copy in theirs.copies(piece.log_offset, ours):
                    found.add(copy)
                    copies += 1
        return theirs.count - copies

    def _records_of(
        self, stretch: Stretch, pass_over: Callable[[LeftOut], None] = lambda _: None
    ) -> Iterator[tuple[Stretch, Any]]:
        """The log's records of a stretch, and which part of it they are.

        `pass_over` is called with what the log has skipped of it since, or cannot decode.
        """
        at = 0
        while at < stretch.count:
            offset = stretch.log_offset + at
            try:
                fetched = self._log.fetch(
                    self._mirror.topic,
                    self._mirror.partition,
                    offset,
                    max_records=min(_RECORDS_AT_ONCE, stretch.count - at),
                    max_bytes=_BYTES_AT_ONCE,
                    skip_damaged=True,
                )
            except OffsetOutOfRange as gone:  # retention went on meanwhile
                at = min(stretch.count, max(at + 1, gone.earliest - stretch.log_offset))
                continue
            if fetched.next_offset <= offset:
                return
            for left_out in fetched.left_out:
                stop = min(left_out.next_offset, stretch.next_log_offset)
                if left_out.first_offset < stop:
                    pass_over(replace(left_out, next_offset=stop))
            for batches in _joining(_before(fetched.batches, stretch.next_log_offset)):
                ours = _as_one(batch.records for batch in batches)
                first = batches[0].base_offset - stretch.log_offset
                yield stretch.part(first, ours.num_rows), ours
            at = fetched.next_offset - stretch.log_offset


def _damaged(left_out: LeftOut) -> Difference:
    first, last = left_out.first_offset, left_out.next_offset - 1
    said = f"The log cannot decode the records at offsets {first}-{last}: {left_out.reason}"
    return Difference(Finding.DAMAGED_IN_LOG, said, first)


def _before(batches: Iterable[FetchedBatch], stop: int) -> Iterator[FetchedBatch]:
    """The batches before an offset: where some were passed over, a read may go beyond it."""
    for batch in batches:
        if batch.base_offset >= stop:
            return
        if batch.next_offset > stop:
            batch = FetchedBatch(  # noqa: PLW2901 - the part of it
                batch.base_offset, batch.records.slice(0, stop - batch.base_offset)
            )
        yield batch


def _joining(batches: Iterable[FetchedBatch]) -> Iterator[list[FetchedBatch]]:
    """Batches that follow one another: between them lies what was skipped in the log."""
    joined: list[FetchedBatch] = []
    for batch in batches:
        if joined and joined[-1].next_offset != batch.base_offset:
            yield joined
            joined = []
        joined.append(batch)
    if joined:
        yield joined


def _as_one(batches: Iterable[Any]) -> Any:
    table = pa.Table.from_batches(list(batches)).combine_chunks()
    (batch,) = table.to_batches()
    return batch
