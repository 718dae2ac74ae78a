"""Several consumers of one group over HTTP: they share the partitions, and hand them over."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from duolog.bridge.http.callers import Caller, Role
from duolog.bridge.http.tokens import add_token
from duolog.bridge.members.model import Rules
from duolog.bridge.metrics.bounds import MetricRules
from duolog.bridge.metrics.names import POLLS_WAITING
from duolog.clock import SystemClock
from duolog.log.model import Record, TopicSettings
from tests.integration.serve_host import DEADLINE_SECONDS, Reply, ServedLog, served, until

PARTITIONS = 4


@pytest.fixture
def host(tmp_path: Path) -> Iterator[ServedLog]:
    with served(tmp_path / "log") as running:
        running.log.create_topic("orders", TopicSettings(partitions=PARTITIONS))
        for partition in range(PARTITIONS):
            running.log.publish("orders", [Record(b"%d" % n, partition=partition) for n in (0, 1)])
        yield running


class HurriedClock(SystemClock):
    """Goes as ever, but for what a test adds."""

    ahead_seconds = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead_seconds


class Consumer:
    """A member that carries what it is told."""

    def __init__(self, host: ServedLog, **asked: Any) -> None:
        self.host = host
        self.told: dict[str, Any] = {}
        self.join(session_timeout_seconds=60, **asked)

    def join(self, **asked: Any) -> Reply:
        known = {"member_id": self.told["member_id"]} if self.told else {}
        return self._heard(self.host.consume(**{**self._names, **known, **asked}))

    def poll(self, **asked: Any) -> Reply:
        return self._heard(self.host.consume(**self._names, **self.ids, **asked))

    def ack(self, partition: int, upto: int, **ids: Any) -> Reply:
        body = {"topic": "orders", "group_id": "g", **self.ids, **ids}
        body |= {"partition_id": partition, "upto_offset": upto}
        return self.host.ask("/v1/api/topics/ack", body)

    def tell(self, what: str, **ids: Any) -> Reply:
        body = {"topic": "orders", "group_id": "g", "member_id": self.told["member_id"], **ids}
        return self.host.ask(f"/v1/api/topics/{what}", body)

    @property
    def ids(self) -> dict[str, Any]:
        return {name: self.told[name] for name in ("member_id", "generation")}

    @property
    def assigned(self) -> list[int]:
        return list(self.told["assigned"])

    _names = {"topic": "orders", "group_id": "g", "start": "Earliest"}  # noqa: RUF012

    def _heard(self, reply: Reply) -> Reply:
        if reply.status == 200:
            self.told = reply.json
        return reply


def offsets(reply: Reply) -> list[str]:
    messages = reply.json["messages"]
    return sorted(f"{each['partition_id']}:{each['offset']}" for each in messages)


def code(reply: Reply) -> tuple[int, str]:
    return reply.status, reply.code


def test_the_first_member_has_all_partitions_and_the_second_half_of_them(host: ServedLog) -> None:
    first = Consumer(host)
    assert (first.assigned, len(first.told["messages"])) == ([0, 1, 2, 3], 8)
    second = Consumer(host)
    assert second.assigned == []  # the first one has not let go of anything yet
    assert code(first.poll()) == (409, "StaleGeneration")
    assert offsets(first.join()) == ["0:0", "0:1", "1:0", "1:1"]
    assert code(second.poll()) == (409, "StaleGeneration")
    assert offsets(second.join()) == ["2:0", "2:1", "3:0", "3:1"]
    assert first.poll().status == second.poll().status == 200
    assert first.told["generation"] != second.told["generation"]


def test_who_waits_is_told_at_once(host: ServedLog) -> None:
    first = Consumer(host, limit=1)
    for partition in range(PARTITIONS):
        assert first.ack(partition, 1).status == 200
    waiting = host.host.tally.number(POLLS_WAITING)
    with ThreadPoolExecutor() as threads:
        poll = threads.submit(first.poll, timeout_seconds=120)
        until(lambda: host.host.tally.number(POLLS_WAITING) == waiting + 1)
        second = Consumer(host)
        assert code(poll.result(DEADLINE_SECONDS)) == (409, "StaleGeneration")
        joined = threads.submit(second.join, timeout_seconds=120)
        until(lambda: host.host.tally.number(POLLS_WAITING) == waiting + 1)
        first.join()
        host.log.publish("orders", [Record(b"new", partition=3)])
        assert offsets(joined.result(DEADLINE_SECONDS)) == ["3:2"]


def test_an_ack_under_way_counts_and_the_next_owner_begins_behind_it(host: ServedLog) -> None:
    first = Consumer(host)
    second = Consumer(host)
    assert first.ack(3, 0).json["acknowledged_offset"] == 0  # of a partition that it is to lose
    assert first.join().status == 200
    assert code(first.ack(3, 1)) == (409, "PartitionRevoked")
    assert offsets(second.join()) == ["2:0", "2:1", "3:1"]
    assert first.ack(0, 1).status == 200


def test_an_ack_of_an_old_generation_is_refused(host: ServedLog) -> None:
    first = Consumer(host)
    old = first.ids
    Consumer(host)
    first.join()
    assert code(first.ack(0, 0, **old)) == (409, "StaleGeneration")
    assert code(first.ack(0, 0, generation=1)) == (409, "StaleGeneration")
    assert code(first.ack(0, 0, member_id="nobody")) == (409, "UnknownMember")
    position = host.log.group_position("g", "orders", 0)
    assert position is not None
    assert position.is_first


def test_who_lets_go_of_nothing_is_fenced_after_a_while(tmp_path: Path) -> None:
    with served(tmp_path / "quick", members=Rules(drain_seconds=0.05)) as host:
        host.log.create_topic("orders", TopicSettings(partitions=2))
        host.log.publish("orders", [Record(b"x", partition=each) for each in (0, 1)])
        first, second = Consumer(host), Consumer(host)
        until(lambda: second.join().json["assigned"] == [1])
        assert code(first.ack(1, 0)) == (409, "StaleGeneration")
        assert second.ack(1, 0).status == 200


def test_a_member_that_is_not_heard_of_is_gone(host: ServedLog) -> None:
    first = Consumer(host)
    first.join(session_timeout_seconds=1)
    second = Consumer(host)
    until(lambda: second.join().json["assigned"] == [0, 1, 2, 3])
    assert code(first.poll()) == (409, "UnknownMember")
    assert code(first.tell("heartbeat", generation=1)) == (409, "UnknownMember")
    first.join()
    assert first.told["member_id"]
    until(lambda: second.join().status == 200 and len(first.join().json["assigned"]) == 2)


def test_a_member_that_says_that_it_is_there_or_waits_stays(host: ServedLog) -> None:
    first = Consumer(host)
    first.join(session_timeout_seconds=1)
    second = Consumer(host, limit=1)
    first.join()
    second.join()
    with ThreadPoolExecutor() as threads:
        host.log.ack("g", "orders", 1, 0)
        host.log.ack("g", "orders", 1, 1)
        poll = threads.submit(first.poll, timeout_seconds=2.5)
        until(poll.done)
        assert poll.result().status == 200
    for _ in range(3):
        assert first.tell("heartbeat", generation=first.told["generation"]).status == 200
    assert second.poll(limit=1).status == 200


def test_a_member_that_leaves_makes_room(host: ServedLog) -> None:
    first, second = Consumer(host), Consumer(host)
    assert first.tell("leave").json == {"success": True}
    assert first.tell("leave").json == {"success": False}
    assert second.join().json["assigned"] == [0, 1, 2, 3]
    assert code(first.poll()) == (409, "UnknownMember")


def test_metrics_tell_of_members_and_of_how_long_a_change_takes(tmp_path: Path) -> None:
    clock = HurriedClock()
    with served(tmp_path / "told", clock=clock) as host:
        host.log.create_topic("orders", TopicSettings(partitions=PARTITIONS))
        where = 'consumergroup="g",topic="orders"'
        first = Consumer(host)
        took, count = (f"duolog_group_rebalance_seconds_{each}" for each in ("sum", "count"))
        before = host.metric(count)
        second = Consumer(host)
        clock.ahead_seconds += 3
        assert host.metric(count) == before  # the first one is to let go
        first.join()
        second.join()
        assert host.metric(count) == before + 1
        assert host.metric(took) >= 3
        clock.ahead_seconds += 5
        assert host.metric(f'duolog_consumergroup_members{{{where},kind="native"}}') == 2
        assert host.metric(f"duolog_consumergroup_seconds_since_rebalance{{{where}}}") >= 5
        shown = host.ask("/metrics").body.decode()
        assert f'duolog_consumergroup_members{{{where},kind="kafka"}}' not in shown
        for consumer in (first, second):
            consumer.tell("leave")
        shown = host.ask("/metrics").body.decode()
        assert f"duolog_consumergroup_members{{{where}" not in shown
        assert f"duolog_consumergroup_seconds_since_rebalance{{{where}" not in shown


def test_a_member_goes_on_where_it_is_in_what_it_kept(host: ServedLog) -> None:
    first = Consumer(host)
    Consumer(host)
    everywhere = {str(each): 1 for each in range(PARTITIONS)}
    assert offsets(first.join(next_offsets=everywhere)) == ["0:1", "1:1"]
    beyond = first.poll(next_offsets={"0": 3})
    assert code(beyond) == (416, "OffsetOutOfRange")
    host.consume(topic="orders", group_id="g", session_timeout_seconds=60)


def test_a_partition_that_was_lost_in_between_begins_where_the_group_is(host: ServedLog) -> None:
    first = Consumer(host)
    second = Consumer(host)
    knows = dict(first.told)
    first.join()
    second.join()
    assert second.ack(3, 0).status == 200
    first.told = knows  # an answer that it never got
    second.tell("leave")
    reply = first.join(next_offsets={"0": 2, "3": 2})
    assert offsets(reply) == ["1:0", "1:1", "2:0", "2:1", "3:1"]


def test_simple_callers_see_all_and_take_turns_as_ever(host: ServedLog) -> None:
    ids = set()
    for _ in range(3):
        reply = host.consume(topic="orders", group_id="g", start="Earliest")
        assert (len(reply.json["messages"]), reply.json["assigned"]) == (8, [0, 1, 2, 3])
        ids.add(reply.json["member_id"])
    assert len(ids) == 3
    # By partition too, and whatever the caller before has been given.
    assert host.consume(topic="orders", group_id="g", partition_id=0).status == 200
    ack = {"topic": "orders", "group_id": "g", "partition_id": 0, "upto_offset": 1}
    assert host.ask("/v1/api/topics/ack", ack).status == 200


def test_two_that_begin_together_share(host: ServedLog) -> None:
    one, other = Consumer.__new__(Consumer), Consumer.__new__(Consumer)
    for consumer in (one, other):
        consumer.host, consumer.told = host, {}
        consumer.join()  # as a simple caller: the second one takes the first one's place
    assert code(one.poll()) == (409, "UnknownMember")
    one.join()
    for _ in range(3):
        for consumer in (one, other):
            if consumer.poll().status == 409:
                consumer.join()
    assert sorted(one.assigned + other.assigned) == [0, 1, 2, 3]
    assert one.poll().status == other.poll().status == 200


def test_who_names_a_partition_is_told_who_has_it(host: ServedLog) -> None:
    Consumer(host)
    held = host.consume(topic="orders", group_id="g", partition_id=2)
    assert code(held) == (409, "PartitionHeld")
    assert held.json["holder"].startswith("anybody at 127.0.0.1:")
    sql = host.ask("/v1/api/sql", {"sql": "CONSUME FROM orders GROUP 'g' PARTITION 1"})
    assert code(sql) == (409, "PartitionHeld")
    assert host.consume(topic="orders", group_id="other", partition_id=2).status == 200


def test_partitions_that_the_topic_gets_are_shared_from_their_first_record(host: ServedLog) -> None:
    first = Consumer(host)
    second = Consumer(host)
    first.join()
    second.join()
    host.log.set_partitions("orders", 6)
    host.log.publish("orders", [Record(b"new", partition=each) for each in (4, 5)])
    first.poll()
    until(lambda: first.join().status == second.join(start="Latest").status == 200)
    assert sorted(first.assigned + second.assigned) == [0, 1, 2, 3, 4, 5]
    assert "5:0" in offsets(second.join())


@pytest.mark.parametrize(
    "wrong",
    [
        {"member_id": "m", "partition_id": 1},
        {"generation": 1},
        {"next_offsets": {"0": 1}},
        {"session_timeout_seconds": 0.1},
        {"session_timeout_seconds": 1000},
        {"session_timeout_seconds": 5, "group_id": None},
        {"member_id": "with space"},
        {"member_id": "m", "next_offsets": {"x": 1}},
    ],
)
def test_what_no_member_can_mean_is_refused(host: ServedLog, wrong: dict[str, Any]) -> None:
    assert host.consume(**{"topic": "orders", "group_id": "g", **wrong}).status == 422


def test_arrow_tells_a_member_too(host: ServedLog) -> None:
    import pyarrow as pa

    reply = host.ask(
        "/v1/api/topics/consume",
        {"topic": "orders", "group_id": "g", "session_timeout_seconds": 60, "timeout_seconds": 0},
        headers={"Accept": "application/vnd.apache.arrow.stream"},
    )
    told = pa.ipc.open_stream(reply.body).schema.metadata
    assert told[b"assigned"] == b"[0, 1, 2, 3]"
    assert told[b"member_id"]
    assert int(told[b"generation"]) > 0


def test_limits_of_members_are_answered_by_name_and_end_with_those_that_leave(
    tmp_path: Path,
) -> None:
    tokens = tmp_path / "tokens"
    billing = add_token(tokens, Caller("billing", Role.SERVICE))
    shipping = add_token(tokens, Caller("shipping", Role.SERVICE))
    rules = Rules(max_members=3, max_members_per_token=2)
    with served(tmp_path / "log", tokens=tokens, members=rules) as host:
        host.log.create_topic("orders")

        def join(group: str, token: str) -> Reply:
            body = {"topic": "orders", "group_id": group, "session_timeout_seconds": 60}
            return host.ask("/v1/api/topics/consume", {**body, "timeout_seconds": 0}, token=token)

        first = join("one", billing)
        assert (first.status, join("two", billing).status) == (200, 200)
        refused = join("three", billing)
        assert code(refused) == (429, "TokenLimitReached")
        assert refused.headers["retry-after"] == "1"
        assert "max_members_per_token" in refused.json["error"]
        assert join("three", shipping).status == 200
        refused = join("four", shipping)
        assert code(refused) == (503, "TooManyMembers")
        assert refused.headers["retry-after"] == "1"
        gone = {"topic": "orders", "group_id": "one", "member_id": first.json["member_id"]}
        assert host.ask("/v1/api/topics/leave", gone, token=billing).status == 200
        assert join("four", shipping).status == 200


def test_members_of_groups_are_summed_up_beyond_what_is_shown_alone(tmp_path: Path) -> None:
    shown = MetricRules(max_group_partitions=1, groups_always=(re.compile("named"),))
    with served(tmp_path / "log", metrics=shown) as host:
        host.log.create_topic("orders")
        for group, members in (("few", 1), ("many", 3), ("named", 1), ("other", 2)):
            body = {"topic": "orders", "group_id": group, "session_timeout_seconds": 60}
            for _ in range(members):
                assert host.consume(**body).status == 200
        text = host.ask("/metrics").body.decode()
    line = r'^duolog_consumergroup_members\{consumergroup="(\w*)".* (\d)'
    found = re.findall(line, text, re.MULTILINE)
    assert dict(found) == {"many": "3", "named": "1", "": "3"}
    assert text.count("duolog_consumergroup_seconds_since_rebalance{") == 2
