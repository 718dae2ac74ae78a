"""The call `wait`: whether partitions have come as far as a client asks, now or in time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from duolog.bridge.waiting import WaitingRoom
from duolog.log.catalogue import partition_of

if TYPE_CHECKING:
    from duolog.log.embedded import EmbeddedLog


async def wait_for_append(
    log: EmbeddedLog,
    room: WaitingRoom,
    positions: Mapping[tuple[Any, int], int],
    seconds: float,
    gone: asyncio.Future[None],
) -> bool:
    """Whether one of these partitions has a record at or after its offset.

    Ends early when the client has gone, or nobody is to wait any more.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    places = [partition_of(log.topic(reference), number) for reference, number in positions]
    with room.waiter(places) as waiter:
        while True:
            waiter.look_again()
            if log.wait_for_append(positions, 0):
                return True
            left = until - loop.time()
            if left <= 0 or gone.done() or room.is_stopping:
                return False
            await waiter.wait(gone, left)
