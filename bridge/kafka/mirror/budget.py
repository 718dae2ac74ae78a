"""How many bytes may be on their way to Kafka at once, over all partitions."""

from __future__ import annotations

import asyncio
from collections import deque


class Budget:
    """First come, first served. What is larger than all of it has to itself what there is."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._free = most_bytes
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @property
    def in_use(self) -> int:
        return self._most - self._free

    async def take(self, size: int) -> int:
        """Wait for room; how much was taken, to be given back."""
        size = min(size, self._most)
        if not self._waiting and size <= self._free:
            self._free -= size
            return size
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((size, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give_back(size)  # it was this one's turn already
            else:
                self._waiting = deque(each for each in self._waiting if each[1] is not turn)
                self._admit()
            raise
        return size

    def give_back(self, size: int) -> None:
        self._free += size
        self._admit()

    def _admit(self) -> None:
        while self._waiting and self._waiting[0][0] <= self._free:
            size, turn = self._waiting.popleft()
            if not turn.done():
                self._free -= size
                turn.set_result(None)
