"""The index of times: one entry a batch, keyed by the highest timestamp up to and with it.

The running maximum never falls, so entries lie in the order of offsets, and the first entry that
reaches a time is the first batch that holds a record as late as it: a seek skips no match, whatever
the order in which timestamps came. The value is the batch's size, so that retention need not read
batches.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator
from typing import NamedTuple

from duolog.log.keys import LAST_OFFSET, parse_time_key, time_key
from duolog.log.model import TopicPartition
from duolog.log.store import Store

_SIZE = struct.Struct(">II")
_PAGE = 4096


class BatchSize(NamedTuple):
    """How much one stored batch is."""

    records: int
    length: int


class TimedBatch(NamedTuple):
    """One entry of the index."""

    running_max_ms: int
    base_offset: int
    size: BatchSize


def pack_batch_size(size: BatchSize) -> bytes:
    return _SIZE.pack(*size)


def timed_batches(
    store: Store, where: TopicPartition, from_ms: int = 0, from_offset: int = 0
) -> Iterator[TimedBatch]:
    """The partition's batches from the first that reaches a time, read in pages."""
    lower = time_key(where, from_ms, from_offset)
    upper = time_key(where, LAST_OFFSET, LAST_OFFSET)
    while page := store.scan("times", lower, upper, limit=_PAGE):
        for key, value in page:
            yield TimedBatch(*parse_time_key(key), BatchSize(*_SIZE.unpack(value)))
        lower = page[-1][0] + b"\0"


def first_reaching(store: Store, where: TopicPartition, ts_ms: int) -> TimedBatch | None:
    """The first batch with a record at or after this time."""
    page = store.scan(
        "times",
        time_key(where, ts_ms, 0),
        time_key(where, LAST_OFFSET, LAST_OFFSET),
        limit=1,
    )
    for key, value in page:
        return TimedBatch(*parse_time_key(key), BatchSize(*_SIZE.unpack(value)))
    return None


def entry_at(store: Store, where: TopicPartition, base_offset: int) -> TimedBatch | None:
    """The last entry at or before an offset: running maxima never fall, so halving finds it."""
    lowest = first_reaching(store, where, 0)
    if lowest is None or lowest.base_offset > base_offset:
        return None
    low, high = lowest.running_max_ms, LAST_OFFSET  # the first entry from `low` on is not behind it
    while low + 1 < high:
        middle = (low + high) // 2
        found = first_reaching(store, where, middle)
        if found is not None and found.base_offset <= base_offset:
            low = found.running_max_ms
        else:
            high = middle
    entry = store.last_at_or_before(
        "times", time_key(where, low, base_offset), time_key(where, 0, 0)
    )
    if entry is None:
        return None
    return TimedBatch(*parse_time_key(entry[0]), BatchSize(*_SIZE.unpack(entry[1])))


def entry_from(store: Store, where: TopicPartition, offset: int) -> TimedBatch | None:
    """The first entry at or behind an offset."""
    before = None if offset == 0 else entry_at(store, where, offset - 1)
    lower = time_key(where, 0, 0)
    if before is not None:
        lower = time_key(where, before.running_max_ms, before.base_offset) + b"\0"
    upper = time_key(where, LAST_OFFSET, LAST_OFFSET)
    for key, value in store.scan("times", lower, upper, limit=1):
        return TimedBatch(*parse_time_key(key), BatchSize(*_SIZE.unpack(value)))
    return None


class OldestBatches:
    """The running maximum of each partition's first batch, looked up once for each start."""

    def __init__(self) -> None:
        self._known: dict[TopicPartition, tuple[int, int]] = {}

    def running_max_ms(self, store: Store, where: TopicPartition, start: int) -> int | None:
        """Of the batch at the start of a partition that has records."""
        known = self._known.get(where)
        if known is not None and known[0] == start:
            return known[1]
        found = first_reaching(store, where, 0)
        if found is None:
            return None
        if found.base_offset == start:  # else what lies before it is still being removed
            self._known[where] = start, found.running_max_ms
        return found.running_max_ms

    def clear(self) -> None:
        self._known.clear()

    def forget(self, gone: Collection[TopicPartition]) -> None:
        for where in gone:
            self._known.pop(where, None)


def last_batches(
    store: Store, where: TopicPartition, limit: int, before: TimedBatch | None = None
) -> list[TimedBatch]:
    """So many of the partition's batches from its end, or from before one; the last one first."""
    if before is None:
        upper = time_key(where, LAST_OFFSET, LAST_OFFSET)
    elif before.base_offset:
        upper = time_key(where, before.running_max_ms, before.base_offset - 1)
    else:
        return []
    page = store.scan_back("times", upper, time_key(where, 0, 0), limit=limit)
    return [
        TimedBatch(*parse_time_key(key), BatchSize(*_SIZE.unpack(value))) for key, value in page
    ]
