"""Publish, consume, acknowledge over HTTP, as applications see it."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest

from duolog.bridge.metrics.names import POLLS_WAITING
from duolog.log.model import Op, Record, Retention, Route, TopicSettings
from tests.integration.serve_host import Reply, ServedLog, served, until
from tests.support.clock import ManualClock

ARROW = {"Accept": "application/vnd.apache.arrow.stream"}


@pytest.fixture(scope="module")
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory, clock: ManualClock) -> Iterator[ServedLog]:
    """One host for all of these; each test makes topics of its own."""
    with served(tmp_path_factory.mktemp("served") / "log", clock=clock) as running:
        yield running


@pytest.fixture
def topic(host: ServedLog, request: pytest.FixtureRequest) -> str:
    """A topic with one partition and five records, 0 to 4."""
    name = request.node.name.replace("[", "-").replace("]", "")[:200]
    host.log.create_topic(name)
    assert host.publish(name, *map(str, range(5))).status == 200
    return str(name)


def values(reply: Reply) -> list[str]:
    assert reply.status == 200, reply.body
    return [base64.b64decode(each["payload"]).decode() for each in reply.json["messages"]]


def test_published_messages_come_back_with_all_they_had(
    host: ServedLog, clock: ManualClock
) -> None:
    host.log.create_topic("whole", TopicSettings(alias="complete", partitions=2))
    message = {
        "value": {"qty": 2},
        "key": "a",
        "headers": [{"name": "trace", "value": "1f"}, {"name": "raw", "value_base64": "/w=="}],
        "partition_id": 1,
        "op": "update",
        "source_table": "shop.orders",
        "payload_mode": "full",
        "ts": 1_600_000_000_000,
    }
    placed = host.ask("/v1/api/topics/publish", {"topic": "whole", "messages": [message]})
    topic = host.log.topic("whole")
    place = {"topic": "whole", "topic_id": topic.id, "partition_id": 1, "offset": 0}
    assert placed.json == {"offsets": [place]}
    expected = {
        "topic": "whole",
        "topic_id": topic.id,
        "partition_id": 1,
        "offset": 0,
        "message_id": f"{topic.id}:1:0",
        "key": "a",
        "payload": base64.b64encode(b'{"qty":2}').decode(),
        "op": "update",
        "ts": 1_600_000_000_000,
        "payload_mode": "full",
        "source_table": "shop.orders",
        "headers": [
            {"name": "trace", "value": "1f"},
            {"name": "raw", "value": None, "value_base64": "/w=="},
        ],
    }
    for named in (
        {"topic": "whole"},
        {"topic": "complete"},
        {"topic": topic.id},
        {"topic_id": "whole"},
        {"topic_id": str(topic.id)},
    ):
        assert host.consume(**named, start="Earliest").json["messages"] == [expected]


def test_a_message_without_a_time_gets_the_hosts(
    host: ServedLog, topic: str, clock: ManualClock
) -> None:
    assert host.consume(topic=topic, start="Earliest").json["messages"][0]["ts"] == clock.now_ms()


@pytest.mark.parametrize(
    ("start", "seen"),
    [
        ("Earliest", "01234"),
        ("Latest", ""),
        (None, "01234"),
        ({"Offset": 2}, "234"),
        ({"Offset": 5}, ""),
        ({"type": "Offset", "offset": 4}, "4"),
        ({"Timestamp": 0}, "01234"),
        ({"Timestamp": 4_000_000_000_000}, ""),
        ({"Offsets": {"0": 3}}, "34"),
        ({"Offsets": {}}, "01234"),
    ],
)
def test_where_a_consumer_begins(host: ServedLog, topic: str, start: Any, seen: str) -> None:
    wanted = {} if start is None else {"start": start}
    reply = host.consume(topic=topic, **wanted)
    assert "".join(values(reply)) == seen
    assert reply.json["next_offsets"] == {"0": 5}
    assert reply.json["next_offset"] == (5 if seen else None)
    assert reply.json["has_more"] is False


def test_a_start_in_time_finds_the_first_record_as_late_as_it(
    host: ServedLog, topic: str, clock: ManualClock
) -> None:
    clock.advance(seconds=10)
    later = clock.now_ms()
    host.publish(topic, "later")
    assert values(host.consume(topic=topic, start={"Timestamp": later})) == ["later"]


def test_an_offset_that_is_not_kept_says_which_are(host: ServedLog, topic: str) -> None:
    reply = host.consume(topic=topic, start={"Offset": 6})
    assert (reply.status, reply.code) == (416, "OffsetOutOfRange")
    assert {name: reply.json[name] for name in ("earliest", "latest", "offset")} == {
        "earliest": 0,
        "latest": 5,
        "offset": 6,
    }


def test_limits_cut_an_answer_and_say_that_there_is_more(host: ServedLog, topic: str) -> None:
    reply = host.consume(topic=topic, start="Earliest", limit=2)
    assert values(reply) == ["0", "1"]
    assert (reply.json["next_offset"], reply.json["has_more"]) == (2, True)
    host.publish(topic, "x" * 1000, "y" * 1000)
    large = host.consume(topic=topic, start={"Offset": 5}, max_bytes=1500)
    assert [each[0] for each in values(large)] == ["x"]
    assert large.json["has_more"] is True
    assert len(values(host.consume(topic=topic, start={"Offset": 5}, max_bytes=1))) == 1


def test_without_a_group_next_offsets_read_on(host: ServedLog) -> None:
    topic_id = host.log.create_topic("walk", TopicSettings(partitions=3)).id
    for partition in range(3):
        host.log.publish("walk", [Record(b"%d" % n, partition=partition) for n in range(7)])
    start: Any = "Earliest"
    seen: list[str] = []
    for _ in range(5):
        reply = host.consume(topic="walk", start=start, limit=6)
        messages = reply.json["messages"]
        seen += [each["message_id"] for each in messages]
        start = {"Offsets": reply.json["next_offsets"]}
        if not reply.json["has_more"]:
            break
    assert sorted(seen) == sorted(f"{topic_id}:{p}:{n}" for p in range(3) for n in range(7))
    assert len(seen) == 21


def test_all_partitions_get_a_fair_share_and_take_turns(host: ServedLog) -> None:
    host.log.create_topic("fair", TopicSettings(partitions=4))
    for partition, count in enumerate((100, 100, 2, 0)):
        if count:
            host.log.publish("fair", [Record(b"v", partition=partition)] * count)
    replies = [host.consume(topic="fair", start="Earliest", limit=20) for _ in range(4)]
    for reply in replies:
        counts = [0, 0, 0, 0]
        for each in reply.json["messages"]:
            counts[each["partition_id"]] += 1
        assert counts == [9, 9, 2, 0]
    first = {reply.json["messages"][0]["partition_id"] for reply in replies}
    assert first == {0, 1, 2}
    alone = host.consume(topic="fair", start="Earliest", partition_id=2)
    assert alone.json["next_offsets"] == {"2": 2}


def test_one_offset_needs_one_partition(host: ServedLog) -> None:
    host.log.create_topic("two", TopicSettings(partitions=2))
    reply = host.consume(topic="two", start={"Offset": 0})
    assert (reply.status, reply.code) == (422, "InvalidRequest")
    assert "partition_id" in reply.json["error"]
    assert host.consume(topic="two", start={"Offset": 0}, partition_id=1).status == 200


def test_a_group_goes_on_where_it_acknowledged_and_replays_what_it_did_not(
    host: ServedLog, topic: str
) -> None:
    def poll(group: str, **more: Any) -> list[str]:
        return values(host.consume(topic=topic, group_id=group, start="Earliest", **more))

    def ack(group: str, upto: int) -> Any:
        wanted = {"topic": topic, "group_id": group, "upto_offset": upto}
        return host.ask("/v1/api/topics/ack", wanted).json

    assert poll("a", limit=2) == ["0", "1"]
    assert poll("a", limit=2) == ["0", "1"]
    topic_id = host.log.topic(topic).id
    assert ack("a", 1) == {"success": True, "topic_id": topic_id, "acknowledged_offset": 1}
    assert poll("a") == ["2", "3", "4"]
    assert poll("b", limit=1) == ["0"]
    assert ack("a", 4)["acknowledged_offset"] == 4
    assert ack("a", 0)["acknowledged_offset"] == 4
    assert poll("a") == []
    host.publish(topic, "5")
    assert poll("a") == ["5"]


def test_a_group_whose_place_retention_took_goes_on_at_what_is_kept(
    host: ServedLog, clock: ManualClock
) -> None:
    host.log.create_topic("kept", TopicSettings(retention=Retention(seconds=60)))
    host.publish("kept", "old")
    host.ask("/v1/api/topics/ack", {"topic": "kept", "group_id": "g", "upto_offset": 0})
    host.log.seek("g", "kept", 0, 0)
    clock.advance(seconds=120)
    host.publish("kept", "new")
    host.log.enforce_retention("kept")
    assert values(host.consume(topic="kept", group_id="g")) == ["new"]
    refused = host.consume(topic="kept", start={"Offset": 0})
    assert (refused.status, refused.json["earliest"]) == (416, 1)


@pytest.mark.parametrize("as_member", [False, True])
def test_what_is_published_between_two_polls_of_a_new_group_is_delivered(
    host: ServedLog, topic: str, as_member: bool
) -> None:
    asked = {"topic": topic, "group_id": "g", "start": "Latest"}
    first = host.consume(**asked)
    assert values(first) == []
    host.publish(topic, "between")
    member = {name: first.json[name] for name in ("member_id", "generation")} if as_member else {}
    assert values(host.consume(**asked, **member)) == ["between"]


def test_what_is_published_between_two_statements_is_delivered(host: ServedLog, topic: str) -> None:
    sql = {"sql": f"CONSUME FROM \"{topic}\" GROUP 'g' FROM LATEST"}
    assert host.ask("/v1/api/sql", sql).json["rows"] == []
    host.publish(topic, "between")
    assert len(host.ask("/v1/api/sql", sql).json["rows"]) == 1


@pytest.mark.parametrize(
    ("start", "begins"),
    [
        ("Latest", 5),
        ("Earliest", 0),
        ({"Offset": 2}, 2),
        ({"Timestamp": 4_000_000_000_000}, 5),
        ({"Offsets": {"0": 3}}, 3),
    ],
)
def test_the_first_poll_of_a_group_says_where_it_begins(
    host: ServedLog, topic: str, start: Any, begins: int
) -> None:
    host.consume(topic=topic, group_id="g", start=start)
    position = host.log.group_position("g", topic, 0)
    assert position is not None
    assert (position.position, position.is_first, position.last_acked_offset) == (
        begins,
        True,
        None,
    )
    other = host.consume(topic=topic, group_id="g", start="Earliest", limit=1)
    assert other.json["next_offsets"] == {"0": min(begins + 1, 5)}
    assert host.log.group_position("g", topic, 0) == position


def test_a_group_begins_in_all_partitions_also_in_those_of_later_members(host: ServedLog) -> None:
    host.log.create_topic("shared", TopicSettings(partitions=4))
    asked = {"topic": "shared", "group_id": "g", "start": "Latest", "session_timeout_seconds": 10}
    one = host.consume(**asked).json
    host.log.publish("shared", [Record(b"v", partition=at) for at in range(4)])
    two = host.consume(**asked).json
    again = host.consume(**asked, member_id=one["member_id"]).json
    while len(two["assigned"]) < 2:
        two = host.consume(**asked, member_id=two["member_id"]).json
    found = [each["partition_id"] for each in again["messages"] + two["messages"]]
    assert sorted(found) == [0, 1, 2, 3]


def test_a_group_begins_only_in_the_partition_that_its_poll_names(host: ServedLog) -> None:
    host.log.create_topic("named", TopicSettings(partitions=2))
    host.consume(topic="named", group_id="g", start="Latest", partition_id=0)
    assert [each.partition for each in host.log.group_positions("g", "named")] == [0]


def test_a_partition_that_comes_later_is_read_from_its_first_record(host: ServedLog) -> None:
    host.log.create_topic("grown")
    asked = {"topic": "grown", "group_id": "g", "start": "Latest"}
    host.consume(**asked)
    host.log.set_partitions("grown", 3)
    host.log.publish("grown", [Record(b"v", partition=at) for at in range(3)])
    assert len(host.consume(**asked).json["messages"]) == 3


def test_who_reads_without_a_group_leaves_nothing_behind(host: ServedLog, topic: str) -> None:
    before = host.log.stats().positions_stored
    host.consume(topic=topic, start="Latest")
    host.ask("/v1/api/sql", {"sql": f'CONSUME FROM "{topic}"'})
    host.ask("/v1/api/sql", {"sql": f'SELECT * FROM "{topic}"'})
    assert host.log.group_positions(None, topic) == ()
    assert host.log.stats().positions_stored == before


def test_a_group_that_is_known_costs_no_sync_to_poll(host: ServedLog, topic: str) -> None:
    host.consume(topic=topic, group_id="g", start="Latest")
    before = host.log.stats().syncs
    for _ in range(3):
        host.consume(topic=topic, group_id="g", start="Latest")
    assert host.log.stats().syncs == before


def test_a_topic_that_was_made_again_is_another_one(host: ServedLog, topic: str) -> None:
    first = host.consume(topic=topic, group_id="g")
    known = {"topic": topic, "topic_id": first.json["topic_id"]}
    assert {each["topic_id"] for each in first.json["messages"]} == {known["topic_id"]}
    host.log.drop_topic(topic)
    assert host.consume(**known).code == "UnknownTopic"
    host.log.create_topic(topic)
    again = host.log.topic(topic).id
    host.publish(topic, *map(str, range(5)))
    before = host.log.stats().positions_stored
    for path, asked in (
        ("consume", {**known, "group_id": "g", "start": {"Offset": 3}}),
        ("consume", {**known, "topic_id": str(known["topic_id"]), "group_id": "g"}),
        ("ack", {**known, "group_id": "g", "upto_offset": 1}),
        ("publish", {**known, "messages": [{"value": 1}]}),
        ("latest-offsets", known),
    ):
        refused = host.ask(f"/v1/api/topics/{path}", asked)
        assert (refused.status, refused.code) == (409, "TopicRecreated"), path
        assert (refused.json["topic"], refused.json["topic_id"]) == (topic, again)
    assert host.log.stats().positions_stored == before
    assert len(values(host.consume(topic=topic, topic_id=again, group_id="g"))) == 5
    acked = host.ask(
        "/v1/api/topics/ack", {"topic": topic, "topic_id": again, "group_id": "g", "upto_offset": 1}
    )
    assert (acked.status, acked.json["topic_id"]) == (200, again)


def test_an_alias_that_leads_elsewhere_now_is_noticed(host: ServedLog) -> None:
    old = host.log.create_topic("old-home", TopicSettings(alias="home"))
    host.log.drop_topic("old-home")
    host.log.create_topic("new-home", TopicSettings(alias="home"))
    assert host.consume(topic="home", topic_id=old.id).code == "TopicRecreated"


def test_a_poll_that_waits_is_told_that_its_topic_was_made_again(host: ServedLog) -> None:
    topic_id = host.log.create_topic("waited").id
    asked = {"topic": "waited", "topic_id": topic_id, "timeout_seconds": 60}
    waiting = host.host.tally.number(POLLS_WAITING)
    with ThreadPoolExecutor() as threads:
        poll = threads.submit(host.consume, **asked)
        until(lambda: host.host.tally.number(POLLS_WAITING) == waiting + 1)
        host.log.drop_topic("waited")
        host.log.create_topic("waited")
        assert poll.result(60).code in {"UnknownTopic", "TopicRecreated"}
    assert host.consume(**asked).code == "TopicRecreated"


@pytest.mark.parametrize("beside", ["orders", "1.5", "", -1, 1.5, None])
def test_beside_a_name_topic_id_is_a_number(host: ServedLog, topic: str, beside: Any) -> None:
    reply = host.consume(topic=topic, topic_id=beside)
    assert reply.status == (200 if beside is None else 422)


def test_latest_offsets_say_how_far_each_partition_reaches(host: ServedLog, topic: str) -> None:
    host.log.create_topic("empty", TopicSettings(partitions=2))
    asked = host.ask("/v1/api/topics/latest-offsets", {"topic_id": topic})
    place = {"topic": topic, "topic_id": host.log.topic(topic).id, "partition_id": 0}
    assert asked.json["offsets"] == [
        {**place, "start_offset": 0, "next_offset": 5, "last_offset": 4}
    ]
    empty = host.ask("/v1/api/topics/latest-offsets", {"topic": "empty"}).json["offsets"]
    assert [each["last_offset"] for each in empty] == [None, None]


def test_arrow_holds_the_same_records_as_json(host: ServedLog, topic: str) -> None:
    reply = host.ask("/v1/api/topics/consume", {"topic": topic, "start": "Earliest"}, headers=ARROW)
    assert reply.headers["content-type"] == ARROW["Accept"]
    table = pa.ipc.open_stream(reply.body).read_all()
    as_json = host.consume(topic=topic, start="Earliest").json
    assert table.column("payload").to_pylist() == [
        base64.b64decode(each["payload"]) for each in as_json["messages"]
    ]
    assert table.column("offset").to_pylist() == list(range(5))
    assert json.loads(table.schema.metadata[b"next_offsets"]) == as_json["next_offsets"]
    nothing = host.ask(
        "/v1/api/topics/consume",
        {"topic": topic, "timeout_seconds": 0, "start": "Latest"},
        headers=ARROW,
    )
    assert pa.ipc.open_stream(nothing.body).read_all().num_rows == 0


def test_a_large_arrow_answer_arrives_whole(host: ServedLog) -> None:
    host.log.create_topic("large")
    host.log.publish("large", [Record(b"x" * 100_000)] * 60)
    reply = host.ask(
        "/v1/api/topics/consume", {"topic": "large", "start": "Earliest"}, headers=ARROW
    )
    table = pa.ipc.open_stream(reply.body).read_all()
    assert table.num_rows == 60
    assert table.nbytes > 6_000_000


def test_rows_go_by_their_routes(host: ServedLog) -> None:
    host.log.create_topic("routed")
    host.log.add_route("routed", Route("shop.items", frozenset({Op.INSERT})))
    rows = {
        "table": "shop.items",
        "op": "insert",
        "rows": [{"id": 1, "name": "tea"}, {"id": 2, "name": "jam"}],
        "key_columns": ["id"],
    }
    placed = host.ask("/v1/api/topics/publish", rows)
    assert [each["offset"] for each in placed.json["offsets"]] == [0, 1]
    message = host.consume(topic="routed", start="Earliest").json["messages"][0]
    assert json.loads(base64.b64decode(message["payload"]))["name"] == "tea"
    assert (message["source_table"], message["op"]) == ("shop.items", "insert")


def test_a_writer_may_send_again(host: ServedLog) -> None:
    host.log.create_topic("once")
    wanted = {"topic": "once", "writer": "w", "sequence": 0, "messages": [{"value": "a"}]}
    first = host.ask("/v1/api/topics/publish", wanted)
    assert host.ask("/v1/api/topics/publish", wanted).json == first.json
    assert host.log.offsets("once")[0].next_offset == 1
    other = {**wanted, "messages": [{"value": "b"}]}
    refused = host.ask("/v1/api/topics/publish", other)
    assert (refused.status, refused.code) == (409, "SequenceContentMismatch")


def test_nothing_of_a_request_is_written_when_one_message_is_wrong(host: ServedLog) -> None:
    host.log.create_topic("all-or-none")
    messages = [{"value": "good"}, {"value": "bad", "partition_id": 9}]
    reply = host.ask("/v1/api/topics/publish", {"topic": "all-or-none", "messages": messages})
    assert (reply.status, reply.code) == (404, "UnknownPartition")
    assert host.log.offsets("all-or-none")[0].next_offset == 0


def test_the_registry_of_the_log_is_served_beside_it(host: ServedLog) -> None:
    reply = host.ask("/registry/subjects/orders-value/versions", {"schema": '"string"'})
    assert (reply.status, reply.json["id"]) == (200, 1)
    assert host.ask("/registry/subjects").json == ["orders-value"]
    assert host.ask("/registry/subjects/none/versions").json["error_code"] == 40401
