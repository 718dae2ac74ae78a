"""Rows that cannot be written, on a real log: good ones are written, bad ones told of."""

from __future__ import annotations

import json
import logging
import pickle
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import duolog
from duolog.connector.dead_letter_topic import default_name
from duolog.connector.options import SinkOptions
from duolog.connector.sink import Planned, commit, plan_batch, plan_stream
from duolog.connector.stage import Staged
from duolog.connector.topic_rows import TopicRows
from duolog.errors import (
    EpochTooOld,
    InvalidRows,
    InvalidSetting,
    InvalidTimestamp,
    RecordTooLarge,
    VersionCut,
)
from duolog.log.fetched import ReadRecord
from duolog.log.model import MAX_RECORD_BYTES, Envelope, Op, Route, TopicSettings
from duolog.log.names import check_topic_name
from duolog.log.routing.filter.parse import parse_filter
from duolog.log.routing.route import route_prepared

ALL = frozenset({Op.INSERT, Op.UPDATE, Op.DELETE})
ITEMS = pa.schema([("id", pa.int64()), ("price", pa.int64()), ("pieces", pa.int64())])
DELTA = pa.schema(
    [
        *ITEMS,
        ("_change_type", pa.string()),
        ("_commit_version", pa.int64()),
        ("_commit_timestamp", pa.timestamp("us", "UTC")),
    ]
)


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Topics, and a table with a route whose filter cannot be calculated for every row."""
    folder = tmp_path / "shop.log"
    with duolog.open_log(folder) as log:
        log.create_topic("orders", TopicSettings(partitions=2))
        log.create_topic("bills")
        log.create_topic("items", TopicSettings(envelope=Envelope.DEBEZIUM))
        log.add_route("items", Route("shop.items", ALL))
        log.add_route(
            "bills", Route("shop.items", ALL, filter=parse_filter("price * 5000000000 > 0"))
        )
    return str(folder)


def planned_for(path: str, schema: pa.Schema, **options: object) -> Planned:
    given = {"path": path, "queryName": "q", "badRecords": "dlq", **options}
    return plan_stream(SinkOptions.of(given), schema)


def written(planned: Planned, *tasks: Sequence[pa.RecordBatch], epoch: int = 0) -> list[Staged]:
    stage = pickle.loads(pickle.dumps(planned.stage))
    staged = [stage.stage(batches, epoch=epoch, turn=turn) for turn, batches in enumerate(tasks)]
    commit(planned, epoch, staged)
    return staged


def records_in(path: str, topic: str) -> list[ReadRecord]:
    with duolog.open_log(path) as log:
        return [
            record
            for offsets in log.offsets(topic)
            for record in log.fetch(topic, offsets.partition, 0)
        ]


def told(record: ReadRecord) -> dict[str, str]:
    """The headers of a bad row, without their common beginning."""
    headers = {name: (value or b"").decode() for name, value in record.headers}
    return {name.removeprefix("__connect.errors."): value for name, value in headers.items()}


def test_rows_for_topics_that_cannot_be_written_are_told_of(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    batch = pa.RecordBatch.from_pydict(
        {
            "topic": ["orders", None, "order", "bills", "order", "bills"],
            "partition": pa.array([1, 0, 0, 0, 0, 3], pa.int32()),
            "key": ["a", "b", "c", "d", "e", "f"],
            "value": ["1", "2", "3", "4", "5", "6"],
        }
    )
    with caplog.at_level(logging.INFO, "duolog.connector"):
        (staged,) = written(planned_for(path, batch.schema), [batch])
    assert [record.value for record in records_in(path, "orders")] == [b"1"]
    assert [record.value for record in records_in(path, "bills")] == [b"4"]
    bad = {record.key: record for record in records_in(path, "rows-dlq")}
    assert json.loads(bad[b"c"].value or b"") == {
        "topic": "order",
        "partition": 0,
        "key": "c",
        "value": "3",
    }
    reasons = {key: told(record) for key, record in bad.items()}
    assert reasons[b"c"].pop("exception.message").startswith("Column 'topic' names 'order'")
    assert reasons[b"c"] == {
        "topic": "order",
        "connector.name": "q",
        "stage": "row",
        "exception.class.name": "UnknownTopic",
    }
    assert reasons[b"e"]["exception.class.name"] == "UnknownTopic"
    assert "is null" in reasons[b"b"]["exception.message"]
    assert "'bills' has partitions 0 to 0" in reasons[b"f"]["exception.message"]
    assert set(bad) == {b"b", b"c", b"e", b"f"}
    assert staged.bad == 4
    assert "rows=6 records=6 unrouted=0 bad=4" in caplog.text
    assert "4 rows could not be written and are in topic=rows-dlq" in caplog.text


def test_a_value_too_large_is_told_of_cut(path: str) -> None:
    batch = pa.RecordBatch.from_pydict(
        {"key": ["a", "b", "k" * MAX_RECORD_BYTES], "value": ["1", "x" * MAX_RECORD_BYTES, "3"]}
    )
    written(planned_for(path, batch.schema, topic="orders"), [batch])
    assert [record.value for record in records_in(path, "orders")] == [b"1"]
    long_value, long_key = records_in(path, "orders-dlq")
    assert long_value.key == b"b"
    assert long_key.key is None
    for record in (long_value, long_key):
        assert told(record)["exception.class.name"] == "RecordTooLarge"
        assert told(record)["topic"] == "orders"
        assert int(told(record)["value.bytes"]) > MAX_RECORD_BYTES
        assert len(record.value or b"") < MAX_RECORD_BYTES
    assert json.loads(long_value.value or b"")["value"].startswith("xxx")


def test_the_limit_is_that_of_the_opened_log(path: str) -> None:
    batch = pa.RecordBatch.from_pydict({"key": ["a", "b"], "value": ["1", "x" * 1000]})
    planned = planned_for(path, batch.schema, topic="orders", badRecords="fail")
    with duolog.open_log(path) as log:
        assert planned.stage.max_record_bytes == log.max_record_bytes
    smaller = replace(planned.stage, max_record_bytes=1000)
    assert isinstance(smaller.stage([batch], epoch=0, turn=0).refusal, RecordTooLarge)
    assert planned.stage.stage([batch], epoch=0, turn=0).refusal is None


def rows_at(*times_ms: int | None) -> pa.RecordBatch:
    """Rows with a time of their own."""
    return pa.RecordBatch.from_pydict(
        {
            "value": [str(number) for number in range(len(times_ms))],
            "timestamp": pa.array(times_ms, pa.timestamp("ms", "UTC")),
        }
    )


def test_rows_of_a_time_far_ahead_are_told_of(path: str) -> None:
    now_ms = int(time.time() * 1000)
    hour_ms = 3_600_000
    batch = rows_at(now_ms, now_ms + hour_ms // 2, None, now_ms + 2 * hour_ms, now_ms * 1000)
    (staged,) = written(planned_for(path, batch.schema, topic="bills"), [batch])
    assert [record.value for record in records_in(path, "bills")] == [b"0", b"1", b"2"]
    bad = records_in(path, "bills-dlq")
    assert [json.loads(record.value or b"")["value"] for record in bad] == ["3", "4"]
    assert {told(record)["exception.class.name"] for record in bad} == {"InvalidTimestamp"}
    assert staged.bad == 2


def test_a_source_of_times_far_ahead_costs_no_try_for_each_row(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[int] = []
    original = TopicRows.records

    def counted(self: TopicRows, rows: pa.RecordBatch, **more: Any) -> Any:
        tries.append(len(rows))
        return original(self, rows, **more)

    monkeypatch.setattr(TopicRows, "records", counted)
    batch = rows_at(*[int(time.time() * 1_000_000)] * 1000, 0)
    planned = planned_for(path, batch.schema, topic="bills")
    assert planned.stage.stage([batch], epoch=0, turn=0).bad == 1000
    assert len(tries) == 3


def test_a_change_of_a_time_far_ahead_is_told_of(path: str) -> None:
    ahead = delta_batch((2, 2, "insert", 1)).to_pylist()
    ahead[0]["_commit_timestamp"] = int(time.time() * 1_000_000) + 7_200_000_000
    tasks = [[delta_batch((1, 1, "insert", 1)), pa.RecordBatch.from_pylist(ahead, schema=DELTA)]]
    written(planned_for(path, DELTA, table="shop.items", keyColumns="id"), *tasks)
    assert len(records_in(path, "items")) == 1
    (bad,) = records_in(path, "shop.items-dlq")
    assert told(bad)["exception.class.name"] == "InvalidTimestamp"
    assert json.loads(bad.value or b"")["after"]["id"] == 2


def test_a_repeat_judges_times_as_the_first_try_did(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was far ahead then is not so now, and yet the same rows have to go the same way."""
    now_ms = int(time.time() * 1000)
    batch = rows_at(now_ms, now_ms + 7_200_000)
    given = {"path": path, "topic": "bills", "badRecords": "dlq", "txnAppId": "job"}
    given |= {"txnVersion": "1"}
    planned, epoch = plan_batch(SinkOptions.of(given), batch.schema)
    first = commit(planned, epoch, [planned.stage.stage([batch], epoch=epoch, turn=0)])
    monkeypatch.setattr("duolog.connector.sink._now_ms", lambda: now_ms + 10_000_000)
    planned, epoch = plan_batch(SinkOptions.of(given), batch.schema)
    again = commit(planned, epoch, [planned.stage.stage([batch], epoch=epoch, turn=0)])
    assert again.repeated
    assert again.ranges == first.ranges
    assert len(records_in(path, "bills-dlq")) == 1


def test_without_a_place_for_bad_rows_a_time_far_ahead_stops_the_write(path: str) -> None:
    batch = rows_at(0, int(time.time() * 1_000_000))
    planned = planned_for(path, batch.schema, topic="bills", badRecords="fail")
    with pytest.raises(InvalidTimestamp, match="microseconds"):
        written(planned, [batch])
    assert records_in(path, "bills") == []


def test_changes_that_no_filter_can_calculate_are_told_of_whole(path: str) -> None:
    """They go to no topic, although the other route would take them."""
    rows = [(1, 2, 0), (2, 2**62, 0), (3, 4, 0), (None, 5, 0)]
    columns = zip(*rows, strict=True)
    batch = pa.RecordBatch.from_arrays([pa.array(c, pa.int64()) for c in columns], schema=ITEMS)
    planned = planned_for(path, ITEMS, table="shop.items", keyColumns="id")
    (staged,) = written(planned, [batch])
    for topic in ("items", "bills"):
        keys = [json.loads(record.key or b"")["id"] for record in records_in(path, topic)]
        assert keys == [1, 3]
    keyless, too_much = sorted(
        records_in(path, "shop.items-dlq"), key=lambda record: told(record)["stage"], reverse=True
    )
    assert json.loads(keyless.value or b"") == {"id": None, "price": 5, "pieces": 0}
    assert (told(keyless)["table"], told(keyless)["stage"]) == ("shop.items", "row")
    assert "Key column 'id'" in told(keyless)["exception.message"]
    assert json.loads(too_much.value or b"") == {
        "op": "insert",
        "before": None,
        "after": {"id": 2, "price": 2**62, "pieces": 0},
    }
    assert told(too_much)["stage"] == "change"
    assert "`price * 5000000000" in told(too_much)["exception.message"]
    assert {record.table for record in (keyless, too_much)} == {"shop.items"}
    assert staged.bad == 2


def delta_batch(*rows: tuple[int | None, int, str, int]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(
        [
            {
                "id": id_,
                "price": price,
                "pieces": 0,
                "_change_type": word,
                "_commit_version": version,
                "_commit_timestamp": 0,
            }
            for id_, price, word, version in rows
        ],
        schema=DELTA,
    )


def test_images_that_the_driver_brings_together_may_be_bad_too(path: str) -> None:
    tasks = [
        [delta_batch((1, 1, "update_preimage", 1), (2, 5, "insert", 1), (7, 7, "what", 1))],
        [delta_batch((1, 2**62, "update_postimage", 1))],
    ]
    planned = planned_for(path, DELTA, table="shop.items", keyColumns="id")
    written(planned, *tasks)
    assert len(records_in(path, "items")) == 1
    in_task, on_driver = records_in(path, "shop.items-dlq")
    assert "'_change_type'" in told(in_task)["exception.message"]
    assert json.loads(in_task.value or b"")["_change_type"] == "what"
    assert json.loads(on_driver.value or b"")["op"] == "update"
    assert json.loads(on_driver.value or b"")["before"] == {"id": 1, "price": 1, "pieces": 0}


def test_an_old_epoch_of_a_table_is_told_as_one(path: str) -> None:
    """Not as a version that comes again, nor by the files that went with later epochs."""
    given = {"table": "shop.items", "keyColumns": "id", "beginAnywhere": "true"}
    for epoch in (3, 4):
        planned = planned_for(path, DELTA, **given)
        written(planned, [delta_batch((epoch, 1, "insert", epoch))], epoch=epoch)
    planned = planned_for(path, DELTA, **given)
    with pytest.raises(EpochTooOld, match="go on from the checkpoint that has committed 4"):
        written(planned, [delta_batch((3, 1, "insert", 3))], epoch=3)
    with pytest.raises(VersionCut):
        written(planned, [delta_batch((4, 1, "insert", 4))], epoch=5)


def test_keys_that_do_not_tell_rows_apart_stop_the_write(path: str) -> None:
    rows = [(1, price, word, 1) for price in (1, 2, 1) for word in ("update_preimage", "insert")]
    planned = planned_for(path, DELTA, table="shop.items", keyColumns="id")
    batch = delta_batch(*rows, (1, 9, "update_postimage", 1), (1, 8, "update_postimage", 1))
    with pytest.raises(InvalidRows, match="does not tell its rows apart"):
        written(planned, [batch])
    assert records_in(path, "shop.items-dlq") == []


def test_unreadable_json_of_debezium_is_told_of(path: str) -> None:
    values = [
        '{"op":"c","after":{"id":1,"price":1,"pieces":1}}',
        "{",
        '{"op":"c","after":{"id":2,"price":"x"}}',
        '{"payload":[1]}',
        '{"op":"u","after":[]}',
        '{"op":"t"}',
        '{"op":"c"}{"op":"c"}',
        '{"op":"c","after":{"id":3}}',
    ]
    batch = pa.RecordBatch.from_pydict({"value": values})
    planned = planned_for(
        path,
        batch.schema,
        table="shop.items",
        keyColumns="id",
        changes="debezium",
        rowColumns="id BIGINT, price BIGINT, pieces BIGINT",
    )
    written(planned, [batch])
    assert [json.loads(r.key or b"")["id"] for r in records_in(path, "items")] == [1, 3]
    bad = records_in(path, "shop.items-dlq")
    assert [json.loads(record.value or b"")["value"] for record in bad] == values[1:7]


def test_a_repeat_is_known_however_its_rows_were_split(path: str) -> None:
    batch = delta_batch(*[(n if n % 3 else None, n, "insert", 1) for n in range(20)])
    given = {"path": path, "table": "shop.items", "keyColumns": "id", "badRecords": "dlq"}
    given |= {"txnAppId": "job", "txnVersion": "1"}
    planned, epoch = plan_batch(SinkOptions.of(given), DELTA)
    first = commit(planned, epoch, [planned.stage.stage([batch], epoch=epoch, turn=0)])
    planned, epoch = plan_batch(SinkOptions.of(given), DELTA)
    tasks = [
        planned.stage.stage([batch.slice(at, 3)], epoch=epoch, turn=at) for at in range(0, 20, 3)
    ]
    again = commit(planned, epoch, tasks)
    assert again.repeated
    assert again.ranges == first.ranges
    assert len(records_in(path, "shop.items-dlq")) == 7


def test_changes_without_a_route_are_no_bad_rows(path: str) -> None:
    with duolog.open_log(path) as log:
        log.add_route("orders", Route("shop.lines", frozenset({Op.INSERT})))
    planned = planned_for(path, DELTA, table="shop.lines", keyColumns="id")
    with pytest.raises(InvalidRows, match="have no route"):
        written(planned, [delta_batch((1, 1, "delete", 1))])


def test_the_topic_is_made_when_it_is_missing_and_taken_as_it_is(path: str) -> None:
    batch = pa.RecordBatch.from_pydict({"value": ["1"]})
    planned_for(path, batch.schema, topic="orders", dlqTopic="bad")
    planned_for(path, batch.schema, topic="orders", dlqTopic="bad")
    assert records_in(path, "bad") == []
    with pytest.raises(InvalidSetting, match="Name another one in dlqTopic"):
        planned_for(path, batch.schema, topic="orders", dlqTopic="orders")
    with pytest.raises(InvalidSetting, match="Name another one in dlqTopic"):
        planned_for(path, ITEMS, table="shop.items", keyColumns="id", dlqTopic="items")


@pytest.mark.parametrize(
    ("topic", "table", "name"),
    [
        ("orders", None, "orders-dlq"),
        (None, "shop.items", "shop.items-dlq"),
        (None, None, "rows-dlq"),
        (None, "/data/täg/x", "data_t_g_x-dlq"),
        (None, "///", "rows-dlq"),
        ("t" * 249, None, "t" * 245 + "-dlq"),
    ],
)
def test_the_topic_is_named_after_the_target(
    topic: str | None, table: str | None, name: str
) -> None:
    assert check_topic_name(default_name(topic, table)) == name


def test_good_rows_cost_no_second_try(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    original: Any = route_prepared

    def counted(changes: Any, *arguments: Any, **more: Any) -> Any:
        calls.append(len(changes))
        return original(changes, *arguments, **more)

    monkeypatch.setattr("duolog.connector.table_rows.route_prepared", counted)
    planned = planned_for(path, ITEMS, table="shop.items", keyColumns="id")
    batch = pa.RecordBatch.from_arrays([pa.array(range(1, 1001))] * 3, schema=ITEMS)
    planned.stage.stage([batch, batch], epoch=0, turn=0)
    assert calls == [1000, 1000]
