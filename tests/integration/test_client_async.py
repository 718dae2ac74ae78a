"""The same with asyncio; and the admin, against a whole host in a process of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from duolog import open_log
from duolog.client import (
    Admin,
    AsyncAdmin,
    AsyncConsumer,
    AsyncPublisher,
    ConsumedRecord,
    Consumer,
    Publisher,
)
from duolog.client import consumer as consumer_module
from duolog.client.host_calls import HostCalls
from duolog.client.model import Ack, Piece
from duolog.client.pages import records_of
from duolog.client.portal import Portal
from duolog.errors import ClientClosed, InvalidSql, UnknownTopic
from duolog.log.model import Earliest, Latest, Retention
from tests.integration.client_host import serving
from tests.integration.client_way import DEADLINE_SECONDS, Way, way_to


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One host for all of these; each test makes topics of its own."""
    folder: Path = tmp_path_factory.mktemp("served")
    open_log(folder / "log").close()
    with serving(folder) as found:
        yield found


def test_topics_and_groups_are_looked_at_and_changed(url: str) -> None:
    with Admin(url=url) as admin:
        made = admin.create_topic(
            "orders", partitions=2, alias="o", retention_seconds=60, if_not_exists=True
        )
        assert made == admin.create_topic("orders", if_not_exists=True) == admin.topic("o")
        assert made.retention == Retention(seconds=60)
        assert "orders" in [topic.name for topic in admin.topics()]
        with Publisher(url=url) as publisher:
            publisher.publish_many("orders", range(10))
            placed = publisher.publish("orders", "x", partition=1)
        assert sum(each.next_offset for each in admin.offsets("orders")) == 11
        with Consumer("orders", url=url, group="g", start="earliest") as consumer:
            consumer.poll()
            consumer.ack()
        assert "g" in admin.groups()
        assert set(admin.lag("g").values()) == {0}
        for to, position in ((Earliest(), 0), (placed.offset, placed.offset), (0, 0)):
            assert admin.seek("g", "orders", to, partition=1).position == position
        assert admin.lag("g")["orders", 1] == placed.offset + 1
        assert admin.seek("g", "orders", Latest(), 1).position == placed.offset + 1
        assert len(admin.positions("g", "orders")) == len(admin.positions("g")) == 2
        assert admin.delete_group("g") == 2
        assert admin.sql("SELECT count(*) AS n FROM orders").table().to_pylist() == [{"n": 11}]
        with pytest.raises(InvalidSql):
            admin.sql("MAKE TOPIC x")
        admin.drop_topic("orders")
        with pytest.raises(UnknownTopic):
            admin.topic("orders")
    for _ in range(2):
        with pytest.raises(ClientClosed):
            admin.topics()
        admin.close()


def test_everything_is_there_for_asyncio(url: str) -> None:
    async def run() -> None:
        async with (
            AsyncAdmin(url=url) as admin,
            AsyncPublisher(url=url) as publisher,
            AsyncConsumer({"tasks": [0]}, url=url, group="h", start="earliest") as consumer,
        ):
            assert repr(admin) == f"<AsyncAdmin of {url}>"
            await admin.create_topic("tasks")
            assert (await admin.topic("tasks")).name in [t.name for t in await admin.topics()]
            polling = asyncio.create_task(consumer.poll(60))
            await publisher.publish("tasks", 0)
            assert [record.value for record in await polling] == [0]
            await publisher.publish_many("tasks", [1, 2, 3])
            async for record in consumer:
                if record.value == 2:
                    break
            assert await consumer.position("tasks") == 3
            assert [each.position for each in await admin.positions("h")] == [1]
            await consumer.ack(record)
            assert await admin.lag("h") == {("tasks", 0): 1}
            await consumer.seek("tasks", 0)
            assert [len(table) for table in await consumer.poll_tables()] == [4]
            await consumer.commit()
            assert (await admin.seek("h", "tasks", 0)).position == 0
            assert (await admin.sql("SELECT count(*) AS n FROM tasks")).to_pylist() == [{"n": 4}]
            assert (await admin.groups(), await admin.delete_group("h")) == (("h",), 1)
            assert (await admin.offsets("tasks"))[0].next_offset == 4
            await admin.drop_topic("tasks")

    asyncio.run(run())


def test_a_poll_that_is_given_up_loses_nothing(url: str) -> None:
    async def run() -> list[int]:
        async with (
            AsyncAdmin(url=url) as admin,
            AsyncPublisher(url=url) as publisher,
            AsyncConsumer("given-up", url=url, group="i", start="earliest") as consumer,
        ):
            await admin.create_topic("given-up")
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(consumer.poll(60), 0.2)
            await publisher.publish_many("given-up", [1, 2, 3])
            found: list[int] = []
            while len(found) < 3:
                found += [record.value for record in await consumer.poll()]
            return found

    assert asyncio.run(run()) == [1, 2, 3]


def test_a_publisher_in_order_goes_on_after_a_publish_that_was_given_up(url: str) -> None:
    async def run(way: Way) -> list[int]:
        named: Any = {"writer": "given-up", "next_sequence": 0, "in_order": True}
        async with AsyncAdmin(url=url) as admin, AsyncPublisher(url=way.url, **named) as publisher:
            await admin.create_topic("ordered")
            await publisher.publish("ordered", 0)
            way.lost_answers = 1_000_000
            given_up = asyncio.create_task(publisher.publish("ordered", 1))
            async with asyncio.timeout(DEADLINE_SECONDS):
                while (await admin.offsets("ordered"))[0].next_offset < 2:
                    await asyncio.sleep(0.01)
            given_up.cancel()
            with pytest.raises(asyncio.CancelledError):
                await given_up
            way.lost_answers = 0
            await publisher.publish("ordered", 2)
            assert publisher.next_sequence == 3
            table = await admin.sql('SELECT value FROM ordered ORDER BY "offset"')
            return [int(value) for value in table["value"].to_pylist()]

    with way_to(int(url.rpartition(":")[2])) as way:
        assert asyncio.run(run(way)) == [0, 1, 2]


def test_a_large_poll_that_is_given_up_while_it_is_decoded_comes_again(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with AsyncAdmin(url=url) as admin, AsyncPublisher(url=url) as publisher:
            await admin.create_topic("large")
            await publisher.publish_many("large", range(3000))
        async with AsyncConsumer(
            "large", url=url, group="j", start="earliest", max_records=5000
        ) as consumer:
            started, loop = asyncio.Event(), asyncio.get_running_loop()

            def slowly(pieces: list[Piece]) -> list[ConsumedRecord]:
                loop.call_soon_threadsafe(started.set)
                return records_of(pieces)

            with monkeypatch.context() as patched:
                patched.setattr(consumer_module, "records_of", slowly)
                poll = asyncio.create_task(consumer.poll(60))
                await started.wait()
                poll.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await poll
            assert [record.value for record in await consumer.poll()] == list(range(3000))
            assert await consumer.poll(0) == []

    asyncio.run(run())


async def publish_six(url: str, topic: str) -> None:
    async with AsyncAdmin(url=url) as admin, AsyncPublisher(url=url) as publisher:
        await admin.create_topic(topic)
        for number in range(6):
            await publisher.publish(topic, number)


def slow_acks(monkeypatch: pytest.MonkeyPatch) -> tuple[list[int], asyncio.Event]:
    """What was acknowledged, and what acknowledgements wait for."""
    ack, acked, answers = HostCalls.ack, list[int](), asyncio.Event()

    async def slow(self: HostCalls, group: str, asked: Ack, *more: Any) -> int:
        await answers.wait()
        acked.append(asked.upto_offset)
        return await ack(self, group, asked, *more)

    monkeypatch.setattr(HostCalls, "ack", slow)
    return acked, answers


def test_more_is_handed_out_while_an_acknowledgement_is_under_way(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play() -> None:
        await publish_six(url, "fast")
        acked, answers = slow_acks(monkeypatch)
        reading = AsyncConsumer("fast", url=url, group="g", start="earliest", max_records=2)
        async with reading:
            for pair in ([0, 1], [2, 3], [4, 5]):
                assert [each.value for each in await reading.poll()] == pair
            asyncio.get_running_loop().call_later(0.3, answers.set)
            assert await reading.poll(0) == []
            assert acked == [1, 5], "what was done meanwhile went together, before the answer"
            assert await reading.position("fast") == 6

    asyncio.run(play())


def test_what_takes_longer_than_the_interval_is_waited_for(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play() -> None:
        await publish_six(url, "paged")
        acked, answers = slow_acks(monkeypatch)
        reading = AsyncConsumer(
            "paged",
            url=url,
            group="g",
            start="earliest",
            max_records=2,
            ack_interval_seconds=0,
        )
        async with reading:
            assert [each.value for each in await reading.poll()] == [0, 1]
            second = asyncio.create_task(reading.poll())
            assert not (await asyncio.wait({second}, timeout=0.3))[0]
            answers.set()
            assert [each.value for each in await second] == [2, 3]
            assert acked == [1]

    asyncio.run(play())


def test_a_poll_that_waits_for_an_acknowledgement_is_ended_by_closing(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play() -> None:
        await publish_six(url, "shut")
        ack, asked = HostCalls.ack, 0

        async def slow(self: HostCalls, group: str, what: Ack, *more: Any) -> int:
            nonlocal asked
            asked += 1
            if asked == 1:
                await asyncio.Event().wait()
            return await ack(self, group, what, *more)

        monkeypatch.setattr(HostCalls, "ack", slow)
        reading = AsyncConsumer(
            "shut", url=url, group="g", start="earliest", max_records=2, ack_interval_seconds=0
        )
        await reading.poll()
        second = asyncio.create_task(reading.poll())
        assert not (await asyncio.wait({second}, timeout=0.3))[0]
        await reading.close()
        with pytest.raises(ClientClosed):
            await second
        async with AsyncAdmin(url=url) as admin:
            (position,) = await admin.positions("g", "shut")
            assert position.position == 2, "what was handed out before counts"

    asyncio.run(play())


def test_an_interrupted_poll_gives_back_what_it_took(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Admin(url=url) as admin, Publisher(url=url) as publisher:
        admin.create_topic("interrupted")
        publisher.publish_many("interrupted", range(3))
    with Consumer("interrupted", url=url, group="k", start="earliest") as consumer:

        def interrupting(self: Portal, coroutine: Coroutine[Any, Any, Any]) -> None:
            run(self, coroutine)
            raise KeyboardInterrupt

        run = Portal.run
        with monkeypatch.context() as patched:
            patched.setattr(Portal, "run", interrupting)
            with pytest.raises(KeyboardInterrupt):
                consumer.poll()
        assert [record.value for record in consumer.poll()] == [0, 1, 2]
        assert consumer.poll(0) == []


def test_a_failing_block_is_told_and_not_what_closing_says(url: str) -> None:
    with pytest.raises(ZeroDivisionError), Consumer("no-such", url=url, group="g") as consumer:
        print(1 // 0, consumer)
