"""Decoded batches that were read or written lately, within a budget of bytes."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from typing import Any

from duolog.log.model import TopicPartition

_ENTRY_BYTES = 2048  # about what the Arrow objects around the columns take


class BatchCache:
    """Least recently used goes first. Offsets never name other content, so nothing grows stale."""

    def __init__(self, budget_bytes: int) -> None:
        self._budget_bytes = budget_bytes
        self._batches: OrderedDict[tuple[TopicPartition, int], Any] = OrderedDict()
        self._bases: dict[TopicPartition, list[int]] = {}
        self._bytes = 0
        self._guard = threading.Lock()
        self.hits = 0
        self.misses = 0

    def find(self, where: TopicPartition, offset: int) -> tuple[int, Any, int] | None:
        """The batch that holds this offset, with its base offset."""
        with self._guard:
            bases = self._bases.get(where)
            at = bisect_right(bases, offset) - 1 if bases else -1
            if bases and at >= 0:
                base = bases[at]
                records, size = self._batches[where, base]
                if offset < base + records.num_rows:
                    self._batches.move_to_end((where, base))
                    self.hits += 1
                    return base, records, size
            self.misses += 1
            return None

    def held_upto(self, where: TopicPartition, offset: int, end: int) -> int:
        """How far the batches from this offset on are held without a gap, `end` at the most."""
        with self._guard:
            bases = self._bases.get(where, [])
            at = max(0, bisect_right(bases, offset) - 1)
            for base in bases[at:]:
                if base > offset or offset >= end:
                    break
                offset = max(offset, base + int(self._batches[where, base][0].num_rows))
            return min(offset, end)

    def add(self, where: TopicPartition, base_offset: int, records: Any) -> None:
        """Keep a batch. It takes the place of those that were merged into it."""
        size = int(records.nbytes)
        with self._guard:
            if size + _ENTRY_BYTES > self._budget_bytes:
                return
            bases = self._bases.setdefault(where, [])
            end = base_offset + records.num_rows
            last = bisect_right(bases, base_offset) - 1
            if last >= 0 and end <= bases[last] + self._batches[where, bases[last]][0].num_rows:
                return  # held already, by itself or merged
            first = bisect_left(bases, base_offset)
            for merged in bases[first : bisect_left(bases, end)]:
                _, gone_bytes = self._batches.pop((where, merged))
                bases.remove(merged)
                self._bytes -= gone_bytes + _ENTRY_BYTES
            self._batches[where, base_offset] = records, size
            bases.insert(first, base_offset)
            self._bytes += size + _ENTRY_BYTES
            while self._bytes > self._budget_bytes:
                (gone_from, gone_base), (_, gone_bytes) = self._batches.popitem(last=False)
                bases = self._bases[gone_from]
                del bases[bisect_left(bases, gone_base)]
                if not bases:
                    del self._bases[gone_from]
                self._bytes -= gone_bytes + _ENTRY_BYTES

    def forget(self, where: TopicPartition, first_offset: int, next_offset: int) -> None:
        """Let go of what is stored no more, also as the batches that were merged into it."""
        with self._guard:
            bases = self._bases.get(where, [])
            at, end = bisect_left(bases, first_offset), bisect_left(bases, next_offset)
            for base in bases[at:end]:
                _, gone_bytes = self._batches.pop((where, base))
                self._bytes -= gone_bytes + _ENTRY_BYTES
            del bases[at:end]
            if not bases:
                self._bases.pop(where, None)
