"""What the committer's thread has finished comes back to the event loop.

All publishes that shared a sync come back at one ring of the loop's bell. A thread that waits for
each of them instead costs a dozen hand-overs of Python's lock.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from duolog.errors import TooBusy

T = TypeVar("T")

MOST_UNDER_WAY = 10_000


class Landing:
    """Made and used on one event loop; only `_land` runs elsewhere."""

    def __init__(self, *, most_under_way: int = MOST_UNDER_WAY) -> None:
        self._loop = asyncio.get_running_loop()
        self._most_under_way = most_under_way
        self._under_way = 0
        self._guard = threading.Lock()  # of the two below
        self._landed: list[Callable[[], None]] = []
        self._bell_rung = False

    async def result(
        self, begin: Callable[[Callable[[T, BaseException | None], object]], object]
    ) -> T:
        """What `begin` brings about. It is handed whom to tell: with a result, or an error."""
        if self._under_way >= self._most_under_way:
            raise TooBusy(
                f"The host has {self._under_way} writes under way and takes no more. Try again in "
                "a moment."
            )
        future: asyncio.Future[T] = self._loop.create_future()

        def land(result: T, error: BaseException | None) -> None:
            self._land(lambda: _settle(future, result, error))

        self._under_way += 1
        try:
            begin(land)
            return await future
        finally:
            self._under_way -= 1

    def _land(self, settle: Callable[[], None]) -> None:
        with self._guard:
            self._landed.append(settle)
            if self._bell_rung:
                return
            self._bell_rung = True
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._hand_out)

    def _hand_out(self) -> None:
        with self._guard:
            landed, self._landed = self._landed, []
            self._bell_rung = False
        for settle in landed:
            settle()


def _settle(future: asyncio.Future[T], result: T, error: BaseException | None) -> None:
    if future.done():  # nobody waits for it any more
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
