"""How much memory the large requests of a server may take together.

A body of 8 MiB becomes objects of 20 times its size where it holds small values. So what a large
request will take is estimated before it is parsed, and is its own until it is answered. Requests
for which there is no room wait in line, or are told to come again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np

from duolog.errors import RequestTooLarge, TooBusy

MEMORY_BYTES: Final = 128 << 20
MOST_REQUESTS: Final = 256

BYTES_A_VALUE: Final = 150  # measured for rows, with what it takes to route and write them
_FIRST_OF_FOUR: Final = 0xF0  # bytes of a character: one makes all of a text four times as wide
_ASCII_TIMES, _UNICODE_TIMES, _WIDE_TIMES = 3, 5, 9
"""The body, its text, and what is cut out of that text."""


def memory_of(body: bytes, values: int, bytes_a_value: int = BYTES_A_VALUE) -> int:
    """About how much memory it takes to parse a JSON text of so many values and to work on them."""
    return len(body) * _times(body) + values * bytes_a_value


def memory_of_bytes(length: int) -> int:
    """The least that a body of this length takes, of which nothing else is known yet."""
    return length * _ASCII_TIMES


class RequestMemory:
    """Memory for large requests, given out in the order of asking. For one event loop."""

    def __init__(self, most_bytes: int = MEMORY_BYTES, most_requests: int = MOST_REQUESTS) -> None:
        self._most_bytes = most_bytes
        self._most_requests = most_requests
        self._free_bytes = most_bytes
        self._requests = 0
        self._line: deque[tuple[int, asyncio.Future[None]]] = deque()

    @contextmanager
    def request(self) -> Iterator[LargeRequest]:
        """A large request, from when its body is there until it needs nothing any more. TooBusy."""
        if self._requests >= self._most_requests:
            raise TooBusy(
                f"The host has {self._requests} large requests under way and takes no more. Try "
                "again in a moment."
            )
        self._requests += 1
        request = LargeRequest(self)
        try:
            yield request
        finally:
            self._requests -= 1
            request.give_back()

    async def wait_for(self, size: int) -> None:
        """Take so much once it is free. RequestTooLarge."""
        self._check(size)
        if not self._line and size <= self._free_bytes:
            self._free_bytes -= size
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._line.append((size, turn))
        try:
            await turn
        except asyncio.CancelledError:
            came_in_the_same_moment = turn.done() and not turn.cancelled()
            self.give_back(size if came_in_the_same_moment else 0)
            raise

    def take_now(self, size: int) -> None:
        """Take so much, or nothing. RequestTooLarge, TooBusy."""
        self._check(size)
        if self._line or size > self._free_bytes:
            raise TooBusy("The host has its hands full of large requests. Try again soon.")
        self._free_bytes -= size

    def give_back(self, size: int) -> None:
        """What was taken is free again, for those who wait."""
        self._free_bytes += size
        while self._line:
            needed, turn = self._line[0]
            if not turn.done():  # else whoever waited has left
                if needed > self._free_bytes:
                    break
                self._free_bytes -= needed
                turn.set_result(None)
            self._line.popleft()

    def _check(self, size: int) -> None:
        if size > self._most_bytes:
            raise RequestTooLarge(
                f"To work on this request would take about {size >> 20} MiB of the host's memory, "
                f"and it gives {self._most_bytes >> 20} MiB to all large ones together. Send it in "
                "several requests, or raise serve.large_request_memory."
            )


class LargeRequest:
    """What a large request has of the memory."""

    def __init__(self, memory: RequestMemory) -> None:
        self._memory = memory
        self._taken = 0

    async def wait_for(self, size: int) -> None:
        """Have so much, once there is room for it. RequestTooLarge."""
        await self._memory.wait_for(size)
        self._taken += size

    def take_now(self, size: int) -> None:
        """Have so much in all, or be told to come again. RequestTooLarge, TooBusy."""
        more = max(0, size - self._taken)
        self._memory.take_now(more)
        self._taken += more

    def give_back(self) -> None:
        """It needs nothing any more."""
        taken, self._taken = self._taken, 0
        self._memory.give_back(taken)


def _times(body: bytes) -> int:
    """How many times its length a text takes, with what is cut out of it."""
    if b"\\u" in body:
        return _WIDE_TIMES
    if body.isascii():
        return _ASCII_TIMES
    widest = int(np.frombuffer(body, np.uint8).max())
    return _WIDE_TIMES if widest >= _FIRST_OF_FOUR else _UNICODE_TIMES
