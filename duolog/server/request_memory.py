"""How much memory large requests may take together, and what is read for requests.

A body of 8 MiB becomes objects of 20 times its size where it holds small values. So what a large
request will take is estimated before it is parsed, and is its own until it is answered. Requests
for which there is no room wait in line, or are told to come again. No client keeps others waiting
by being slow: what waits to be taken by clients is counted by itself (bridge/http/answers_held.py).
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import numpy as np

from duolog.errors import RequestTooLarge, TokenLimitReached, TooBusy

MEMORY_BYTES: Final = 80 << 20
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


@dataclass(frozen=True, slots=True, eq=False)
class _Turn:
    """Somebody who waits."""

    size: int
    caller: object
    come: asyncio.Future[None]


class RequestMemory:
    """Memory to work on requests, given out in the order of asking.

    One caller who has a name may have half of it, or one request of any size, and keeps nobody else
    waiting. For one event loop.
    """

    def __init__(self, most_bytes: int = MEMORY_BYTES, most_requests: int = MOST_REQUESTS) -> None:
        self._most_bytes = most_bytes
        self._most_requests = most_requests
        self._free_bytes = most_bytes
        self._taken_by: Counter[object] = Counter()  # callers with a name
        self._requests: Counter[object] = Counter()  # by caller
        self._line: deque[_Turn] = deque()

    @contextmanager
    def request(self, caller: object = None) -> Iterator[LargeRequest]:
        """A request, from when it may need memory until it needs none any more. TooBusy, and
        TokenLimitReached where one caller has half of all that may be under way.
        """
        under_way = self._requests.total()
        if under_way >= self._most_requests:
            raise TooBusy(
                f"The host has {under_way} large requests under way and takes no more. Try again "
                "in a moment."
            )
        if caller is not None and 2 * self._requests[caller] >= self._most_requests:
            raise TokenLimitReached(
                f"{self._requests[caller]} large requests of this token are under way, as many as "
                "one token may have. Send the next when one was answered."
            )
        self._requests[caller] += 1
        request = LargeRequest(self, caller)
        try:
            yield request
        finally:
            self._requests[caller] -= 1
            if not self._requests[caller]:
                del self._requests[caller]
            request.give_back()

    async def wait_for(self, size: int, caller: object = None) -> None:
        """Take so much once it is free. RequestTooLarge."""
        self.check(size)
        if not self._line and self._is_free(size) and self._may_have(size, caller):
            self._take(size, caller)
            return
        turn = _Turn(size, caller, asyncio.get_running_loop().create_future())
        self._line.append(turn)
        self._let_others_go_on()
        try:
            await turn.come
        except asyncio.CancelledError:
            came_in_the_same_moment = turn.come.done() and not turn.come.cancelled()
            self.give_back(size if came_in_the_same_moment else 0, caller)
            raise

    def take_now(self, size: int, caller: object = None) -> None:
        """Take so much, or nothing, whoever waits. RequestTooLarge, TooBusy."""
        self.check(size)
        if not self._is_free(size) or not self._may_have(size, caller):
            raise TooBusy("The host has its hands full of large requests. Try again soon.")
        self._take(size, caller)

    def give_back(self, size: int, caller: object = None) -> None:
        """What was taken is free again, for those who wait."""
        self._free_bytes += size
        if caller is not None:
            self._taken_by[caller] -= size
            if not self._taken_by[caller]:
                del self._taken_by[caller]
        self._let_others_go_on()

    def _let_others_go_on(self) -> None:
        passed_over: list[_Turn] = []  # since they have as much as one caller may
        while self._line:
            turn = self._line[0]
            if not turn.come.done():  # else whoever waited has left
                if not self._may_have(turn.size, turn.caller):
                    passed_over.append(turn)
                elif self._is_free(turn.size):
                    self._take(turn.size, turn.caller)
                    turn.come.set_result(None)
                else:
                    break
            self._line.popleft()
        self._line.extendleft(reversed(passed_over))

    def _take(self, size: int, caller: object) -> None:
        self._free_bytes -= size
        if caller is not None:
            self._taken_by[caller] += size

    def _is_free(self, size: int) -> bool:
        return size <= self._free_bytes

    def _may_have(self, size: int, caller: object) -> bool:
        taken = 0 if caller is None else self._taken_by[caller]
        return not taken or 2 * (taken + size) <= self._most_bytes

    def check(self, size: int) -> None:
        """Refuse what would never fit. RequestTooLarge."""
        if size > self._most_bytes:
            raise RequestTooLarge(
                f"To work on this request would take about {size >> 20} MiB of the host's memory, "
                f"and it gives {self._most_bytes >> 20} MiB to all large ones together. Send it in "
                "several requests, or raise serve.large_request_memory."
            )


class LargeRequest:
    """What a request has of the memory."""

    def __init__(self, memory: RequestMemory, caller: object) -> None:
        self._memory = memory
        self._caller = caller
        self._taken = 0

    async def wait_for(self, size: int) -> None:
        """Have so much more, once there is room for it. RequestTooLarge."""
        await self._memory.wait_for(size, self._caller)
        self._taken += size

    def take_now(self, size: int) -> None:
        """Have so much in all, or be told to come again. RequestTooLarge, TooBusy."""
        self._memory.check(size)
        more = max(0, size - self._taken)
        self._memory.take_now(more, self._caller)
        self._taken += more

    def give_back(self) -> None:
        """It needs nothing any more."""
        taken, self._taken = self._taken, 0
        self._memory.give_back(taken, self._caller)


def _times(body: bytes) -> int:
    """How many times its length a text takes, with what is cut out of it."""
    if b"\\u" in body:
        return _WIDE_TIMES
    if body.isascii():
        return _ASCII_TIMES
    widest = int(np.frombuffer(body, np.uint8).max())
    return _WIDE_TIMES if widest >= _FIRST_OF_FOUR else _UNICODE_TIMES
