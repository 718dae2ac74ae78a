"""Records of the log, cut into batches that Kafka takes; and those that it would refuse. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from duolog.bridge.kafka.wire.record_batch import BATCH_OVERHEAD_BYTES, largest_sizes
from duolog.log.mirror_model import Skip, SkipReason

TARGET_BATCH_BYTES: Final = 1 << 20
"""A larger batch is no faster, and what is in flight is bounded by it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a Kafka topic takes. Times None: any."""

    max_batch_bytes: int
    latest_ahead_ms: int | None = None
    earliest_behind_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """Rows of a batch that Kafka would not take, one after the other."""

    start: int
    stop: int
    reason: SkipReason
    largest_bytes: int
    ts_ms: int


@dataclass(frozen=True, slots=True)
class Fuse:
    """How many records may be skipped: so many of the last ones."""

    records: int = 100
    of_last: int = 10_000

    def burns(self, skips: Sequence[Skip], next_log_offset: int) -> bool:
        """Whether too many of the records before this offset were refused."""
        since = next_log_offset - self.of_last
        refused = (
            skip.next_log_offset - max(skip.first_log_offset, since)
            for skip in skips
            if skip.reason.is_of_kafka and skip.next_log_offset > since
        )
        return sum(refused) > self.records


def refused_rows(records: Any, limits: Limits, now_ms: int) -> tuple[Refused, ...]:
    """What Kafka would refuse of a pa.RecordBatch of the log's schema."""
    sizes = largest_sizes(records) + BATCH_OVERHEAD_BYTES
    times = records.column("ts").to_numpy(zero_copy_only=False)
    too_large = sizes > limits.max_batch_bytes
    wrong_time = np.zeros(len(sizes), bool)
    if limits.latest_ahead_ms is not None:
        wrong_time |= times > now_ms + limits.latest_ahead_ms
    if limits.earliest_behind_ms is not None:
        wrong_time |= times < now_ms - limits.earliest_behind_ms
    if not too_large.any() and not wrong_time.any():
        return ()
    kinds = np.where(too_large, 1, np.where(wrong_time, 2, 0))
    edges = np.flatnonzero(np.diff(kinds)) + 1
    starts, stops = np.concatenate(([0], edges)), np.concatenate((edges, [len(kinds)]))
    return tuple(
        Refused(
            int(start),
            int(stop),
            SkipReason.TOO_LARGE if kinds[start] == 1 else SkipReason.TIME_REFUSED,
            int(sizes[start:stop].max()),
            int(times[start]),
        )
        for start, stop in zip(starts, stops, strict=True)
        if kinds[start]
    )


def unskipped(first: int, stop: int, skips: Sequence[Skip]) -> tuple[tuple[int, int], ...]:
    """Ranges of log offsets, from the first on up to `stop`, without those that are skipped."""
    ranges = []
    for skip in skips:
        if skip.next_log_offset <= first or skip.first_log_offset >= stop:
            continue
        if skip.first_log_offset > first:
            ranges.append((first, skip.first_log_offset))
        first = max(first, skip.next_log_offset)
    return (*ranges, (first, stop)) if first < stop else tuple(ranges)


def with_skips(skips: Sequence[Skip], more: Iterable[Skip]) -> tuple[Skip, ...]:
    """All of them, in order; neighbours for one reason become one."""
    joined: list[Skip] = []
    for skip in sorted([*skips, *more], key=lambda skip: skip.first_log_offset):
        last = joined[-1] if joined else None
        if last and last.reason is skip.reason and last.next_log_offset == skip.first_log_offset:
            joined[-1] = replace(last, count=last.count + skip.count)
        else:
            joined.append(skip)
    return tuple(joined)


def cut(records: Any, max_batch_bytes: int) -> tuple[tuple[int, int], ...]:
    """Ranges of rows that make a batch each, about equally large.

    No record is larger than a batch may be.
    """
    room = min(max_batch_bytes, TARGET_BATCH_BYTES) - BATCH_OVERHEAD_BYTES
    sizes = largest_sizes(records)
    ends = np.cumsum(sizes)
    whole = int(ends[-1])
    if whole <= room:
        return ((0, len(ends)),)
    share = min(room, whole // -(-whole // room) + int(sizes.max()))
    ranges = []
    start, before = 0, 0
    while start < len(ends):
        stop = int(np.searchsorted(ends, before + share, side="right"))
        stop = max(stop, start + 1)  # one that is larger than the target goes alone
        ranges.append((start, stop))
        start, before = stop, int(ends[stop - 1])
    return tuple(ranges)
