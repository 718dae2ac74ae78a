"""Joins small batches of a partition into batches of a good size, before they are stored.

Each task of an epoch brings a slice of each partition. Many tasks make many small slices, and a
batch costs a reader much the same however few records it holds. Large batches are stored byte by
byte as their task encoded them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from duolog.log.batch import TARGET_BYTES, encode, read_header
from duolog.log.epoch_parts import staged_records
from duolog.log.merge_plan import SMALL_BYTES
from duolog.log.model import TopicPartition

_WAITING_BYTES: Final = 64 << 20  # of all partitions together
_SLICE_BYTES: Final = 2048  # about what the Arrow objects around a slice's columns take


@dataclass(frozen=True, slots=True)
class EncodedSlice:
    """An encoded batch that has no offset yet."""

    count: int
    max_ts_ms: int
    encoded: bytes


@dataclass(slots=True)
class _Waiting:
    """Small slices of one partition that follow one another."""

    slices: list[EncodedSlice] = field(default_factory=list)
    records: list[Any] = field(default_factory=list)
    count: int = 0
    nbytes: int = 0


class SliceMerger:
    """Takes an epoch's batches and gives back fewer. A partition keeps its order.

    Memory is bounded: when too much waits, the partitions with most of it are written early.
    """

    def __init__(
        self,
        *,
        small_bytes: int | None = None,
        target_bytes: int = TARGET_BYTES,
        waiting_bytes: int = _WAITING_BYTES,
    ) -> None:
        self._small_bytes = SMALL_BYTES if small_bytes is None else small_bytes
        self._target_bytes = target_bytes
        self._most_waiting_bytes = waiting_bytes
        self._waiting: dict[TopicPartition, _Waiting] = {}
        self._waiting_bytes = 0

    def waiting_records(self, tp: TopicPartition) -> int:
        """How many records of a partition were added and not given back yet."""
        waiting = self._waiting.get(tp)
        return 0 if waiting is None else waiting.count

    def add(
        self, tp: TopicPartition, slice_: EncodedSlice, records: Any = None
    ) -> Iterator[tuple[TopicPartition, EncodedSlice]]:
        """The batches that are ready now. `records` is the slice decoded, where that is known."""
        if len(slice_.encoded) >= self._small_bytes:
            yield from self._finish(tp)
            yield tp, slice_
            return
        if records is None:
            records = staged_records(slice_.encoded)
        size = int(records.get_total_buffer_size())  # a tenth of the time that nbytes takes
        if size >= self._target_bytes:
            size = int(records.nbytes)
        waiting = self._waiting.get(tp)
        if waiting is not None and waiting.nbytes + size > self._target_bytes:
            yield from self._finish(tp)
        if size >= self._target_bytes:  # packs well: joining would gain nothing
            yield tp, slice_
            return
        waiting = self._waiting.setdefault(tp, _Waiting())
        waiting.slices.append(slice_)
        waiting.records.append(records)
        waiting.count += slice_.count
        waiting.nbytes += size
        self._waiting_bytes += size + _SLICE_BYTES
        if self._waiting_bytes > self._most_waiting_bytes:
            yield from self._finish_largest()

    def finish(self) -> Iterator[tuple[TopicPartition, EncodedSlice]]:
        """What still waits."""
        for tp in list(self._waiting):
            yield from self._finish(tp)

    def _finish_largest(self) -> Iterator[tuple[TopicPartition, EncodedSlice]]:
        """Half of what waits, so that looking for the largest is seldom."""
        for tp in sorted(self._waiting, key=lambda tp: self._waiting[tp].nbytes, reverse=True):
            if self._waiting_bytes <= self._most_waiting_bytes // 2:
                return
            yield from self._finish(tp)

    def _finish(self, tp: TopicPartition) -> Iterator[tuple[TopicPartition, EncodedSlice]]:
        waiting = self._waiting.pop(tp, None)
        if waiting is None:
            return
        self._waiting_bytes -= waiting.nbytes + _SLICE_BYTES * len(waiting.slices)
        yield (
            tp,
            waiting.slices[0] if len(waiting.slices) == 1 else encoded_together(waiting.records),
        )


def encoded_together(batches: list[Any]) -> EncodedSlice:
    """One batch of these records, in their order."""
    (joined,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    encoded = encode(joined)
    header = read_header(encoded)
    return EncodedSlice(header.count, header.max_ts_ms, encoded)
