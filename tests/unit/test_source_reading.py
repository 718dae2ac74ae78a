"""What tasks do: a range of a real log as rows for Spark."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

import duolog
from duolog.connector.place import LogPlace
from duolog.connector.source.choice import Place
from duolog.connector.source.columns import Columns
from duolog.connector.source.ranges import Range
from duolog.connector.source.reading import read_range
from duolog.errors import DamagedBatch, RecordsLost
from duolog.log import EmbeddedLog, LogOptions
from duolog.log.fetched import FetchedBatch
from duolog.log.model import Mode, Op, Record, TopicSettings, Writer
from duolog.log.part import PartBuilder
from tests.support.poison import Poison, poison
from tests.support.records import record_batch

ORDERS = Place("orders", 1, 0)
BATCHES, EACH = 6, 50


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Six batches of 50 records, of which each has its offset as value."""
    with duolog.open_log(tmp_path / "log") as log:
        topic = log.create_topic("orders", TopicSettings(partitions=2))
        for number in range(BATCHES):
            part = PartBuilder(None)
            values = [b"%d" % (EACH * number + row) for row in range(EACH)]
            part.add(topic, 0, record_batch(values))
            log.append(Writer(Mode.STREAM, "q", "orders"), number, [part.finish()])
    return tmp_path / "log"


def read(path: Path, start: int, end: int, **more: object) -> list[FetchedBatch]:
    given = {"fail_on_data_loss": True, **more}
    return list(read_range(LogPlace(str(path)), Range(ORDERS, start, end), **given))  # type: ignore[arg-type]


def offsets(batches: list[FetchedBatch]) -> list[int]:
    """The offsets, which the values tell as well."""
    told = [offset for batch in batches for offset in range(batch.base_offset, batch.next_offset)]
    assert told == [
        int(value) for batch in batches for value in batch.records.column("value").to_pylist()
    ]
    return told


@pytest.mark.parametrize(
    ("start", "end"), [(0, 300), (0, 1), (49, 51), (50, 100), (120, 233), (299, 300), (7, 7)]
)
@pytest.mark.parametrize("chunk_bytes", [1, 1500, 1 << 20])
def test_exactly_the_range_is_read(path: Path, start: int, end: int, chunk_bytes: int) -> None:
    assert offsets(read(path, start, end, chunk_bytes=chunk_bytes)) == list(range(start, end))


def test_the_log_is_free_while_rows_are_handed_out(path: Path) -> None:
    batches = read_range(
        LogPlace(str(path)), Range(ORDERS, 0, 300), fail_on_data_loss=True, chunk_bytes=1
    )
    seen = 0
    for batch in batches:
        with duolog.open_log(path, options=LogOptions(lock_wait_seconds=0)) as log:
            log.publish("orders", Record(b"meanwhile", partition=1))
        seen += batch.records.num_rows
    assert seen == 300


def clear(log: EmbeddedLog) -> None:
    log.clear_topic("orders")
    log.publish("orders", [Record(b"300", partition=0), Record(b"301", partition=0)])


def drop(log: EmbeddedLog) -> None:
    log.drop_topic("orders")
    log.create_topic("orders")


@pytest.mark.parametrize(
    ("lose", "told", "left"),
    [
        (clear, "Offsets 100 to 299 of topic 'orders' partition 0 are gone", [300, 301]),
        (drop, "The topic 'orders' partition 0 is gone", []),
    ],
)
def test_what_goes_while_it_is_read_is_told(
    path: Path,
    lose: Callable[[EmbeddedLog], None],
    told: str,
    left: list[int],
    caplog: pytest.LogCaptureFixture,
) -> None:
    with duolog.open_log(path) as log:
        lose(log)
    with pytest.raises(RecordsLost, match=told):
        read(path, 100, 302)
    with caplog.at_level(logging.WARNING, "duolog.connector"):
        assert offsets(read(path, 100, 302, fail_on_data_loss=False)) == left
    assert told in caplog.text


@pytest.mark.parametrize("kind", list(Poison))
@pytest.mark.parametrize("chunk_bytes", [1, 1 << 20])
def test_damage_fails_a_task_or_is_skipped(
    path: Path, kind: Poison, chunk_bytes: int, caplog: pytest.LogCaptureFixture
) -> None:
    with duolog.open_log(path) as log:
        poison(log, "orders", 0, 100, kind)
    with pytest.raises(DamagedBatch) as raised:
        read(path, 20, 280, chunk_bytes=chunk_bytes)
    assert (raised.value.first_offset, raised.value.next_offset) == (100, 150)
    kept = [*range(20, 100), *range(150, 280)]
    told = "Offsets 100 to 149 of topic 'orders' partition 0 are left out"
    with caplog.at_level(logging.WARNING, "duolog.connector"):
        assert offsets(read(path, 20, 280, skip_damaged=True, chunk_bytes=chunk_bytes)) == kept
    assert told in caplog.text
    inside = [*range(150, 200)]
    assert offsets(read(path, 120, 200, skip_damaged=True, chunk_bytes=chunk_bytes)) == inside
    with duolog.open_log(path) as log:
        log.skip_to("orders", 0, 150)
    caplog.clear()
    with caplog.at_level(logging.WARNING, "duolog.connector"):
        assert offsets(read(path, 20, 280, chunk_bytes=chunk_bytes)) == kept
    assert told in caplog.text
    assert read(path, 110, 140, chunk_bytes=chunk_bytes) == []


def test_a_log_that_ends_before_the_range_is_a_loss(path: Path) -> None:
    with pytest.raises(RecordsLost, match="Offsets 300 to 309 of topic 'orders' partition 0"):
        read(path, 290, 310)
    assert offsets(read(path, 290, 310, fail_on_data_loss=False)) == list(range(290, 300))
    assert read(path, 400, 410, fail_on_data_loss=False) == []


# -- columns


def fetched(records: list[Record]) -> FetchedBatch:
    from duolog.log.batch import decode, encode_small

    encoded, _ = encode_small(records, 1_700_000_000_123)
    return FetchedBatch(40, decode(encoded))


def test_columns_are_those_of_sparks_kafka_source() -> None:
    batch = fetched([Record(b"v", key=b"k", ts_ms=1_700_000_000_001), Record(None)])
    rows = Columns().rows(Place("orders", 1, 3), batch)
    assert rows.schema == pa.schema(
        [
            ("key", pa.binary()),
            ("value", pa.binary()),
            ("topic", pa.string()),
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("timestamp", pa.timestamp("us", "UTC")),
            ("timestampType", pa.int32()),
        ]
    )
    assert rows.to_pylist() == [
        {
            "key": b"k",
            "value": b"v",
            "topic": "orders",
            "partition": 3,
            "offset": 40,
            "timestamp": datetime(2023, 11, 14, 22, 13, 20, 1000, UTC),
            "timestampType": 0,
        },
        {
            "key": None,
            "value": None,
            "topic": "orders",
            "partition": 3,
            "offset": 41,
            "timestamp": datetime(2023, 11, 14, 22, 13, 20, 123000, UTC),
            "timestampType": 0,
        },
    ]
    rows.validate(full=True)


@pytest.mark.parametrize("start", [0, 1])
def test_headers_and_changes_are_columns_where_they_are_asked_for(start: int) -> None:
    batch = fetched(
        [
            Record(b"0"),
            Record(b"1", headers=(("a", b"x"), ("b", None))),
            Record(b"2", op=Op.DELETE, table="shop.orders"),
            Record(b"3", op=Op.READ, headers=(("a", b"y"),)),
        ]
    )
    batch = FetchedBatch(batch.base_offset + start, batch.records.slice(start))
    columns = Columns(headers=True, change=True)
    rows = columns.rows(ORDERS, batch)
    rows.validate(full=True)
    assert rows.schema.names == columns.names
    found = [(row["headers"], row["op"], row["table"]) for row in rows.to_pylist()]
    assert (
        found
        == [
            (None, None, None),
            ([{"key": "a", "value": b"x"}, {"key": "b", "value": None}], None, None),
            (None, "delete", "shop.orders"),
            ([{"key": "a", "value": b"y"}], "read", None),
        ][start:]
    )


def test_headers_that_no_record_has_are_null() -> None:
    rows = Columns(headers=True).rows(ORDERS, fetched([Record(b"0"), Record(b"1")]))
    assert rows.column("headers").null_count == 2


def test_a_topic_in_another_script_is_spelled_right() -> None:
    rows = Columns().rows(Place("commandes-été", 1, 0), fetched([Record(b"0"), Record(b"1")]))
    assert rows.column("topic").to_pylist() == ["commandes-été"] * 2


def test_columns_in_sql() -> None:
    assert Columns().ddl() == (
        "`key` BINARY, `value` BINARY, `topic` STRING, `partition` INT, `offset` BIGINT, "
        "`timestamp` TIMESTAMP, `timestampType` INT"
    )
    assert (
        Columns(headers=True, change=True)
        .ddl("STRUCT<`id`: INT>")
        .startswith("`key` BINARY, `value` STRUCT<`id`: INT>, `topic` STRING")
    )
