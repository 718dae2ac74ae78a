"""Acknowledgements that are sent while the user has more already, one after the other.

What is done while one is under way, or shortly after one, goes with the next: each costs a write,
and in a group that is also in Kafka an answer of the broker.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final

_REST_SECONDS: Final = 0.05  # from one to the next


class AcksBeside:
    """Of one consumer."""

    def __init__(
        self,
        send: Callable[[], Coroutine[Any, Any, None]],
        clock: Callable[[], float] = time.monotonic,
        rest_seconds: float = _REST_SECONDS,
    ) -> None:
        """`send` tells all that is done by then."""
        self._send = send
        self._clock = clock
        self._rest_seconds = rest_seconds
        self._rests_until = clock()
        self._rest: asyncio.TimerHandle | None = None
        self._sending: asyncio.Task[None] | None = None
        self._sent_since = 0.0  # when the first of what is being sent was done
        self._left_since: float | None = None  # the same of what is not sent yet
        self._failure: BaseException | None = None

    def want(self) -> None:
        """More is done."""
        if self._left_since is None:
            self._left_since = self._clock()
        self._go_on()

    async def keep_up(self, seconds: float) -> None:
        """Wait while something that is done has been unacknowledged for so long. Raises what went
        wrong with an acknowledgement.
        """
        while True:
            failure, self._failure = self._failure, None
            if failure is not None:
                raise failure
            since = self._left_since if self._sending is None else self._sent_since
            if since is None or self._clock() - since < seconds:
                return
            sending = self._sending or self._begin(since)
            await asyncio.wait({sending})  # which goes on if this is given up

    async def stop(self) -> None:
        """Leave what is not told."""
        self._left_since = None
        if self._rest is not None:
            self._rest.cancel()
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)

    def _go_on(self) -> None:
        if self._sending is not None or self._rest is not None or self._left_since is None:
            return
        left = self._rests_until - self._clock()
        if left > 0:
            self._rest = asyncio.get_running_loop().call_later(left, self._rested)
        else:
            self._begin(self._left_since)

    def _rested(self) -> None:
        self._rest = None
        self._go_on()

    def _begin(self, since: float) -> asyncio.Task[None]:
        self._sent_since, self._left_since = since, None
        self._rests_until = self._clock() + self._rest_seconds
        self._sending = asyncio.create_task(self._send())
        self._sending.add_done_callback(self._ended)
        return self._sending

    def _ended(self, sending: asyncio.Task[None]) -> None:
        self._sending = None
        if sending.cancelled():
            return
        self._failure = sending.exception()
        if self._failure is None:
            self._go_on()
