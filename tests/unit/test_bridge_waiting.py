"""Polls wait without threads, and nothing that is appended slips past them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection
from typing import Any

import pytest

from duolog.bridge.http.places import Places
from duolog.bridge.http.workers import Workers
from duolog.bridge.waiting import ALL_PARTITIONS, WaitingRoom
from duolog.errors import PartitionHeld, TooBusy
from duolog.log.model import Topic, TopicPartition, TopicSettings

A, B = TopicPartition(1, 0), TopicPartition(1, 1)
OTHER = TopicPartition(2, 0)
LONG_SECONDS = 60.0
ORDERS = Topic(1, "orders", TopicSettings(partitions=4), (), 0, 0)


class Appends:
    """A log that only says that something was appended."""

    def __init__(self) -> None:
        self.listeners: list[Callable[[Collection[TopicPartition]], None]] = []

    def listen(self, listener: Callable[[Collection[TopicPartition]], None]) -> Callable[[], None]:
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener)

    def listen_to_positions(self, listener: Callable[[], None]) -> Callable[[], None]:
        return lambda: None

    def append(self, *moved: TopicPartition) -> None:
        """As the log does it, from a thread of its own."""
        thread = threading.Thread(target=lambda: [each(moved) for each in tuple(self.listeners)])
        thread.start()
        thread.join()


async def is_woken(
    wanted: TopicPartition, *moved: TopicPartition, before_waiting: bool = False
) -> bool:
    log = Appends()
    room = WaitingRoom(log)
    never = asyncio.get_running_loop().create_future()
    with room.waiter((wanted,)) as waiter:
        waiter.look_again()
        if before_waiting:
            log.append(*moved)
            await waiter.wait(never, LONG_SECONDS)
            return True
        waiting = asyncio.create_task(waiter.wait(never, LONG_SECONDS))
        await asyncio.sleep(0)
        log.append(*moved)
        done, _ = await asyncio.wait({waiting}, timeout=0.05)
        waiting.cancel()
    room.close()
    assert log.listeners == []
    return bool(done)


@pytest.mark.parametrize(
    ("wanted", "moved", "woken"),
    [
        (A, (A,), True),
        (A, (B,), False),
        (A, (B, A), True),
        (A, (OTHER,), False),
        (TopicPartition(1, ALL_PARTITIONS), (B,), True),
        (TopicPartition(1, ALL_PARTITIONS), (TopicPartition(1, 99),), True),
        (TopicPartition(1, ALL_PARTITIONS), (OTHER,), False),
    ],
)
def test_who_is_woken(
    wanted: TopicPartition, moved: tuple[TopicPartition, ...], woken: bool
) -> None:
    assert asyncio.run(is_woken(wanted, *moved)) is woken


def test_an_append_between_looking_and_waiting_is_not_missed() -> None:
    assert asyncio.run(asyncio.wait_for(is_woken(A, A, before_waiting=True), 10))


def test_many_appends_ring_the_loop_once() -> None:
    async def play() -> int:
        log = Appends()
        room = WaitingRoom(log)
        loop = asyncio.get_running_loop()
        rings: list[object] = []
        ring = loop.call_soon_threadsafe

        def counted(*arguments: Any, **more: Any) -> Any:
            rings.append(1)
            return ring(*arguments, **more)

        loop.call_soon_threadsafe = counted  # type: ignore[method-assign, assignment]
        try:
            with room.waiter((A,)) as waiter:
                waiter.look_again()
                for _ in range(100):
                    log.append(A, B)
                await waiter.wait(loop.create_future(), LONG_SECONDS)
        finally:
            del loop.call_soon_threadsafe
        return len(rings)

    assert asyncio.run(asyncio.wait_for(play(), 10)) == 1


def test_nobody_waiting_costs_the_appender_nothing() -> None:
    async def play() -> None:
        log = Appends()
        room = WaitingRoom(log)
        loop = asyncio.get_running_loop()
        loop.call_soon_threadsafe = None  # type: ignore[method-assign, assignment]
        try:
            log.append(A)
        finally:
            del loop.call_soon_threadsafe
        room.close()

    asyncio.run(play())


def test_stopping_wakes_all_and_a_client_that_leaves_wakes_itself() -> None:
    async def play() -> None:
        room = WaitingRoom(Appends())
        loop = asyncio.get_running_loop()
        with room.waiter((A,)) as waiter:
            waiter.look_again()
            gone = loop.create_future()
            gone.set_result(None)
            await waiter.wait(gone, LONG_SECONDS)
            assert not room.is_stopping
            waiting = asyncio.create_task(waiter.wait(loop.create_future(), LONG_SECONDS))
            await asyncio.sleep(0)
            room.stop()
            await waiting
            assert room.is_stopping

    asyncio.run(asyncio.wait_for(play(), 10))


def test_a_time_that_is_up_is_no_wait() -> None:
    async def play() -> None:
        room = WaitingRoom(Appends())
        with room.waiter((A,)) as waiter:
            waiter.look_again()
            await waiter.wait(asyncio.get_running_loop().create_future(), -1)

    asyncio.run(asyncio.wait_for(play(), 10))


def test_a_place_is_held_by_one_of_a_group() -> None:
    places = Places()
    with places.hold("g", ORDERS, [0, 1], "first"):
        with pytest.raises(PartitionHeld, match="partition 1 now: first") as caught:
            places.hold("g", ORDERS, [2, 1], "second").__enter__()
        assert caught.value.holder == "first"
        with places.hold("g", ORDERS, [2], "second"), places.hold("h", ORDERS, [0], "third"):
            assert len(places) == 4
    assert len(places) == 0
    with places.hold("g", ORDERS, [0], "again"):
        assert len(places) == 1


def test_a_place_is_free_again_whatever_happened() -> None:
    places = Places()

    def fail() -> None:
        with places.hold("g", ORDERS, range(4), "first"):
            raise RuntimeError("the poll failed")

    with pytest.raises(RuntimeError):
        fail()
    assert len(places) == 0


def test_threads_refuse_more_than_they_may_take() -> None:
    async def play() -> None:
        workers = Workers("read", 1, most_under_way=2)
        may_go = threading.Event()
        try:
            first = asyncio.create_task(workers.run(may_go.wait))
            second = asyncio.create_task(workers.run(lambda: 2))
            await asyncio.sleep(0)
            with pytest.raises(TooBusy, match="2 reads under way"):
                await workers.run(lambda: 3)
            may_go.set()
            assert (await first, await second) == (True, 2)
            assert await workers.run(lambda: 4) == 4
        finally:
            may_go.set()
            workers.close()

    asyncio.run(asyncio.wait_for(play(), 10))
