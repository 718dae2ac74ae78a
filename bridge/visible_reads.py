"""Reads a log for a caller who may have some of its records only.

A read goes on until there is a record for the caller, so that a consumer is not held up by others'
records; but not for ever: then it gives none, says where to read on, and it is remembered that
nothing was found up to there. The next read, of the same poll or of a later one, goes on behind.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from duolog.bridge.visible_rows import VisibleRows
from duolog.errors import DamagedLog
from duolog.log.access import DEFAULT_FETCH_BYTES, DEFAULT_FETCH_RECORDS
from duolog.log.batch import encode
from duolog.log.fetched import EncodedBatch, Fetched, FetchedBatch, FetchedEncoded
from duolog.log.hole import HoleNote, encode_hole
from duolog.log.taking import records_within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from duolog.avro.reading import ValueReader
    from duolog.log.access import LogAccess
    from duolog.log.model import Filter, Topic

_PAGE_RECORDS: Final = 10_000
_PAGE_BYTES: Final = 8 << 20
_LOOKED_AT_BYTES: Final = 8 << 20  # by one read, when it finds nothing: about a second
_MOST_REMEMBERED: Final = 10_000
_NO_RECORDS_BYTES: Final = 16
_NOT_FOR_THE_CALLER: Final = HoleNote(reason="not among the records that the token may read")


class EmptyStretches:
    """Where nothing was found for a condition; records never change. For many threads."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._known: OrderedDict[tuple[str, int, int], tuple[int, int]] = OrderedDict()

    def behind(self, condition: str, topic_id: int, partition: int, offset: int) -> int:
        """The first offset from this one on of which nothing is known."""
        with self._guard:
            first, end = self._known.get((condition, topic_id, partition), (0, 0))
        return end if first <= offset < end else offset

    def note(self, condition: str, topic_id: int, partition: int, first: int, end: int) -> None:
        key = condition, topic_id, partition
        with self._guard:
            known_first, known_end = self._known.get(key, (0, 0))
            if known_first <= first <= known_end:
                first, end = known_first, max(end, known_end)
            self._known[key] = first, end
            self._known.move_to_end(key)
            if len(self._known) > _MOST_REMEMBERED:
                self._known.popitem(last=False)


class VisibleTopics:
    """Makes the reads of one log's topics. For many threads."""

    def __init__(self, log: LogAccess, reader: Callable[[], ValueReader]) -> None:
        self._log = log
        self._reader = reader
        self._empty = EmptyStretches()

    def reads(self, topic: Topic, where: Filter) -> VisibleReads:
        """The reads of a topic for whom the condition limits."""
        rows = VisibleRows(where, topic, self._reader)
        return VisibleReads(self._log, topic.id, where.text, rows, self._empty)


@dataclass(frozen=True, slots=True)
class VisibleReads:
    """Reads one topic."""

    log: LogAccess
    topic_id: int
    condition: str
    rows: VisibleRows
    empty: EmptyStretches

    def fetch(
        self,
        partition: int,
        offset: int,
        *,
        max_records: int = DEFAULT_FETCH_RECORDS,
        max_bytes: int = DEFAULT_FETCH_BYTES,
        skip_damaged: bool = False,
        upto: int | None = None,
    ) -> Fetched:
        """Like `log.fetch`, the caller's records alone; up to but not including `upto`."""
        at = self.empty.behind(self.condition, self.topic_id, partition, offset)
        looked_at = 0
        left_out: list[Any] = []
        while True:
            page = self.log.fetch(
                self.topic_id, partition, at, max_records=max(max_records, _PAGE_RECORDS),
                max_bytes=max(max_bytes, _PAGE_BYTES), skip_damaged=skip_damaged,
            )  # fmt: skip
            end = page.latest if upto is None else min(upto, page.latest)
            next_offset = min(page.next_offset, end)
            left_out += page.left_out
            found = [run for batch in page.batches for run in self.rows.of(batch)]
            taken, next_offset = _cut(found, next_offset, max_records, max_bytes)
            looked_at += page.nbytes
            if not taken and at < next_offset:
                self.empty.note(self.condition, self.topic_id, partition, at, next_offset)
            is_through = next_offset >= end or next_offset <= at or looked_at >= _LOOKED_AT_BYTES
            if taken or is_through:
                return Fetched(
                    page.topic, partition, max(next_offset, min(at, end)), page.earliest,
                    page.latest, tuple(taken), tuple(left_out),
                )  # fmt: skip
            at = next_offset

    def fetch_encoded(
        self, partition: int, offset: int, *, skip_damaged: bool = False, **limits: Any
    ) -> FetchedEncoded:
        """Like `log.fetch_encoded`, with holes in the place of what is not the caller's."""
        found = self.log.fetch_encoded(
            self.topic_id, partition, offset, skip_damaged=skip_damaged, **limits
        )
        made: list[EncodedBatch] = []
        for stored in found.batches:
            if stored.is_hole:
                made.append(stored)
                continue
            try:
                records = stored.decode()
            except DamagedLog:
                made.append(_cut_short(stored))  # whoever decodes it says that it is damaged
                continue
            at = stored.base_offset
            for run in self.rows.of(records):
                made += _hole(at, run.base_offset)
                encoded = encode(run.records)
                made.append(EncodedBatch(run.base_offset, run.records.num_rows, encoded, True))
                at = run.next_offset
            made += _hole(at, stored.next_offset)
        return FetchedEncoded(
            found.topic, found.topic_id, partition, found.offset, found.earliest, found.latest,
            tuple(made),
        )  # fmt: skip


def _cut_short(stored: EncodedBatch) -> EncodedBatch:
    return EncodedBatch(stored.base_offset, stored.count, stored.encoded[:_NO_RECORDS_BYTES])


def _hole(first: int, end: int) -> Iterable[EncodedBatch]:
    if first < end:
        yield EncodedBatch(first, end - first, encode_hole(end - first, _NOT_FOR_THE_CALLER))


def _cut(
    found: list[FetchedBatch], next_offset: int, max_records: int, max_bytes: int
) -> tuple[list[FetchedBatch], int]:
    """As many records as were asked for, at least one; and where to read on behind them."""
    taken: list[FetchedBatch] = []
    left, bytes_left = max_records, max_bytes
    for run in found:
        if run.base_offset >= next_offset:
            break
        whole = run.records.slice(0, min(left, next_offset - run.base_offset))
        records, size = records_within(whole, bytes_left, at_least_one=not taken)
        if records.num_rows:
            taken.append(FetchedBatch(run.base_offset, records))
        left -= records.num_rows
        bytes_left -= size
        if left <= 0 or bytes_left <= 0 or records.num_rows < whole.num_rows:
            return taken, run.base_offset + records.num_rows
    return taken, next_offset
