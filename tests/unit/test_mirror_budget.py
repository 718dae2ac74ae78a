"""Bytes in flight, the joining of small batches, and what the host hands over."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

import duolog
from duolog.bridge.kafka.mirror.budget import Budget
from duolog.bridge.kafka.mirror.reading import groups, stretch_of
from duolog.bridge.kafka.mirror.shared import WhenRefused
from duolog.bridge.kafka.worker import WorkerSettings
from duolog.errors import InvalidSetting
from duolog.log.model import Record


def test_what_does_not_fit_waits_for_its_turn() -> None:
    async def history() -> list[str]:
        budget, told = Budget(100), []

        async def send(name: str, size: int) -> None:
            await budget.take(size)
            told.append(name)

        await send("a", 60)
        large = asyncio.create_task(send("large", 50))
        small = asyncio.create_task(send("small", 10))
        await asyncio.sleep(0)
        assert told == ["a"]  # the small one would fit, and does not push in
        budget.give_back(60)
        await asyncio.gather(large, small)
        assert budget.in_use == 60
        return told

    assert asyncio.run(history()) == ["a", "large", "small"]


def test_what_is_larger_than_all_of_it_goes_alone() -> None:
    async def history() -> None:
        budget = Budget(100)
        assert await budget.take(1000) == 100
        waiting = asyncio.create_task(budget.take(1))
        await asyncio.sleep(0)
        assert not waiting.done()
        budget.give_back(100)
        assert await waiting == 1

    asyncio.run(history())


@pytest.mark.parametrize("its_turn_came", [False, True])
def test_who_gives_up_waiting_leaves_nothing(its_turn_came: bool) -> None:
    async def history() -> None:
        budget = Budget(100)
        await budget.take(100)
        gives_up, waits = (asyncio.create_task(budget.take(80)) for _ in range(2))
        await asyncio.sleep(0)
        if its_turn_came:
            budget.give_back(100)
        gives_up.cancel()
        await asyncio.gather(gives_up, return_exceptions=True)
        if not its_turn_came:
            budget.give_back(100)
        await waits
        assert budget.in_use == 80

    asyncio.run(history())


def test_small_batches_are_joined_and_none_is_lost(tmp_path: Path) -> None:
    with duolog.open_log(tmp_path / "log") as log:
        log.create_topic("orders")
        for n in range(100):
            log.publish("orders", Record(b"%d" % n, b"k", (("h", b"%d" % n),) if n % 7 else ()))
        log.publish("orders", Record(random.Random(1).randbytes(300_000)))
        found = [stretch_of(group) for group in groups(log.fetch_encoded("orders", 0, 5))]
    assert [(one.first, one.stop) for one in found] == [(5, 100), (100, 101)]
    assert found[0].records.column("value").to_pylist() == [b"%d" % n for n in range(5, 100)]
    part = found[0].part(50, 52)
    assert (part.first, part.records.column("value").to_pylist()) == (50, [b"50", b"51"])


def test_settings_from_the_host() -> None:
    given = {"folder": "/a/log", "bootstrap_servers": "a:1", "when_refused": "halt"}
    settings = WorkerSettings.of(given)
    assert settings.folder == Path("/a/log")
    assert settings.options.when_refused is WhenRefused.HALT


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"folder": "/a"}, "bootstrap_servers is too much or missing"),
        ({"folder": "/a", "bootstrap_servers": "a:1", "more": 1}, "more is too much"),
        ({"folder": "/a", "bootstrap_servers": "a:1", "when_refused": "drop"}, "dlq, halt"),
        (
            {"folder": "/a", "bootstrap_servers": "a:1", "settings": {"ack": "1"}},
            "no Kafka setting",
        ),
    ],
)
def test_settings_that_cannot_be(given: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidSetting, match=said):
        WorkerSettings.of(given)
