"""How far the log reaches, for all partitions that are mirrored: one wait for all of them."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Final

from duolog.errors import DuologError, NotFound
from duolog.log.access import LogAccess
from duolog.log.model import TopicPartition

_LONGEST_WAIT_SECONDS: Final = 0.5  # a partition that is new meanwhile is not waited for
_BETWEEN_ROUNDS_SECONDS: Final = 0.003  # appends may come much faster than batches are worth
_AFTER_FAILURE_SECONDS: Final = 0.5


class Heads:
    """Waits for appends in a thread of its own, and wakes those who have sent all they know of."""

    def __init__(self, log: LogAccess) -> None:
        self._log = log
        self._known: dict[TopicPartition, tuple[int, int]] = {}  # start, next offset
        self._moved: dict[TopicPartition, asyncio.Event] = {}
        self._something = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, "duolog-heads")

    def watch(self, where: TopicPartition) -> None:
        self._known.setdefault(where, (0, 0))
        self._moved.setdefault(where, asyncio.Event())
        self._something.set()

    def forget(self, where: TopicPartition) -> None:
        self._known.pop(where, None)
        self._moved.pop(where, None)

    def start(self, where: TopicPartition) -> int:
        return self._known.get(where, (0, 0))[0]

    def next_offset(self, where: TopicPartition) -> int:
        return self._known.get(where, (0, 0))[1]

    async def beyond(self, where: TopicPartition, offset: int) -> None:
        """Wait until the partition has a record at or after this offset."""
        while self.next_offset(where) <= offset:
            moved = self._moved[where]
            moved.clear()
            await moved.wait()

    async def run(self) -> None:
        """Watch, until it is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            if not self._known:
                self._something.clear()
                await self._something.wait()
            positions = {(w.topic_id, w.partition): known[1] for w, known in self._known.items()}
            wait = partial(self._log.wait_for_append, positions, _LONGEST_WAIT_SECONDS)
            try:
                await loop.run_in_executor(self._thread, wait)
            except NotFound:
                pass  # dropped: whoever mirrors it takes it off
            except DuologError:
                await asyncio.sleep(_AFTER_FAILURE_SECONDS)
            for topic_id in {where.topic_id for where in self._known}:
                with suppress(DuologError):
                    await self._refresh(topic_id)
            await asyncio.sleep(_BETWEEN_ROUNDS_SECONDS)

    async def _refresh(self, topic_id: int) -> None:
        loop = asyncio.get_running_loop()
        for found in await loop.run_in_executor(self._thread, self._log.offsets, topic_id):
            where = TopicPartition(topic_id, found.partition)
            known = self._known.get(where)
            if known is not None and known != (found.start, found.next_offset):
                self._known[where] = (found.start, found.next_offset)
                self._moved[where].set()

    def close(self) -> None:
        self._thread.shutdown(cancel_futures=True)
