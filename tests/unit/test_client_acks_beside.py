"""Acknowledgements beside what is handed out: one at a time, and never too far behind."""

from __future__ import annotations

import asyncio

import pytest

from duolog.client.acks_beside import AcksBeside
from duolog.errors import NotSettled


class Sender:
    """Each acknowledgement ends when it is told to."""

    def __init__(self) -> None:
        self.at = 0.0
        self.under_way: list[asyncio.Future[None]] = []

    async def __call__(self) -> None:
        answer = asyncio.get_running_loop().create_future()
        self.under_way.append(answer)
        await answer

    def clock(self) -> float:
        return self.at


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def one_under_way_and_one_left() -> tuple[Sender, AcksBeside]:
    sender = Sender()
    acks = AcksBeside(sender, sender.clock, rest_seconds=0)
    acks.want()
    await turns()
    acks.want()
    return sender, acks


async def is_waiting(task: asyncio.Task[None]) -> bool:
    await turns()
    return not task.done()


def test_what_is_done_while_one_is_under_way_goes_together_with_the_next() -> None:
    async def play() -> None:
        sender = Sender()
        acks = AcksBeside(sender, sender.clock, rest_seconds=0)
        for _ in range(3):
            acks.want()
            await turns()
        assert len(sender.under_way) == 1
        sender.under_way[0].set_result(None)
        await turns()
        assert len(sender.under_way) == 2
        sender.under_way[1].set_result(None)
        await turns()
        assert len(sender.under_way) == 2, "nothing was done since"

    asyncio.run(play())


def test_who_is_too_far_behind_is_waited_for() -> None:
    async def play() -> None:
        sender = Sender()
        acks = AcksBeside(sender, sender.clock, rest_seconds=0)
        await acks.keep_up(0)  # nothing is under way
        acks.want()
        await turns()
        sender.at = 4.0
        acks.want()  # the second's first
        await acks.keep_up(5.0)
        sender.at = 5.0
        waiting = asyncio.create_task(acks.keep_up(5.0))
        assert await is_waiting(waiting)
        sender.under_way[0].set_result(None)
        await waiting  # the second began a second ago
        sender.at = 9.0
        waiting = asyncio.create_task(acks.keep_up(5.0))
        assert await is_waiting(waiting), "by when it was done, not by when it was sent"
        sender.under_way[1].set_result(None)
        await waiting

    asyncio.run(play())


def test_nothing_is_under_way_after_waiting_for_all() -> None:
    async def play() -> None:
        sender, acks = await one_under_way_and_one_left()
        waiting = asyncio.create_task(acks.keep_up(0))
        await turns()
        sender.under_way[0].set_result(None)
        assert await is_waiting(waiting), "the second is under way"
        sender.under_way[1].set_result(None)
        await waiting

    asyncio.run(play())


def test_a_failure_is_told_once_and_what_was_not_told_goes_with_the_next() -> None:
    async def play() -> None:
        sender, acks = await one_under_way_and_one_left()
        sender.under_way[0].set_exception(NotSettled("later"))
        await turns()
        assert len(sender.under_way) == 1, "it is not tried again before somebody asks"
        with pytest.raises(NotSettled):
            await acks.keep_up(5.0)
        await acks.keep_up(5.0)
        acks.want()
        await turns()
        assert len(sender.under_way) == 2

    asyncio.run(play())


def test_what_is_done_shortly_after_one_waits_a_little_unless_it_is_waited_for() -> None:
    async def play() -> None:
        sender = Sender()
        acks = AcksBeside(sender, sender.clock, rest_seconds=3600)
        acks.want()
        await turns()
        assert len(sender.under_way) == 1, "the first is sent at once"
        sender.under_way[0].set_result(None)
        await turns()
        acks.want()
        acks.want()
        await turns()
        assert len(sender.under_way) == 1
        waiting = asyncio.create_task(acks.keep_up(0))
        assert await is_waiting(waiting)
        assert len(sender.under_way) == 2
        sender.under_way[1].set_result(None)
        await waiting
        acks.want()
        await acks.stop()
        await turns()
        assert len(sender.under_way) == 2

    asyncio.run(play())


def test_what_waits_a_little_is_sent_by_itself() -> None:
    async def play() -> None:
        sender = Sender()
        acks = AcksBeside(sender, rest_seconds=0.01)
        acks.want()
        await turns()
        sender.under_way[0].set_result(None)
        acks.want()
        async with asyncio.timeout(60):
            while len(sender.under_way) < 2:
                await asyncio.sleep(0.001)

    asyncio.run(play())


def test_a_wait_that_is_given_up_leaves_the_acknowledgement() -> None:
    async def play() -> None:
        sender = Sender()
        acks = AcksBeside(sender, sender.clock, rest_seconds=0)
        acks.want()
        waiting = asyncio.create_task(acks.keep_up(0))
        await turns()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert not sender.under_way[0].cancelled()

    asyncio.run(play())


def test_stopping_gives_up_what_is_under_way_and_who_waits() -> None:
    async def play() -> None:
        sender, acks = await one_under_way_and_one_left()
        waiting = asyncio.create_task(acks.keep_up(0))
        await turns()
        await acks.stop()
        await waiting
        assert len(sender.under_way) == 1
        assert sender.under_way[0].cancelled()
        await acks.stop()

    asyncio.run(play())
