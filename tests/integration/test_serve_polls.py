"""Long polls: woken by the append, given up by clients that leave, and by the thousand."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from duolog.bridge.http.looking import Looks
from duolog.bridge.http.rules import TopicRules
from duolog.bridge.metrics.names import POLLS_WAITING
from duolog.log.model import Record, TopicSettings
from tests.integration.serve_host import DEADLINE_SECONDS, Reply, ServedLog, served, stop, until

LONG = {"timeout_seconds": 120}


@pytest.fixture
def host(tmp_path: Path) -> Iterator[ServedLog]:
    with served(tmp_path / "log") as running:
        running.log.create_topic("orders", TopicSettings(partitions=2))
        yield running


@pytest.fixture
def in_background() -> Iterator[Callable[[Callable[[], Reply]], Future[Reply]]]:
    with ThreadPoolExecutor() as threads:
        yield threads.submit


def until_waiting(host: ServedLog, polls: int) -> None:
    """A poll counts as waiting once it has looked and found nothing."""
    until(lambda: host.host.tally.number(POLLS_WAITING) == polls)


def open_poll(host: ServedLog, **wanted: Any) -> socket.socket:
    """A poll on a socket of its own."""
    body = json.dumps({"topic": "orders", **LONG, **wanted}).encode()
    client = socket.create_connection(("127.0.0.1", host.port), timeout=DEADLINE_SECONDS)
    client.sendall(
        b"POST /v1/api/topics/consume HTTP/1.1\r\nHost: localhost\r\n"
        b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    )
    return client


@pytest.mark.parametrize("partition", [None, 1])
def test_a_poll_is_answered_by_the_append(
    host: ServedLog, in_background: Any, partition: int | None
) -> None:
    wanted = {"topic": "orders", "group_id": "g", "partition_id": partition, **LONG}
    poll = in_background(lambda: host.consume(**wanted))
    until_waiting(host, 1)
    host.log.publish("orders", [Record(b"elsewhere", partition=0)] if partition else [])
    assert not poll.done()
    host.log.publish("orders", [Record(b"here", partition=1)])
    reply = poll.result(DEADLINE_SECONDS)
    assert reply.json["messages"][-1]["message_id"] == f"{host.log.topic('orders').id}:1:0"
    assert host.host.tally.number(POLLS_WAITING) == 0


def test_an_append_right_after_the_look_is_not_missed(
    host: ServedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    glance, glances = Looks.glance, [0]

    def glance_and_append(self: Looks[Any]) -> Any:
        found = glance(self)
        glances[0] += 1
        if glances[0] == 1:
            host.log.publish("orders", [Record(b"just now")])
        return found

    monkeypatch.setattr(Looks, "glance", glance_and_append)
    assert len(host.consume(topic="orders", **LONG).json["messages"]) == 1
    assert glances == [2]


def test_a_poll_of_all_partitions_sees_one_that_the_topic_got_meanwhile(
    host: ServedLog, in_background: Any
) -> None:
    poll = in_background(lambda: host.consume(topic="orders", **LONG))
    until_waiting(host, 1)
    host.log.set_partitions("orders", 3)
    host.log.publish("orders", [Record(b"new", partition=2)])
    assert poll.result(DEADLINE_SECONDS).json["messages"][0]["partition_id"] == 2


def test_a_poll_of_a_topic_that_is_dropped_is_told(host: ServedLog, in_background: Any) -> None:
    host.publish("orders", "a")
    poll = in_background(lambda: host.consume(topic="orders", start="Latest", **LONG))
    until_waiting(host, 1)
    host.log.drop_topic("orders")
    assert poll.result(DEADLINE_SECONDS).code == "UnknownTopic"


def test_the_latest_offset_is_that_of_the_first_look(host: ServedLog, in_background: Any) -> None:
    host.publish("orders", "before")
    poll = in_background(lambda: host.consume(topic="orders", start="Latest", **LONG))
    until_waiting(host, 1)
    host.publish("orders", "after")
    assert len(poll.result(DEADLINE_SECONDS).json["messages"]) == 1


def test_a_poll_answers_nothing_when_its_time_is_up(tmp_path: Path) -> None:
    rules = TopicRules(default_consume_timeout=0.05, max_consume_timeout=0.1)
    with served(tmp_path / "log", rules=rules) as host:
        host.log.create_topic("orders")
        for wanted in ({"timeout_seconds": 0.01}, {"timeout_seconds": None}, LONG):
            reply = host.consume(topic="orders", **wanted)
            assert reply.json == {
                "messages": [],
                "topic_id": 1,
                "next_offset": None,
                "next_offsets": {"0": 0},
                "has_more": False,
            }


def test_a_second_consumer_of_a_group_is_told_who_holds_its_place(
    host: ServedLog, in_background: Any
) -> None:
    poll = in_background(lambda: host.consume(topic="orders", group_id="g", **LONG))
    until_waiting(host, 1)
    for partition in (None, 0, 1):
        refused = host.consume(topic="orders", group_id="g", partition_id=partition)
        assert (refused.status, refused.code) == (409, "PartitionHeld")
        assert refused.json["holder"].startswith("anybody at 127.0.0.1:")
        assert refused.json["holder"] in refused.json["error"]
    assert host.consume(topic="orders", group_id="other").status == 200
    assert host.consume(topic="orders").status == 200
    host.publish("orders", "a")
    assert poll.result(DEADLINE_SECONDS).status == 200
    assert host.consume(topic="orders", group_id="g", start="Earliest").status == 200
    assert host.metric("duolog_poll_conflicts_total") == 3


def test_two_consumers_of_a_group_share_by_partition(host: ServedLog, in_background: Any) -> None:
    polls = [
        in_background(
            lambda each=each: host.consume(topic="orders", group_id="g", partition_id=each, **LONG)
        )
        for each in (0, 1)
    ]
    until_waiting(host, 2)
    host.log.publish("orders", [Record(b"a", partition=0), Record(b"b", partition=1)])
    replies = [poll.result(DEADLINE_SECONDS).json["messages"] for poll in polls]
    assert [[(each["partition_id"], each["offset"]) for each in reply] for reply in replies] == [
        [(0, 0)],
        [(1, 0)],
    ]


@pytest.mark.parametrize("half", [False, True], ids=["closes", "half-closes"])
def test_a_client_that_goes_away_frees_its_place(host: ServedLog, half: bool) -> None:
    client = open_poll(host, group_id="g")
    try:
        until_waiting(host, 1)
        assert host.consume(topic="orders", group_id="g").status == 409
        if half:
            client.shutdown(socket.SHUT_WR)
        else:
            client.close()
        until_waiting(host, 0)
        until(lambda: len(host.host.places) == 0)
        assert host.consume(topic="orders", group_id="g").status == 200
        assert host.metric('duolog_poll_seconds_count{ended="gone"}') == 1
    finally:
        client.close()


def test_a_client_that_resets_its_connection_frees_its_place(host: ServedLog) -> None:
    client = open_poll(host, group_id="g")
    until_waiting(host, 1)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    client.close()
    until_waiting(host, 0)
    until(lambda: len(host.host.places) == 0)


def test_a_thousand_polls_wait_without_threads_of_their_own(host: ServedLog) -> None:
    async def poll() -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", host.port)
        body = json.dumps({"topic": "orders", "partition_id": 0, **LONG}).encode()
        writer.write(
            b"POST /v1/api/topics/consume HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
        )
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        return answer

    async def play() -> list[bytes]:
        threads_before = threading.active_count()  # of other tests in this process too
        polls = [asyncio.create_task(poll()) for _ in range(1000)]
        while host.host.tally.number(POLLS_WAITING) < 1000:
            await asyncio.sleep(0.01)
        assert threading.active_count() < threads_before + 60
        assert (await asyncio.to_thread(host.ask, "/healthz")).status == 200
        await asyncio.to_thread(host.log.publish, "orders", [Record(b"for all", partition=0)])
        return await asyncio.gather(*polls)

    answers = asyncio.run(asyncio.wait_for(play(), DEADLINE_SECONDS * 2))
    assert len(answers) == 1000
    assert all(b'"message_id":"1:0:0"' in answer for answer in answers)
    assert host.host.tally.number(POLLS_WAITING) == 0


def test_a_host_that_stops_answers_its_polls_and_takes_no_more(tmp_path: Path) -> None:
    with served(tmp_path / "log") as host, ThreadPoolExecutor(20) as threads:
        host.log.create_topic("orders")
        polls = [threads.submit(lambda: host.consume(topic="orders", **LONG)) for _ in range(20)]
        until_waiting(host, 20)
        stop(host)
        for poll in polls:
            reply = poll.result(DEADLINE_SECONDS)
            assert (reply.status, reply.json["messages"]) == (200, [])
        with pytest.raises(ConnectionRefusedError):
            host.ask("/healthz")


def test_publishers_that_are_under_way_are_answered_when_the_host_stops(tmp_path: Path) -> None:
    acknowledged: list[int] = []

    def publish(host: ServedLog) -> None:
        while True:
            try:
                reply = host.publish("orders", "v")
            except OSError:
                return
            if reply.status != 200:
                return
            acknowledged.append(reply.json["offsets"][0]["offset"])

    with served(tmp_path / "log") as host:
        host.log.create_topic("orders")
        threads = [threading.Thread(target=publish, args=(host,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        until(lambda: len(acknowledged) > 50)
        stop(host)
        for thread in threads:
            thread.join(DEADLINE_SECONDS)
        kept = host.log.offsets("orders")[0].next_offset
    assert len(set(acknowledged)) == len(acknowledged)
    assert sorted(acknowledged) == list(range(kept))
