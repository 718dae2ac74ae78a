"""Keeps a consumer's place in its group while nothing is asked for, as when its user is busy."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from duolog.client.deliveries import Deliveries
from duolog.client.host_calls import HostCalls
from duolog.client.options import ConsumerOptions
from duolog.errors import DuologError, MembershipOver

_LEAVE_SECONDS: Final = 2.0


class Beats:
    """A task of one consumer, from its first poll to its end.

    Whose user does not come back for `max_poll_seconds` loses its place: others go on there.
    """

    def __init__(self, core: Deliveries, host: HostCalls, options: ConsumerOptions) -> None:
        self._core = core
        self._host = host
        self._group = options.group
        self._every_seconds = options.session_timeout_seconds / 3
        self._most_seconds = options.max_poll_seconds
        self._polled_at = 0.0
        self._task: asyncio.Task[None] | None = None

    def polled(self) -> None:
        """The user asks."""
        self._polled_at = time.monotonic()
        if self._task is None and self._group is not None:
            self._task = asyncio.create_task(self._beat(self._group))

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def leave(self) -> None:
        """Let others go on at once, rather than when the session ends."""
        if self._group is None:
            return
        await asyncio.gather(
            *(
                self._host.leave(self._group, source.topic, seat, _LEAVE_SECONDS)
                for source, seat in self._core.seats().items()
            ),
            return_exceptions=True,
        )

    async def _beat(self, group: str) -> None:
        while True:
            await asyncio.sleep(self._every_seconds)
            if time.monotonic() - self._polled_at > self._most_seconds:
                continue
            for source, seat in self._core.seats().items():
                if seat.is_stale:
                    continue
                try:
                    await self._host.beat(group, source.topic, seat)
                except MembershipOver:
                    self._core.to_ask_again(seat)
                except DuologError:
                    continue  # the next poll tells what is wrong
