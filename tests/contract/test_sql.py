"""Statements on every form of a log."""

from __future__ import annotations

from typing import Any

import pytest

from duolog.errors import (
    AckBeyondHead,
    InvalidRequest,
    NameTaken,
    TopicRecreated,
    UnknownRoute,
    UnknownTopic,
)
from duolog.log.access import LogAccess
from duolog.log.groups_seen import KafkaSeen
from duolog.log.mirror_model import MirrorChange, MirrorTarget, Run, Skip, SkipReason
from duolog.log.mirror_modes import MirrorMode, MirrorReport
from duolog.log.model import Op, Record, Retention
from duolog.sql import execute, parse, run


def rows(log: LogAccess, sql: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = run(log, sql).table().to_pylist()
    return found


def test_a_topics_life(log: LogAccess) -> None:
    made = rows(log, "CREATE TOPIC t ALIAS 'a' PARTITIONS 2 WITH (retention_seconds=60)")
    assert [(row["topic"], row["alias"], row["partitions"]) for row in made] == [("t", "a", 2)]
    assert rows(log, "CREATE TOPIC IF NOT EXISTS t") == made
    with pytest.raises(NameTaken):
        run(log, "CREATE TOPIC t")
    run(log, "ALTER TOPIC a SET RETENTION WITH (retention_max_bytes=1000)")
    assert log.topic("t").retention == Retention(60, 1000)
    run(log, "ALTER TOPIC t SET RETENTION WITH (retention_seconds=NULL)")
    assert log.topic("t").retention == Retention(None, 1000)
    run(log, "ALTER TOPIC t CLEAR RETENTION")
    assert log.topic("t").retention == Retention()
    assert rows(log, "ALTER TOPIC t SET PARTITIONS 3")[0]["partitions"] == 3
    log.publish("t", [Record(b"1", partition=0), Record(b"2", partition=1)])
    assert rows(log, "CLEAR TOPIC t")[0]["messages_deleted"] == 2
    assert rows(log, "DROP TOPIC t")[0]["topic"] == "t"
    assert rows(log, "DROP TOPIC IF EXISTS t") == []
    with pytest.raises(UnknownTopic):
        run(log, "DROP TOPIC t")


def test_sources_come_and_go(log: LogAccess) -> None:
    log.create_topic("t")
    run(log, "ALTER TOPIC t ADD SOURCE shop.o ON INSERT, DELETE WHERE qty > 1 PARTITION BY qty")
    (route,) = log.topic("t").routes
    assert (route.table, route.ops) == ("shop.o", frozenset({Op.INSERT, Op.DELETE}))
    assert route.filter is not None
    assert (route.filter.text, route.partition_by) == ("qty > 1", ("qty",))
    log.publish_rows("shop.o", Op.INSERT, [{"id": 1, "qty": 1}, {"id": 2, "qty": 2}], ["id"])
    assert rows(log, "SELECT id, qty, op FROM t") == [{"id": 2, "qty": 2, "op": "insert"}]
    assert rows(log, "SELECT source, ops, condition, payload FROM system.sources") == [
        {"source": "shop.o", "ops": ["insert", "delete"], "condition": "qty > 1", "payload": "full"}
    ]
    run(log, "ALTER TOPIC t DROP SOURCE shop.o ON DELETE")
    assert log.topic("t").routes[0].ops == {Op.INSERT}
    run(log, "ALTER TOPIC t DROP SOURCE shop.o")
    assert log.topic("t").routes == ()
    with pytest.raises(UnknownRoute):
        run(log, "ALTER TOPIC t DROP SOURCE shop.o")


def publish(log: LogAccess, by_partition: dict[int, int]) -> None:
    log.create_topic("t")
    log.set_partitions("t", len(by_partition) or 1)
    for partition, count in by_partition.items():
        log.publish(
            "t",
            [
                Record(b'{"n":%d}' % number, key=b"k", partition=partition, ts_ms=1000 * number)
                for number in range(count)
            ],
        )


def places(found: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return [(row["partition"], row["offset"]) for row in found]


def test_consuming_goes_on_where_the_group_is(log: LogAccess) -> None:
    publish(log, {0: 3, 1: 1})
    assert places(rows(log, "CONSUME FROM t LIMIT 2")) == [(0, 0), (1, 0)]  # each has its share
    first = rows(log, "CONSUME FROM t GROUP 'g' LIMIT 3 AUTO ACK")
    assert sorted(places(first)) == [(0, 0), (0, 1), (1, 0)]
    assert first[0]["value"] == '{"n":0}'
    assert places(rows(log, "CONSUME FROM t GROUP 'g'")) == [(0, 2)]
    assert places(rows(log, "CONSUME FROM t GROUP 'g' AUTO ACK")) == [(0, 2)]
    assert rows(log, "CONSUME FROM t GROUP 'g' AUTO ACK") == []
    assert len(rows(log, "CONSUME FROM t GROUP 'other'")) == 4
    assert places(rows(log, "CONSUME FROM t PARTITION 0 FROM 1")) == [(0, 1), (0, 2)]
    assert rows(log, "CONSUME FROM t FROM LATEST") == []
    assert places(rows(log, "CONSUME FROM t PARTITION 0 FROM TIMESTAMP 1500")) == [(0, 2)]


def test_acknowledging_and_resetting(log: LogAccess) -> None:
    publish(log, {0: 3, 1: 1})
    row = {"group_id": "g", "topic": "t", "partition": 0, "acknowledged_offset": 1, "position": 2}
    topic_id = log.topic("t").id
    assert rows(log, "ACK t GROUP 'g' PARTITION 0 UPTO OFFSET 1") == [{**row, "topic_id": topic_id}]
    assert rows(log, "ACK t GROUP 'g' PARTITION 0 UPTO OFFSET 0")[0]["position"] == 2
    with pytest.raises(AckBeyondHead):
        run(log, "ACK t GROUP 'g' PARTITION 0 UPTO OFFSET 3")
    (waited,) = rows(log, "ACK t GROUP 'g' PARTITION 0 UPTO OFFSET 1 WAIT SETTLED")
    assert (waited["position"], waited["settled"], waited["pending"]) == (2, True, None)
    moved = rows(log, "RESET CONSUMER GROUP 'g' ON t TO LATEST")
    assert [(row["partition"], row["was"], row["position"]) for row in moved] == [
        (0, 2, 3),
        (1, None, 1),
    ]
    run(log, "RESET CONSUMER GROUP 'g' ON t PARTITION 0 TO 1")
    found = rows(log, 'SELECT "partition", position, lag FROM system.topic_offsets ORDER BY 1')
    assert found == [
        {"partition": 0, "position": 1, "lag": 2},
        {"partition": 1, "position": 1, "lag": 0},
    ]


def test_how_far_the_mirror_is(log: LogAccess) -> None:
    publish(log, {0: 9, 1: 4})
    target = MirrorTarget("cluster", "in-kafka", "id", 1, 0, 0, 100)
    version = log.begin_mirror("t", 0, target).version
    skip = Skip(5, 2, SkipReason.TOO_LARGE)
    log.change_mirror("t", 0, MirrorChange(version, 0, 0, (Run(0, 100, 5),), (skip,)))
    assert rows(log, "SELECT * FROM system.mirror") == [
        {
            "topic": "t",
            "partition": 0,
            "kafka_topic": "in-kafka",
            "cluster_id": "cluster",
            "phase": "unknown",
            "trouble": None,
            "mirrored_offset": 7,
            "next_offset": 9,
            "behind": 2,
            "skipped": 2,
            "kafka_offset": 105,
            "runs": 1,
        }
    ]
    log.tell_mirror((MirrorReport("t", 0, "halted", "X", "why"),), anew=True)
    asked = 'SELECT "partition", phase, trouble FROM system.mirror'
    assert rows(log, asked) == [{"partition": 0, "phase": "halted", "trouble": "why"}]
    log.set_mirror_mode("t", MirrorMode.DETACHED)
    assert [each["phase"] for each in rows(log, asked)] == ["detached", "detached"]


@pytest.mark.parametrize(
    ("seen", "held", "pending"),
    [
        (None, None, None),
        (KafkaSeen(), None, True),
        (KafkaSeen(foreign=103), 103, True),
        (KafkaSeen(foreign=103, one_way=True), 103, False),
        (KafkaSeen(foreign=103, ours=105), 105, False),  # nothing of ours lies from there to 110
        (KafkaSeen(foreign=110), 110, False),
        (KafkaSeen(foreign=111), 111, True),
    ],
)
def test_where_a_group_is_in_kafka(
    log: LogAccess, seen: KafkaSeen | None, held: int | None, pending: bool | None
) -> None:
    publish(log, {0: 9, 1: 1})
    target = MirrorTarget("cluster", "in-kafka", "id", 1, 0, 0, 100)
    version = log.begin_mirror("t", 0, target).version
    runs = (Run(0, 100, 5), Run(5, 110, 4))
    log.change_mirror("t", 0, MirrorChange(version, 0, 0, runs))
    moved = log.ack("g", "t", 4, 0)
    if seen is not None:
        log.remember_kafka("g", "t", 0, seen, expected_version=moved.version)
    found = rows(
        log,
        "SELECT kafka_position, kafka_expected, pending FROM system.topic_offsets ORDER BY 2",
    )
    nowhere = {"kafka_position": None, "kafka_expected": None, "pending": None}
    assert found == [
        {"kafka_position": held, "kafka_expected": 110, "pending": pending},
        nowhere,
    ]


def test_a_topic_is_a_table(log: LogAccess) -> None:
    publish(log, {0: 300, 1: 300})
    assert rows(log, "SELECT count(*) AS n, sum(n) AS s FROM t WHERE offset >= 298") == [
        {"n": 4, "s": 2 * (298 + 299)}
    ]
    assert places(
        rows(log, "SELECT * FROM t WHERE partition = 1 AND ts > '1970-01-01 00:04:58.5'")
    ) == [(1, 299)]


def test_statements_one_after_the_other(log: LogAccess) -> None:
    text = "CREATE TOPIC t; ALTER TOPIC t SET PARTITIONS 2; SELECT topic FROM system.topics"
    results = [execute(log, each, text) for each in parse(text)]
    assert results[-1].table().to_pylist() == [{"topic": "t"}]


def test_what_is_published_between_two_reads_of_a_new_group_is_delivered(log: LogAccess) -> None:
    publish(log, {0: 3, 1: 1})
    assert rows(log, "CONSUME FROM t GROUP 'g' FROM LATEST") == []
    log.publish("t", [Record(b"9", partition=0), Record(b"8", partition=1)])
    found = rows(log, "CONSUME FROM t GROUP 'g' FROM LATEST")
    assert [(row["partition"], row["offset"]) for row in found] == [(0, 3), (1, 1)]


def test_reading_without_a_group_leaves_nothing_behind(log: LogAccess) -> None:
    publish(log, {0: 3, 1: 1})
    rows(log, "CONSUME FROM t FROM LATEST")
    rows(log, "CONSUME FROM t")
    assert log.group_positions() == ()


def test_a_topic_that_was_made_again_is_another_one_for_who_names_its_id(log: LogAccess) -> None:
    publish(log, {0: 3, 1: 1})
    (row, *_) = rows(log, "CONSUME FROM t GROUP 'g'")
    old = row["topic_id"]
    run(log, "DROP TOPIC t")
    publish(log, {0: 5, 1: 1})
    with pytest.raises(TopicRecreated) as told:
        run(log, f"CONSUME FROM t TOPIC_ID {old} GROUP 'g'")
    with pytest.raises(TopicRecreated):
        run(log, f"ACK t TOPIC_ID {old} GROUP 'g' PARTITION 0 UPTO OFFSET 1")
    with pytest.raises(TopicRecreated):
        log.topic("t", topic_id=old)
    now = log.topic("t").id
    assert (told.value.topic, told.value.topic_id) == ("t", now)
    assert log.topic("t", topic_id=now).id == now
    assert log.group_positions() == ()
    acked = rows(log, f"ACK t TOPIC_ID {now} GROUP 'g' PARTITION 0 UPTO OFFSET 1")
    assert acked[0]["topic_id"] == now


@pytest.mark.parametrize("strange", ["1", True, -1, 1.5])
def test_an_id_is_a_whole_number(log: LogAccess, strange: Any) -> None:
    log.create_topic("t")
    with pytest.raises(InvalidRequest, match="A topic's id is a whole number"):
        log.topic("t", topic_id=strange)


def test_the_columns_of_the_written_specs_are_there(log: LogAccess) -> None:
    publish(log, {0: 3, 1: 1})
    run(log, "ALTER TOPIC t ADD SOURCE shop.o ON INSERT, DELETE WHERE qty > 1 PARTITION BY qty")
    topic_id = log.topic("t").id
    assert rows(log, "SELECT topic_id, name, routes FROM system.topics") == [
        {
            "topic_id": topic_id,
            "name": "t",
            "routes": ["shop.o ON INSERT, DELETE WHERE qty > 1 PARTITION BY qty"],
        }
    ]
    log.begin_group("g", "t", {0: 2})
    log.ack("g", "t", 0, 1)
    found = rows(
        log,
        "SELECT topic_id, partition_id, last_acked_offset, position, "
        "updated_at = changed_at AS same FROM system.topic_offsets ORDER BY 2",
    )
    assert found == [
        {
            "topic_id": topic_id,
            "partition_id": partition,
            "last_acked_offset": acked,
            "position": position,
            "same": True,
        }
        for partition, acked, position in ((0, None, 2), (1, 0, 1))
    ]
    assert rows(log, "SELECT DISTINCT topic_id FROM t") == [{"topic_id": topic_id}]


def test_a_values_own_topic_id_keeps_its_name(log: LogAccess) -> None:
    log.create_topic("forum")
    log.publish("forum", Record(b'{"topic_id": 77}'))
    assert rows(log, "SELECT topic_id FROM forum") == [{"topic_id": 77}]
