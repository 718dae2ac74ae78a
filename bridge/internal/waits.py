"""Who waits for an append, without a thread each: the append itself wakes them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from duolog.log.catalogue import partition_of
from duolog.log.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from duolog.log.embedded import EmbeddedLog


class Waits:
    """The waits of one event loop for one log. Used from that loop only."""

    def __init__(self, log: EmbeddedLog) -> None:
        self._log = log
        self._waiting: dict[TopicPartition, set[asyncio.Event]] = {}
        self._count = 0
        self._stop_listening: Callable[[], None] | None = None
        self._stopped = False

    @property
    def count(self) -> int:
        """How many are waiting."""
        return self._count

    async def wait(self, positions: Mapping[tuple[Any, int], int], seconds: float) -> bool:
        """Whether one of these partitions has a record at or after its offset, now or in time."""
        places = [partition_of(self._log.topic(ref), number) for ref, number in positions]
        until = asyncio.get_running_loop().time() + seconds
        with self._woken_for(places) as moved:
            while not self._log.wait_for_append(positions, 0):
                left = until - asyncio.get_running_loop().time()
                if left <= 0 or self._stopped:
                    return False
                try:
                    await asyncio.wait_for(moved.wait(), left)
                except TimeoutError:
                    return False
                moved.clear()
        return True

    def stop(self) -> None:
        """Answer all who wait, and all who come later, at once."""
        self._stopped = True
        self._wake(tuple(self._waiting))

    @contextmanager
    def _woken_for(self, places: Collection[TopicPartition]) -> Iterator[asyncio.Event]:
        moved = asyncio.Event()
        self._listen()
        for place in places:
            self._waiting.setdefault(place, set()).add(moved)
        self._count += 1
        try:
            yield moved
        finally:
            self._count -= 1
            for place in places:
                self._waiting[place].discard(moved)
                if not self._waiting[place]:
                    del self._waiting[place]
            if not self._count and self._stop_listening is not None:
                self._stop_listening()
                self._stop_listening = None

    def _listen(self) -> None:
        if self._stop_listening is not None:
            return
        loop = asyncio.get_running_loop()

        def moved(places: Collection[TopicPartition]) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._wake, tuple(places))

        self._stop_listening = self._log.listen(moved)

    def _wake(self, places: Collection[TopicPartition]) -> None:
        for place in places:
            for waiting in self._waiting.get(place, ()):
                waiting.set()
