"""A damaged batch at a host: over HTTP, SQL and the Python client, and where it is shown."""

from __future__ import annotations

import base64
import io
import itertools
import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from duolog.client import Consumer
from duolog.errors import DamagedBatch
from duolog.log.model import Record, TopicPartition, TopicSettings
from tests.integration.serve_host import Reply, ServedLog, served, until
from tests.support.poison import Poison, poison
from tests.support.records import BATCH, part_of

ARROW = {"Accept": "application/vnd.apache.arrow.stream"}
NAMES = itertools.count()
EPOCHS = itertools.count()


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLog]:
    with served(tmp_path_factory.mktemp("served") / "log") as running:
        yield running


@pytest.fixture
def topic(host: ServedLog) -> Iterator[str]:
    """Two partitions with 30 records each, in batches of 10."""
    name = f"orders-{next(NAMES)}"
    write(host, host.log.create_topic(name, TopicSettings(partitions=2)).name, range(3))
    yield name
    host.log.drop_topic(name)


def write(host: ServedLog, topic: str, tens: range) -> None:
    """Ten records a partition and batch; nothing of it is in memory."""
    known = host.log.topic(topic)
    for ten in tens:
        values = [b"%d" % number for number in range(10 * ten, 10 * ten + 10)]
        host.log.append(BATCH, next(EPOCHS), [part_of(known, {0: values, 1: values})])
        for partition in (0, 1):
            tp = TopicPartition(known.id, partition)
            host.log._state.cache.forget(tp, 10 * ten, 10 * ten + 10)


def consume(host: ServedLog, topic: str, **asked: Any) -> Reply:
    body = {"topic": topic, "start": "Earliest", "timeout_seconds": 0, **asked}
    return host.ask("/v1/api/topics/consume", body)


def values(reply: Reply) -> list[int]:
    assert reply.status == 200, reply.body
    return [int(base64.b64decode(each["payload"])) for each in reply.json["messages"]]


@pytest.mark.parametrize("kind", list(Poison))
@pytest.mark.parametrize("limit", [5, 5_000])
def test_a_poll_is_refused_with_the_offsets_or_goes_on_behind_them(
    host: ServedLog, topic: str, kind: Poison, limit: int
) -> None:
    poison(host.log, topic, 0, 0, kind)
    place = {"partition_id": 0, "limit": limit}
    for headers in ({}, ARROW):
        body = {"topic": topic, "start": "Earliest", **place}
        refused = host.ask("/v1/api/topics/consume", body, headers=headers)
        assert (refused.status, refused.code) == (500, "DamagedBatch")
        told = {name: refused.json[name] for name in ("topic", "partition_id")}
        assert told == {"topic": topic, "partition_id": 0}
        assert (refused.json["first_offset"], refused.json["next_offset"]) == (0, 10)
        assert refused.json["reason"]
    skipped = consume(host, topic, on_damage="skip", **place)
    assert values(skipped) == list(range(10, 30))[:limit]
    (left_out,) = skipped.json["left_out"]
    assert left_out.pop("reason")
    assert left_out == {
        "partition_id": 0, "first_offset": 0, "next_offset": 10, "damaged": True,
    }  # fmt: skip
    arrow = host.ask("/v1/api/topics/consume", {**body, "on_damage": "skip"}, headers=ARROW)
    with pa.ipc.open_stream(io.BytesIO(arrow.body)) as stream:
        table = stream.read_all()
        assert json.loads(stream.schema.metadata[b"left_out"])[0]["next_offset"] == 10
    assert [int(each) for each in table["payload"].to_pylist()] == list(range(10, 30))[:limit]
    assert table["offset"].to_pylist() == list(range(10, 30))[:limit]


@pytest.mark.parametrize("limit", [5_000, 7])
@pytest.mark.parametrize("headers", [{}, ARROW])
def test_a_poll_gives_what_is_before_the_damage(
    host: ServedLog, topic: str, headers: dict[str, str], limit: int
) -> None:
    poison(host.log, topic, 0, 10, Poison.WRONG_SUM)
    body = {"topic": topic, "start": "Earliest", "partition_id": 0, "limit": limit}
    reply = host.ask("/v1/api/topics/consume", body, headers=headers)
    assert reply.status == 200, reply.body


def test_other_partitions_are_read_and_the_damage_is_told_of(host: ServedLog, topic: str) -> None:
    poison(host.log, topic, 0, 0, Poison.WRONG_SUM)
    reply = consume(host, topic, limit=100)
    assert values(reply) == list(range(30))
    (damaged,) = reply.json["damaged"]
    assert (damaged["partition_id"], damaged["next_offset"]) == (0, 10)
    assert reply.json["next_offsets"] == {"0": 0, "1": 30}
    assert consume(host, topic, partition_id=0).status == 500


def test_a_poll_waits_at_a_hole_as_at_the_end(host: ServedLog, topic: str) -> None:
    poison(host.log, topic, 0, 20, Poison.MISSING)
    host.log.skip_to(topic, 0, 30)
    at_hole = consume(host, topic, partition_id=0, start={"Offset": 20}, timeout_seconds=0.05)
    assert (at_hole.status, at_hole.json["messages"], at_hole.json["has_more"]) == (200, [], False)
    assert at_hole.json["next_offsets"] == {"0": 30}
    (left_out,) = at_hole.json["left_out"]
    assert left_out["damaged"] is False
    host.log.publish(topic, Record(b"30", partition=0))
    assert values(consume(host, topic, partition_id=0, start={"Offset": 20})) == [30]


def consumer(host: ServedLog, topic: str, **options: Any) -> Consumer:
    given = {"group": "g", "start": "earliest", "idle_timeout_seconds": 0}
    return Consumer(topic, url=host.url, **{**given, **options})


def test_the_python_client_raises_it_or_goes_on_and_acknowledges(
    host: ServedLog, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    poison(host.log, topic, 0, 10, Poison.WRONG_INSIDES)
    found: list[tuple[int, Any]] = []

    def read(**options: Any) -> None:
        with consumer(host, topic, **options) as reading:
            found.extend((record.partition, record.value) for record in reading)

    with pytest.raises(DamagedBatch) as raised:
        read()
    assert (raised.value.partition, raised.value.first_offset) == (0, 10)
    assert raised.value.next_offset == 20
    read(skip_damaged=True)
    assert sorted(set(found)) == sorted(
        [(0, n) for n in [*range(10), *range(20, 30)]] + [(1, n) for n in range(30)]
    )
    positions = {each.partition: each.position for each in host.log.group_positions("g", topic)}
    assert positions == {0: 30, 1: 30}
    assert f"Offsets 10-19 of topic '{topic}' partition 0 are left out" in caplog.text


@pytest.mark.parametrize("hole", [0, 10, 20])
@pytest.mark.parametrize("max_records", [4, 500])
def test_a_client_passes_over_a_hole_and_its_group_too(
    host: ServedLog, topic: str, hole: int, max_records: int
) -> None:
    poison(host.log, topic, 0, hole, Poison.WRONG_SUM)
    host.log.skip_to(topic, 0, hole + 10)
    with consumer(host, topic, max_records=max_records) as reading:
        found = [record.offset for record in reading if record.partition == 0]
        assert found == [at for at in range(30) if not hole <= at < hole + 10]
        write(host, topic, range(3, 4))
        until(lambda: any(r.offset == 39 and r.partition == 0 for r in reading.poll(1)))
        reading.ack()
    positions = {each.partition: each.position for each in host.log.group_positions("g", topic)}
    assert positions[0] == 40


def sql(host: ServedLog, text: str) -> Reply:
    return host.ask("/v1/api/sql", {"sql": text})


def rows(reply: Reply) -> list[dict[str, Any]]:
    assert reply.status == 200, reply.body
    return [dict(zip(reply.json["columns"], row, strict=True)) for row in reply.json["rows"]]


def test_sql_names_it_shows_it_and_skips_it(host: ServedLog, topic: str) -> None:
    poison(host.log, topic, 0, 10, Poison.WRONG_INSIDES)
    refused = sql(host, f'SELECT count(*) AS n FROM "{topic}"')
    assert (refused.status, refused.code) == (500, "DamagedBatch"), refused.body
    shown = sql(host, f"SELECT state FROM system.partitions WHERE topic = '{topic}' ORDER BY 1")
    assert [each["state"] for each in rows(shown)] == ["damaged batch at offsets 10-19", "ok"]
    consumed = sql(host, f'CONSUME FROM "{topic}" PARTITION 0 FROM 10 SKIP DAMAGED')
    assert [each["offset"] for each in rows(consumed)] == list(range(20, 30))
    assert sql(host, f'CONSUME FROM "{topic}" PARTITION 0 FROM 10').code == "DamagedBatch"
    (hole,) = rows(sql(host, f'ALTER TOPIC "{topic}" SKIP DAMAGED PARTITION 0 TO OFFSET 20'))
    assert (hole["first_offset"], hole["next_offset"]) == (10, 20)
    assert hole["skipped_by"] == "anybody"
    shown = sql(
        host, f"SELECT state, skipped FROM system.partitions WHERE topic = '{topic}' ORDER BY 2"
    )
    assert rows(shown) == [{"state": "ok", "skipped": 0}, {"state": "ok", "skipped": 10}]
    assert rows(sql(host, f'SELECT count(*) AS n FROM "{topic}"')) == [{"n": 50}]
    ranged = f'SELECT "offset" AS o FROM "{topic}" WHERE partition = 0 AND "offset" <= 21'
    assert [each["o"] for each in rows(sql(host, ranged))] == [*range(10), 20, 21]


def test_readyz_and_metrics_tell_of_it(host: ServedLog, topic: str) -> None:
    assert "damaged" not in host.ask("/readyz").json
    poison(host.log, topic, 1, 10, Poison.WRONG_SUM)
    assert consume(host, topic, partition_id=1, start={"Offset": 10}).status == 500
    ready = host.ask("/readyz")
    assert ready.status == 200  # all other records are served
    assert ready.json["damaged"].startswith("1 damaged batch in 1 partition")
    assert (ready.json["status"], len(ready.json["degraded"])) == ("degraded", 1)
    named = f'duolog_topic_partition_damaged_offsets{{topic="{topic}",partition="1"}} 10'
    assert named in host.ask("/metrics").body.decode()
    host.log.skip_to(topic, 1, 20)
    assert host.ask("/readyz").json == {"status": "ready", "writes": "ok"}
    assert "duolog_topic_partition_damaged_offsets{" not in host.ask("/metrics").body.decode()
