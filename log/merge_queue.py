"""Counts the small batches that each partition gets, until there are enough to merge them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from typing import Final

from duolog.log.model import TopicPartition

ENOUGH: Final = 64  # small batches of one partition


class MergeQueue:
    """Partitions with many small batches. Costs nothing while nothing is written."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._counts: dict[TopicPartition, int] = {}
        self._ready: dict[TopicPartition, None] = {}
        self._on_ready: Callable[[], None] = _nothing

    def when_ready(self, call: Callable[[], None]) -> None:
        """Call this whenever a partition has enough. It must be quick."""
        self._on_ready = call

    def note(self, tp: TopicPartition, small_batches: int) -> None:
        """A partition has got so many, and readers see them."""
        with self._guard:
            count = self._counts.get(tp, 0) + small_batches
            is_enough = count >= ENOUGH
            self._counts[tp] = 0 if is_enough else count
            if is_enough:
                self._ready[tp] = None
        if is_enough:
            self._on_ready()

    def take(self) -> TopicPartition | None:
        """A partition that has enough, the one that has waited longest."""
        with self._guard:
            tp = next(iter(self._ready), None)
            if tp is not None:
                del self._ready[tp]
            return tp

    def forget(self, gone: Collection[TopicPartition]) -> None:
        with self._guard:
            for tp in gone:
                self._counts.pop(tp, None)
                self._ready.pop(tp, None)


def _nothing() -> None:
    pass
