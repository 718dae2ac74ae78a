"""The call `wait`: for records, or for group positions, now or in time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from duolog.bridge.waiting import POSITIONS, WaitingRoom
from duolog.log.catalogue import partition_of
from duolog.log.model import TopicPartition

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
    places = [partition_of(log.topic(reference), number) for reference, number in positions]
    return await _until(partial(log.wait_for_append, positions, 0), room, places, seconds, gone)


async def wait_for_positions(
    log: EmbeddedLog, room: WaitingRoom, stored: int, seconds: float, gone: asyncio.Future[None]
) -> int:
    """How many positions the log has stored, as soon as that is another number. The same ends."""

    def is_another() -> bool:
        return log.wait_for_positions(stored, 0) != stored

    await _until(is_another, room, [POSITIONS], seconds, gone)
    return log.wait_for_positions(stored, 0)


async def _until(
    is_so: Callable[[], bool],
    room: WaitingRoom,
    places: Iterable[TopicPartition],
    seconds: float,
    gone: asyncio.Future[None],
) -> bool:
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    with room.waiter(places) as waiter:
        while True:
            waiter.look_again()
            if is_so():
                return True
            left = until - loop.time()
            if left <= 0 or gone.done() or room.is_stopping:
                return False
            await waiter.wait(gone, left)
