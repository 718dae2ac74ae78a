"""`badRecords=dlq` on real Spark, through each door: good rows and bad ones in one epoch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import duolog
from duolog.log.model import Op, Route, TopicSettings
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
    from pyspark.sql import SparkSession


@pytest.fixture
def path(tmp_path: Path) -> str:
    folder = tmp_path / "shop.log"
    with duolog.open_log(folder) as log:
        log.create_topic("orders", TopicSettings(partitions=2))
        log.create_topic("items")
        log.add_route("items", Route("shop.items", frozenset({Op.INSERT})))
    return str(folder)


@pytest.fixture(params=["data source", "on the driver", "in tasks"])
def door(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Door:
    if request.param == "data source":
        return DataSourceDoor()
    rows = 10**6 if request.param == "on the driver" else 0
    monkeypatch.setattr("duolog.connector.frames.rows_on_driver", lambda *_: rows)
    return FunctionDoor()


def test_good_rows_are_written_and_bad_ones_told_of(
    spark: SparkSession, door: Door, path: str
) -> None:
    df = spark.range(0, 1000, numPartitions=3).selectExpr(
        "CAST(id AS STRING) AS value", "IF(id % 100 = 7, 9, 0) AS partition"
    )
    with pytest.raises(Exception, match="Column 'partition' is 9"):
        door.batch(df, path=path, topic="orders")
    job = {"path": path, "topic": "orders", "badRecords": "dlq", "txnAppId": "j", "txnVersion": 1}
    door.batch(df, **job)
    door.batch(df.repartition(2), **job)
    assert len(values_in(path, "orders")) == 990
    bad = [json.loads(value or "") for value in values_in(path, "orders-dlq")]
    assert sorted(int(row["value"]) for row in bad) == list(range(7, 1000, 100))
    assert {row["partition"] for row in bad} == {9}


def test_a_stream_goes_on_over_bad_rows_exactly_once(
    spark: SparkSession, door: Door, path: str, tmp_path: Path
) -> None:
    folder = Folder(spark, tmp_path / "files", "id bigint, name string")
    options = {"path": path, "table": "shop.items", "keyColumns": "id", "queryName": "items"}
    options |= {"badRecords": "dlq", "dlqTopic": "bad"}

    def run() -> None:
        finish(door.start(folder.stream(), tmp_path / "c", **options))

    folder.add('{"id":1,"name":"tea"}', '{"id":null,"name":"what"}', '{"id":2,"name":"cup"}')
    folder.add('{"name":"no key either"}')
    run()
    for lost in (tmp_path / "c" / "commits").glob("*1*"):
        lost.unlink()
    folder.add('{"id":3,"name":"pot"}')
    run()
    assert [json.loads(value or "")["id"] for value in values_in(path, "items")] == [1, 2, 3]
    assert [json.loads(value or "")["name"] for value in values_in(path, "bad")] == [
        "no key either",
        "what",
    ]
    (_, record), _ = records_in(path, "bad")
    headers = {name: (value or b"").decode() for name, value in record.headers}
    assert headers["__connect.errors.connector.name"] == "items"
    assert headers["__connect.errors.exception.class.name"] == "InvalidRows"
