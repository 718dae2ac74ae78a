"""Publishers against a real host, and one that loses answers on the way."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest

from duolog.client import AsyncPublisher, NewRecord, Publisher
from duolog.errors import (
    ClientClosed,
    HostUnreachable,
    InvalidRecord,
    InvalidRequest,
    InvalidRows,
    InvalidSetting,
    OutcomeUnknown,
    RecordTooLarge,
    SequenceContentMismatch,
    SequenceGap,
    SequenceOutOfOrder,
    UnknownPartition,
    UnknownRoute,
    UnknownTopic,
)
from duolog.log.model import Op, PayloadMode, Placed, Route, TopicSettings
from tests.integration.client_way import way_to
from tests.integration.serve_host import ServedLog, served


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLog]:
    """One host for all of these; each test makes topics of its own."""
    with served(tmp_path_factory.mktemp("served") / "log") as running:
        yield running


@pytest.fixture
def topic(host: ServedLog, request: pytest.FixtureRequest) -> str:
    name = str(request.node.originalname)[:200]
    host.log.create_topic(name)
    return name


def values(host: ServedLog, topic: str) -> list[bytes | None]:
    return [record.value for record in host.log.fetch(topic, 0, 0)]


@dataclass
class Order:
    item: str
    qty: int


def test_records_are_durable_where_the_answer_says(host: ServedLog) -> None:
    host.log.create_topic("orders", TopicSettings(partitions=2))
    with Publisher(url=host.url) as publisher:
        placed = publisher.publish(
            "orders",
            b"\xff",
            key="k",
            headers={"a": "b", "none": None},
            partition=1,
            op="update",
            table="shop.orders",
            payload_mode="full",
            ts_ms=7,
        )
    assert placed == Placed("orders", 1, 0)
    (record,) = host.log.fetch("orders", 1, 0)
    assert (record.value, record.key, record.ts_ms) == (b"\xff", b"k", 7)
    assert record.headers == (("a", b"b"), ("none", None))
    assert (record.op, record.table) == (Op.UPDATE, "shop.orders")
    assert record.payload is PayloadMode.FULL


def test_what_is_no_bytes_and_no_text_goes_as_json(host: ServedLog, topic: str) -> None:
    given = [b"raw", "tëxt", {"b": 1, "a": [1.5, None]}, 7, True, None, Order("tea", 2)]
    with Publisher(url=host.url) as publisher:
        publisher.publish_many(topic, given)
        publisher.publish_many(topic, [])
        for wrong in (object(), float("nan"), {"a": {1, 2}}, "\ud800"):
            with pytest.raises(InvalidRecord, match="cannot be written"):
                publisher.publish(topic, wrong)
    assert values(host, topic) == [
        b"raw",
        "tëxt".encode(),
        b'{"b":1,"a":[1.5,null]}',
        b"7",
        b"true",
        None,
        b'{"item":"tea","qty":2}',
    ]


def test_many_records_go_in_several_requests_and_keep_their_order(
    host: ServedLog, topic: str
) -> None:
    with Publisher(url=host.url) as publisher:
        placed = publisher.publish_many(topic, (NewRecord(at, key="k") for at in range(2500)))
    assert [each.offset for each in placed] == list(range(2500))
    assert values(host, topic) == [b"%d" % at for at in range(2500)]


@pytest.mark.parametrize("count", [1, 1000])
def test_a_lost_answer_is_asked_for_again_and_writes_nothing_twice(
    host: ServedLog, count: int
) -> None:
    name = f"lost-{count}"
    host.log.create_topic(name)
    with way_to(host.port, lost_answers=3) as way, Publisher(url=way.url) as publisher:
        placed = publisher.publish_many(name, range(count))
    assert [each.offset for each in placed] == list(range(count))
    assert values(host, name) == [b"%d" % at for at in range(count)]


def test_what_was_not_settled_in_time_can_be_sent_again_by_its_name(
    host: ServedLog, topic: str
) -> None:
    named: Any = {"writer": "w", "next_sequence": 5}
    with (
        way_to(host.port, lost_answers=1_000_000) as way,
        Publisher(url=way.url, deadline_seconds=0.2, **named) as publisher,
    ):
        with pytest.raises(OutcomeUnknown, match=r"As writer 'w' with next_sequence=5"):
            publisher.publish(topic, "once")
        assert publisher.next_sequence == 6
    with Publisher(url=host.url, **named) as publisher:
        assert publisher.publish(topic, "once") == Placed(topic, 0, 0)
        assert publisher.publish(topic, "next").offset == 1
    again = Publisher(url=host.url, **named)
    with again, pytest.raises(SequenceContentMismatch, match="has already published sequence 5"):
        again.publish(topic, "other")
    assert values(host, topic) == [b"once", b"next"]


def test_numbers_follow_one_another_where_that_is_asked_for(host: ServedLog, topic: str) -> None:
    named: Any = {"writer": f"ordered-{topic}", "in_order": True}
    with Publisher(url=host.url, next_sequence=0, **named) as publisher:
        assert publisher.last_sequence() is None
        assert publisher.publish(topic, "0").offset == 0
        with pytest.raises(InvalidRecord):
            publisher.publish(topic, "refused", op="burn")
        assert publisher.publish_many(topic, ["1", "2"])[-1].offset == 2  # its number was free
        assert publisher.last_sequence() == publisher.next_sequence - 1 == 2
    with Publisher(url=host.url, next_sequence=9, **named) as ahead:
        with pytest.raises(SequenceGap, match="Send 3 next"):
            ahead.publish(topic, "9")
        assert ahead.next_sequence == 9
    with Publisher(url=host.url, writer=named["writer"], next_sequence=9) as anyhow:
        anyhow.publish(topic, "9")
    with Publisher(url=host.url, next_sequence=5, **named) as behind:
        with pytest.raises(SequenceOutOfOrder, match="Send 10 next"):
            behind.publish(topic, "5")
        assert behind.last_sequence("nobody") is None
    with Publisher(url=host.url) as unnamed, pytest.raises(InvalidRequest):
        unnamed.last_sequence()
    with pytest.raises(InvalidSetting, match="in_order"):
        Publisher(url=host.url, in_order=True)
    assert values(host, topic) == [b"0", b"1", b"2", b"9"]


@pytest.mark.parametrize("arrives", [True, False])
def test_in_order_a_publisher_goes_on_after_an_answer_that_never_came(
    host: ServedLog, arrives: bool
) -> None:
    """The next record's number depends on whether the one before was written: the host knows."""
    topic = f"doubted-{arrives}"
    host.log.create_topic(topic)
    with (
        way_to(host.port) as way,
        Publisher(
            url=way.url, deadline_seconds=3, writer=topic, next_sequence=0, in_order=True
        ) as publisher,
    ):
        publisher.publish(topic, "0")
        if arrives:
            way.lost_answers = 1_000_000
        else:
            way.behind = None
            way.hang_up()
        with pytest.raises((OutcomeUnknown, HostUnreachable)):
            publisher.publish(topic, "1")
        way.lost_answers, way.behind = 0, host.port
        way.hang_up()
        publisher.publish(topic, "2")
        assert publisher.last_sequence() == publisher.next_sequence - 1
    assert values(host, topic) == ([b"0", b"1", b"2"] if arrives else [b"0", b"2"])


def test_rows_go_by_their_routes_and_not_twice(host: ServedLog) -> None:
    for name, ops in (("all", {Op.INSERT, Op.UPDATE}), ("inserts", {Op.INSERT})):
        host.log.create_topic(name)
        host.log.add_route(name, Route("shop.items", frozenset(ops)))
    rows = [{"id": number, "name": "tea"} for number in range(300)]
    with way_to(host.port, lost_answers=2) as way, Publisher(url=way.url) as publisher:
        placed = publisher.publish_rows("shop.items", "insert", rows, ["id"])
        assert len(placed) == 600
        (again,) = publisher.publish_rows("shop.items", "update", rows[:1], ["id"], ts_ms=7)
        with pytest.raises(UnknownRoute):
            publisher.publish_rows("shop.none", "insert", rows[:1], ["id"])
        with pytest.raises(InvalidRecord, match="A row cannot be written"):
            publisher.publish_rows("shop.items", "insert", [{"id": object()}], ["id"])
        assert publisher.publish("all", "last").offset == 301
    assert again == Placed("all", 0, 300)
    assert host.log.offsets("inserts")[0].next_offset == 300
    assert host.log.fetch("all", 0, 300).table().column("ts").to_pylist()[0] == 7


def test_rows_come_with_the_rows_before_them(host: ServedLog) -> None:
    host.log.create_topic("diffs")
    everything = frozenset({Op.INSERT, Op.UPDATE, Op.DELETE})
    host.log.add_route("diffs", Route("shop.diffs", everything, payload=PayloadMode.DIFF))
    rows = [{"id": number, "qty": 2} for number in range(300)]  # more than go in one request
    before = [{**row, "qty": 1} if row["id"] % 2 else None for row in rows]
    with Publisher(url=host.url) as publisher:
        publisher.publish_rows("shop.diffs", "update", rows, ["id"], before=iter(before))
        with pytest.raises(InvalidRows, match="2 rows came with 1 rows before them"):
            publisher.publish_rows("shop.diffs", "update", rows[:2], ["id"], before=before[:1])
    told = [json.loads(record.value or b"")["before"] for record in host.log.fetch("diffs", 0, 0)]
    assert told == [{"qty": 1} if number % 2 else None for number in range(300)]


def test_rows_that_no_route_takes_are_dropped_when_told_so(host: ServedLog) -> None:
    with Publisher(url=host.url) as publisher:
        rows = [{"id": 1}]
        assert publisher.publish_rows("no.route", "insert", rows, ["id"], unrouted="drop") == []
        with pytest.raises(UnknownRoute):
            publisher.publish_rows("no.route", "insert", rows, ["id"])


def test_rows_that_were_not_settled_are_sent_again_by_name(host: ServedLog) -> None:
    host.log.create_topic("settled")
    host.log.add_route("settled", Route("shop.settled", frozenset({Op.INSERT})))
    named: Any = {"writer": "rows", "next_sequence": 0}
    rows = [{"id": 1}]
    with (
        way_to(host.port, lost_answers=1_000_000) as way,
        Publisher(url=way.url, deadline_seconds=0.2, **named) as publisher,
    ):
        with pytest.raises(OutcomeUnknown, match="As writer 'rows' with next_sequence=0"):
            publisher.publish_rows("shop.settled", "insert", rows, ["id"], ts_ms=7)
        assert publisher.next_sequence == 0
    with Publisher(url=host.url, **named) as publisher:
        placed = publisher.publish_rows("shop.settled", "insert", rows, ["id"], ts_ms=7)
        assert placed == [Placed("settled", 0, 0)]
        assert publisher.next_sequence == 1


def test_after_rows_that_were_not_settled_others_can_be_sent(host: ServedLog) -> None:
    host.log.create_topic("unsettled")
    host.log.add_route("unsettled", Route("shop.unsettled", frozenset({Op.INSERT})))
    with (
        way_to(host.port, lost_answers=1_000_000) as way,
        Publisher(url=way.url, deadline_seconds=0.5) as publisher,
    ):
        with pytest.raises(OutcomeUnknown):
            publisher.publish_rows("shop.unsettled", "insert", [{"id": 1}], ["id"])
        way.lost_answers = 0
        placed = publisher.publish_rows("shop.unsettled", "insert", [{"id": 2}], ["id"])
    assert placed == [Placed("unsettled", 0, 1)]


def test_threads_share_a_publisher(host: ServedLog, topic: str) -> None:
    with Publisher(url=host.url) as publisher, ThreadPoolExecutor(24) as threads:
        placed = list(threads.map(lambda at: publisher.publish(topic, at), range(120)))
    assert sorted(each.offset for each in placed) == list(range(120))
    assert set(values(host, topic)) == {b"%d" % at for at in range(120)}


def test_with_asyncio(host: ServedLog, topic: str) -> None:
    async def publish() -> list[Placed]:
        async with AsyncPublisher(url=host.url) as publisher:
            return await asyncio.gather(*(publisher.publish(topic, at) for at in range(50)))

    placed = asyncio.run(publish())
    stored = values(host, topic)
    assert [stored[each.offset] for each in placed] == [b"%d" % at for at in range(50)]


def test_a_publish_that_was_given_up_leaves_its_sequence_behind(
    host: ServedLog, topic: str
) -> None:
    async def publish() -> None:
        async with AsyncPublisher(url=host.url) as publisher:
            given_up = asyncio.create_task(publisher.publish(topic, "given up"))
            await asyncio.sleep(0)
            given_up.cancel()
            with pytest.raises(asyncio.CancelledError):
                await given_up
            await publisher.publish(topic, "next")

    asyncio.run(publish())
    assert values(host, topic)[-1] == b"next"


def test_refusals_have_their_names(host: ServedLog, topic: str) -> None:
    with Publisher(url=host.url) as publisher:
        for error, target, more in (
            (UnknownTopic, "no-such", {}),
            (UnknownPartition, topic, {"partition": 9}),
            (RecordTooLarge, topic, {"value": b"x" * (1 << 21)}),
            (InvalidRecord, topic, {"op": "burn"}),
        ):
            given: dict[str, Any] = {"value": "v", **more}
            with pytest.raises(error):
                publisher.publish(target, **given)
        assert publisher.publish(topic, "good").offset == 0
        with pytest.raises(InvalidRequest, match="has no name of its own"):
            print(publisher.next_sequence)
    with pytest.raises(ClientClosed):
        publisher.publish(topic, "late")


def test_nobody_there_is_told_within_the_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    publisher = Publisher(url=url, deadline_seconds=0.1)
    said = r"could not be asked to publish a record to topic 'orders': .*\(tried for"
    with publisher, pytest.raises(HostUnreachable, match=said):
        publisher.publish("orders", "v")
