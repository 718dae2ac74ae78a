"""Counts the small batches that each partition gets, until there are enough to merge them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from typing import Final

from duolog.log.model import TopicPartition

ENOUGH: Final = 64
"""So many small batches of a partition are worth a merge, once nobody writes."""

MANY: Final = 8192
"""So many are merged also while others write: readers pay for each of them."""


class MergeQueue:
    """Partitions with many small batches. Costs nothing while nothing is written."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._counts: dict[TopicPartition, int] = {}
        self._ready: dict[TopicPartition, None] = {}
        self._on_ready: Callable[[], None] = _nothing

    def when_ready(self, call: Callable[[], None]) -> None:
        """Call this whenever a partition comes to have enough, and when many. It must be quick."""
        self._on_ready = call

    def note(self, tp: TopicPartition, small_batches: int) -> None:
        """A partition has got so many, and readers see them."""
        with self._guard:
            before = self._counts.get(tp, 0)
            count = self._counts[tp] = before + small_batches
            if count >= ENOUGH:
                self._ready[tp] = None
        if before < ENOUGH <= count or before < MANY <= count:
            self._on_ready()

    @property
    def is_empty(self) -> bool:
        """Whether no partition has enough."""
        return not self._ready

    def take(self, *, only_many: bool) -> TopicPartition | None:
        """A partition that has enough, or many, the one that has waited longest."""
        with self._guard:
            least = MANY if only_many else ENOUGH
            tp = next((each for each in self._ready if self._counts[each] >= least), None)
            if tp is not None:
                del self._ready[tp]
                del self._counts[tp]
            return tp

    def forget(self, gone: Collection[TopicPartition]) -> None:
        with self._guard:
            for tp in gone:
                self._counts.pop(tp, None)
                self._ready.pop(tp, None)


def _nothing() -> None:
    pass
