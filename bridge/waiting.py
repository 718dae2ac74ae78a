"""Who waits for records, without a thread each: the append itself wakes them.

One event loop owns all of it. Only `_appended` runs elsewhere, in the thread that appends: it notes
what moved and rings the loop's bell, once until the loop has looked.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Final, Protocol

from duolog.log.model import TopicPartition

ALL_PARTITIONS = -1
"""Instead of a partition: any of the topic's, also one that it gets meanwhile."""

_IN_KAFKA = -2

POSITIONS: Final = TopicPartition(-1, 0)
"""Where those wait who follow the positions of groups."""

NOWHERE: Final = TopicPartition(-2, 0)
"""Where those wait whom neither an append nor a position wakes, only the host's end."""


class Listenable(Protocol):
    """A log that says when something was appended, or a group has moved."""

    def listen(
        self, listener: Callable[[Collection[TopicPartition]], None]
    ) -> Callable[[], None]: ...

    def listen_to_positions(self, listener: Callable[[], None]) -> Callable[[], None]: ...


def in_kafka(topic_id: int) -> TopicPartition:
    """Where those wait who may read what has come to Kafka."""
    return TopicPartition(topic_id, _IN_KAFKA)


class Waiter:
    """One request that waits. It is registered before it looks, so that nothing slips between."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._woken = loop.create_future()

    def wake(self) -> None:
        if not self._woken.done():
            self._woken.set_result(None)

    def look_again(self) -> None:
        """From here on it waits for the next append."""
        if self._woken.done():
            self._woken = self._loop.create_future()

    async def wait(self, gone: asyncio.Future[None], timeout_seconds: float) -> None:
        """Until an append, the client's leaving, or the end of the time."""
        await asyncio.wait(
            {self._woken, gone},
            timeout=max(0.0, timeout_seconds),
            return_when=asyncio.FIRST_COMPLETED,
        )


class WaitingRoom:
    """All who wait for one log's records. Used on one event loop; may be made before it runs."""

    def __init__(self, log: Listenable) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiters: dict[TopicPartition, set[Waiter]] = {}
        self._guard = threading.Lock()  # of the two below
        self._moved: set[TopicPartition] = set()
        self._bell_rung = False
        self.count = 0
        self.is_stopping = False
        moved = partial(self._appended, (POSITIONS,))
        self._ends = (log.listen(self._appended), log.listen_to_positions(moved))

    @contextmanager
    def waiter(self, wanted: Iterable[TopicPartition]) -> Iterator[Waiter]:
        """Be woken when one of these partitions gets records."""
        places = tuple(wanted)
        self._loop = asyncio.get_running_loop()
        waiter = Waiter(self._loop)
        for place in places:
            self._waiters.setdefault(place, set()).add(waiter)
        self.count += 1
        try:
            yield waiter
        finally:
            self.count -= 1
            for place in places:
                others = self._waiters[place]
                others.discard(waiter)
                if not others:
                    del self._waiters[place]

    def wake(self, place: TopicPartition) -> None:
        """Something has come there. On the loop."""
        for waiter in self._waiters.get(place, ()):
            waiter.wake()

    def stop(self) -> None:
        """Let nobody wait any more: all who do are woken, and see `is_stopping`."""
        self.is_stopping = True
        for waiters in self._waiters.values():
            for waiter in waiters:
                waiter.wake()

    def close(self) -> None:
        self.stop()
        for end in self._ends:
            end()

    def _appended(self, moved: Collection[TopicPartition]) -> None:
        # Who registers now reads the heads afterwards, and those are published already.
        loop = self._loop
        if loop is None or not self._waiters:
            return
        with self._guard:
            self._moved.update(moved)
            if self._bell_rung:
                return
            self._bell_rung = True
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        with self._guard:
            moved, self._moved = self._moved, set()
            self._bell_rung = False
        topics = {TopicPartition(place.topic_id, ALL_PARTITIONS) for place in moved}
        for place in moved | topics:
            for waiter in self._waiters.get(place, ()):
                waiter.wake()
