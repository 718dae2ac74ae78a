"""Debezium's JSON, as its connectors write it into Kafka, through real Spark into a log."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import duolog
from duolog.connector import write_batch
from duolog.log.model import Envelope, Op, Route, TopicSettings
from tests.support.spark_doors import (
    DataSourceDoor,
    Door,
    Folder,
    FunctionDoor,
    finish,
    records_in,
    values_in,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Row = dict[str, Any]
TABLE = "inventory.customers"
COLUMNS = "id BIGINT, name STRING, credit DECIMAL(10, 2), since DATE, seen TIMESTAMP"
KAFKA = "partition int, offset bigint, key binary, value binary"
# As Debezium's connectors write these types: Connect's decimal, days, and microseconds.
CONNECT_FIELDS = [
    {"field": "id", "type": "int64", "optional": False},
    {"field": "name", "type": "string", "optional": True},
    {
        "field": "credit",
        "type": "bytes",
        "name": "org.apache.kafka.connect.data.Decimal",
        "parameters": {"scale": "2", "connect.decimal.precision": "10"},
        "optional": True,
    },
    {"field": "since", "type": "int32", "name": "io.debezium.time.Date", "optional": True},
    {"field": "seen", "type": "int64", "name": "io.debezium.time.MicroTimestamp", "optional": True},
]
SCHEMA = {
    "type": "struct",
    "name": "inventory.customers.Envelope",
    "fields": [
        {"field": "before", "type": "struct", "optional": True, "fields": CONNECT_FIELDS},
        {"field": "after", "type": "struct", "optional": True, "fields": CONNECT_FIELDS},
        {"field": "source", "type": "struct", "optional": False, "fields": []},
        {"field": "op", "type": "string", "optional": False},
        {"field": "ts_ms", "type": "int64", "optional": True},
        {"field": "transaction", "type": "struct", "optional": True, "fields": []},
    ],
}


def image(id_: int, name: str, *, with_schema: bool) -> Row:
    """A row: the decimal 12.30, the first of May 2024, and noon of it."""
    if with_schema:
        typed: Row = {"credit": "BM4=", "since": 19844, "seen": 1714564800000000}
    else:
        typed = {"credit": "12.30", "since": 19844, "seen": "2024-05-01T12:00:00Z"}
    return {"id": id_, "name": name, **typed}


def event(op: str, before: Row | None, after: Row | None, ts_ms: int, *, with_schema: bool) -> Row:
    source = {
        "version": "3.0.0.Final",
        "connector": "postgresql",
        "name": "shop",
        "ts_ms": ts_ms,
        "snapshot": "true" if op == "r" else "false",
        "db": "inventory",
        "schema": "public",
        "table": "customers",
        "lsn": 24023128,
    }
    payload = {
        "before": before,
        "after": after,
        "source": source,
        "op": op,
        "ts_ms": ts_ms + 7,
        "transaction": None,
    }
    return {"schema": SCHEMA, "payload": payload} if with_schema else payload


def history(*, with_schema: bool) -> list[Row | None]:
    """A snapshot of two rows, an insert, updates, a delete with its tombstone, a key that changes.

    Debezium tells a changed key as a delete, a tombstone and an insert.
    """

    def row(id_: int, name: str) -> Row:
        return image(id_, name, with_schema=with_schema)

    told: list[tuple[str, Row | None, Row | None] | None] = [
        ("r", None, row(1, "Ann")),
        ("r", None, row(2, "Bob")),
        ("c", None, row(3, "Cid")),
        ("u", row(1, "Ann"), row(1, "Anna")),
        ("d", row(2, "Bob"), None),
        None,
        ("u", None, row(3, "Cyd")),  # a table without REPLICA IDENTITY FULL
        ("d", row(3, "Cyd"), None),
        None,
        ("c", None, row(30, "Cyd")),
        ("u", row(1, "Anna"), row(10, "Anna")),  # as sources do it that keep one event
    ]
    return [
        None if each is None else event(*each, 1000 + at, with_schema=with_schema)
        for at, each in enumerate(told)
    ]


NAMES = {
    1: [("r", None, "Ann"), ("u", "Ann", "Anna"), ("d", "Anna", None)],
    2: [("r", None, "Bob"), ("d", "Bob", None)],
    3: [("c", None, "Cid"), ("u", None, "Cyd"), ("d", "Cyd", None)],
    10: [("c", None, "Anna")],
    30: [("c", None, "Cyd")],
}


@pytest.fixture
def path(tmp_path: Path) -> str:
    folder = tmp_path / "shop.log"
    with duolog.open_log(folder) as log:
        log.create_topic("customers", TopicSettings(partitions=3, envelope=Envelope.DEBEZIUM))
        log.add_route("customers", Route(TABLE, frozenset({Op.INSERT, Op.UPDATE, Op.DELETE})))
    return str(folder)


@pytest.fixture(params=["data source", "on the driver", "in tasks"])
def door(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Door:
    if request.param == "data source":
        return DataSourceDoor()
    rows = 10**6 if request.param == "on the driver" else 0
    monkeypatch.setattr("duolog.connector.frames.rows_on_driver", lambda *_: rows)
    return FunctionDoor()


def kafka_rows(events: Sequence[Row | None], *, first: int = 0) -> list[tuple[Any, ...]]:
    """As Spark's Kafka source has them."""
    return [
        (0, first + at, bytearray(b"{}"), each and bytearray(json.dumps(each).encode()))
        for at, each in enumerate(events)
    ]


def events_by_key(path: str) -> dict[int, list[Row | None]]:
    """By key, in the order of offsets; None is a tombstone."""
    found: dict[int, list[Row | None]] = {}
    for _, record in records_in(path, "customers"):
        key = json.loads(record.key or b"")["id"]
        value = None if record.value is None else json.loads(record.value)
        found.setdefault(key, []).append(value)
    return found


def names(events: dict[int, list[Row | None]]) -> dict[int, list[tuple[str, Any, Any]]]:
    return {
        key: [
            (each["op"], *(each[part] and each[part]["name"] for part in ("before", "after")))
            for each in told
            if each is not None
        ]
        for key, told in events.items()
    }


def options(path: str, **more: object) -> dict[str, object]:
    given = {"path": path, "table": TABLE, "keyColumns": "id", "changes": "debezium"}
    return {**given, "rowColumns": COLUMNS, **more}


@pytest.mark.parametrize("with_schema", [True, False], ids=["with schema", "without schema"])
def test_a_tables_history_is_told(
    spark: SparkSession, door: Door, path: str, *, with_schema: bool
) -> None:
    df = spark.createDataFrame(kafka_rows(history(with_schema=with_schema)), KAFKA)
    door.batch(df, **options(path))
    found = events_by_key(path)
    assert names(found) == NAMES
    first = found[1][0]
    assert first is not None
    assert first["after"] == {
        "id": 1,
        "name": "Ann",
        "credit": "12.30",
        "since": "2024-05-01",
        "seen": "2024-05-01T12:00:00Z",
    }
    assert first["ts_ms"] == 1000  # of the source
    for key in (1, 2, 3):
        assert found[key][-1] is None  # the topic's own tombstone
    assert [each is None for each in found[10] + found[30]] == [False, False]


def test_tasks_that_share_a_kafka_partition_keep_its_order(
    spark: SparkSession, door: Door, path: str
) -> None:
    """Spark's Kafka source may give ranges of one partition to several tasks."""
    events = [
        event(
            "u",
            image(at % 5, f"{at - 5:03}", with_schema=False),
            image(at % 5, f"{at:03}", with_schema=False),
            at,
            with_schema=False,
        )
        for at in range(100)
    ]
    df = spark.createDataFrame(kafka_rows(events), KAFKA).repartitionByRange(4, "offset")
    assert df.rdd.getNumPartitions() == 4
    door.batch(df, **options(path))
    for key, told in names(events_by_key(path)).items():
        assert [after for _, _, after in told] == [f"{at:03}" for at in range(key, 100, 5)]


def test_a_stream_of_it_is_written_once(
    spark: SparkSession, door: Door, path: str, tmp_path: Path
) -> None:
    folder = Folder(spark, tmp_path / "files", "value string")
    events = history(with_schema=False)
    for start in (0, 4, 8):
        rows = [{"value": each and json.dumps(each)} for each in events[start : start + 4]]
        folder.add(*map(json.dumps, rows))

    def run() -> None:
        finish(door.start(folder.stream(), tmp_path / "c", **options(path, queryName="q")))

    run()
    for lost in (tmp_path / "c" / "commits").glob("*2*"):
        lost.unlink()
    run()
    assert names(events_by_key(path)) == NAMES


def test_what_cannot_be_read_is_told_of(spark: SparkSession, door: Door, path: str) -> None:
    good = event("c", None, image(1, "Ann", with_schema=False), 1, with_schema=False)
    texts = [json.dumps(good), "{not JSON", json.dumps({**good, "op": "t"}), None]
    df = spark.createDataFrame([(text,) for text in texts], "value string").coalesce(1)
    with pytest.raises(Exception, match="Debezium's JSON"):
        door.batch(df.limit(2), **options(path))
    door.batch(df, **options(path, badRecords="dlq"))
    assert names(events_by_key(path)) == {1: [("c", None, "Ann")]}
    bad = [json.loads(value or "")["value"] for value in values_in(path, f"{TABLE}-dlq")]
    assert sorted(bad) == sorted(text for text in texts[1:3] if text)


def test_columns_that_were_parsed_before_are_found_out(spark: SparkSession, path: str) -> None:
    write_batch(parsed(spark), path=path, table=TABLE, keyColumns="id")
    assert names(events_by_key(path)) == NAMES


def parsed(spark: SparkSession) -> DataFrame:
    """What from_json makes of the values."""
    from pyspark.sql.functions import col, from_json

    rows = spark.createDataFrame(kafka_rows(history(with_schema=False)), KAFKA)
    row = "struct<id: bigint, name: string>"
    envelope = f"before {row}, after {row}, op string, ts_ms bigint"
    read = from_json(col("value").cast("string"), envelope).alias("e")
    return rows.select(read, "partition", "offset").select("e.*", "partition", "offset")
