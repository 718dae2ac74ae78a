"""What another thread finishes comes back to the event loop, whatever became of who waited."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from duolog.bridge.http.landing import Landing
from duolog.errors import NotWritten, TooBusy

Tell = Callable[[Any, BaseException | None], object]
DEADLINE_SECONDS = 10


def play(scene: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(scene(), DEADLINE_SECONDS))


def elsewhere(work: Callable[[], object]) -> None:
    """Do it in another thread, from its start to its end."""
    thread = threading.Thread(target=work)
    thread.start()
    thread.join(DEADLINE_SECONDS)
    assert not thread.is_alive()


def at_once(result: Any) -> Callable[[Tell], object]:
    """What is finished before it returns."""
    return lambda tell: tell(result, None)


async def all_begun(told: list[Tell], count: int) -> None:
    while len(told) < count:
        await asyncio.sleep(0)


def test_a_result_and_an_error_come_back_from_another_thread() -> None:
    async def scene() -> None:
        landing = Landing()
        told: list[Tell] = []
        good = asyncio.create_task(landing.result(told.append))
        bad = asyncio.create_task(landing.result(told.append))
        await all_begun(told, 2)
        elsewhere(lambda: (told[0]("placed", None), told[1]("ignored", NotWritten("no"))))
        assert await good == "placed"
        with pytest.raises(NotWritten):
            await bad

    play(scene)


def test_what_is_finished_together_rings_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        loop = asyncio.get_running_loop()
        rings: list[object] = []
        ring = loop.call_soon_threadsafe

        def counted(*call: Any) -> object:
            rings.append(call)
            return ring(*call)

        monkeypatch.setattr(loop, "call_soon_threadsafe", counted)
        landing = Landing()
        told: list[Tell] = []
        waiting = [asyncio.create_task(landing.result(told.append)) for _ in range(20)]
        await all_begun(told, 20)
        elsewhere(lambda: [tell(nth, None) for nth, tell in enumerate(told)])
        assert await asyncio.gather(*waiting) == list(range(20))
        assert len(rings) == 1

    play(scene)


def test_what_is_told_at_once_comes_back_too() -> None:
    async def scene() -> None:
        assert await Landing().result(at_once(1)) == 1

    play(scene)


def test_what_cannot_begin_raises_and_is_not_under_way() -> None:
    async def scene() -> None:
        landing = Landing(most_under_way=1)

        def refuse(_: Tell) -> None:
            raise NotWritten("not now")

        for _ in range(3):
            with pytest.raises(NotWritten):
                await landing.result(refuse)

    play(scene)


def test_more_than_it_may_take_is_refused() -> None:
    async def scene() -> None:
        landing = Landing(most_under_way=1)
        told: list[Tell] = []
        first = asyncio.create_task(landing.result(told.append))
        await all_begun(told, 1)
        with pytest.raises(TooBusy, match="1 writes under way"):
            await landing.result(told.append)
        told[0](1, None)
        assert await first == 1
        assert await landing.result(at_once(2)) == 2

    play(scene)


def test_nobody_minds_a_waiter_that_has_left() -> None:
    async def scene() -> None:
        landing = Landing(most_under_way=1)
        told: list[Tell] = []
        left = asyncio.create_task(landing.result(told.append))
        await all_begun(told, 1)
        left.cancel()
        with pytest.raises(asyncio.CancelledError):
            await left
        elsewhere(lambda: told[0]("late", None))
        assert await landing.result(at_once("next")) == "next"

    play(scene)


def test_what_is_finished_after_the_loop_has_ended_is_dropped() -> None:
    told: list[Tell] = []

    async def scene() -> None:
        landing = Landing()
        waiting = asyncio.create_task(landing.result(told.append))
        await all_begun(told, 1)
        waiting.cancel()

    play(scene)
    told[0]("too late", None)
