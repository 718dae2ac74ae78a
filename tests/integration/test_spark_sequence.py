"""`sequenceBy` on real Spark: the rows of each key in their order, whatever tasks they are in."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import duolog
from duolog.connector import write_batch, write_stream
from duolog.errors import DuologError, InvalidRows, InvalidSetting
from duolog.log.model import Op, Route, TopicSettings
from tests.support.spark_doors import DataSourceDoor, Folder, finish, records_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 3000
KEYS = 40


@pytest.fixture
def path(tmp_path: Path) -> str:
    folder = tmp_path / "shop.log"
    with duolog.open_log(folder) as log:
        log.create_topic("orders", TopicSettings(partitions=3))
        log.create_topic("lines", TopicSettings(partitions=3))
        log.add_route("lines", Route("shop.lines", frozenset({Op.INSERT})))
    return str(folder)


@pytest.fixture(params=["on the driver", "in tasks"])
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = 10**6 if request.param == "on the driver" else 0
    monkeypatch.setattr("duolog.connector.frames.rows_on_driver", lambda *_: rows)


def numbers_by_key(path: str, topic: str) -> dict[bytes | None, list[int]]:
    found: dict[bytes | None, list[int]] = {}
    for _, record in records_in(path, topic):
        value: Any = json.loads(record.value or b"")
        found.setdefault(record.key, []).append(value["n"] if topic == "lines" else value)
    return found


@pytest.mark.usefixtures("_way")
def test_rows_of_a_topic_come_in_the_order_of_a_column_that_is_not_written(
    spark: SparkSession, path: str
) -> None:
    df = spark.range(0, ROWS, numPartitions=4).selectExpr(
        f"CAST(id % {KEYS} AS STRING) AS key",
        "CAST((id * 7919) % 3001 AS STRING) AS value",
        "IF(id = 5, NULL, (id * 7919) % 3001) AS `at or so`",
    )
    write_batch(df, path=path, topic="orders", sequenceBy=["at or so"])
    found = numbers_by_key(path, "orders")
    assert sum(map(len, found.values())) == ROWS
    unknown = 5 * 7919 % 3001
    for key, numbers in found.items():
        if key == b"5":
            assert numbers[0] == unknown
            numbers = numbers[1:]
        assert numbers == sorted(numbers)


@pytest.mark.usefixtures("_way")
def test_rows_of_a_table_come_in_the_order_of_two_columns(spark: SparkSession, path: str) -> None:
    df = spark.range(0, ROWS, numPartitions=4).selectExpr(
        f"id % {KEYS} AS id",
        "DATE_ADD(DATE '2026-01-01', CAST((id * 7919) % 3001 / 10 AS INT)) AS day",
        "CAST((id * 7919) % 3001 % 10 AS DECIMAL(4, 1)) AS part",
        "(id * 7919) % 3001 AS n",
    )
    write_batch(df, path=path, table="shop.lines", keyColumns="id", sequenceBy="day,part")
    found = numbers_by_key(path, "lines")
    assert (len(found), sum(map(len, found.values()))) == (KEYS, ROWS)
    assert all(numbers == sorted(numbers) for numbers in found.values())


@pytest.mark.usefixtures("_way")
def test_each_batch_of_a_stream_is_in_order(spark: SparkSession, path: str, tmp_path: Path) -> None:
    chance = random.Random(11)
    folder = Folder(spark, tmp_path / "files", "key string, value string, at bigint")
    for batch in range(3):
        numbers = list(range(batch * 200, batch * 200 + 200))
        chance.shuffle(numbers)
        folder.add(*[json.dumps({"key": str(n % 7), "value": str(n), "at": n}) for n in numbers])
    writer = write_stream(
        folder.stream().repartition(3), path=path, topic="orders", queryName="q", sequenceBy="at"
    )
    query = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
    finish(query.start())
    for key, numbers in numbers_by_key(path, "orders").items():
        assert numbers == [n for n in range(600) if str(n % 7).encode() == key]


@pytest.mark.parametrize(
    ("columns", "options", "error", "told"),
    [
        (
            "1 AS id, 2 AS n",
            {"table": "shop.lines", "sequenceBy": "n"},
            InvalidSetting,
            "'shop.lines' has none. Set keyColumns",
        ),
        (
            "1 AS id, 2 AS n",
            {"table": "shop.lines", "sequenceBy": "at", "keyColumns": "id"},
            InvalidRows,
            "no column 'at'",
        ),
        (
            "1 AS id, 2.5D AS n",
            {"table": "shop.lines", "sequenceBy": "n", "keyColumns": "id"},
            InvalidRows,
            "'n' is of type double, by which rows cannot be put in order",
        ),
        (
            "'x' AS value, 1 AS at",
            {"topic": "orders", "sequenceBy": "at"},
            InvalidRows,
            "no column 'key'",
        ),
        (
            "1 AS id, 'insert' AS _change_type, 1L AS _commit_version,"
            "TIMESTAMP '2026-01-01' AS _commit_timestamp",
            {"table": "shop.lines", "sequenceBy": "id", "keyColumns": "id"},
            InvalidSetting,
            "has an order of its own",
        ),
    ],
)
def test_an_order_that_cannot_be_had_is_refused(
    spark: SparkSession,
    path: str,
    columns: str,
    options: dict[str, str],
    error: type[DuologError],
    told: str,
) -> None:
    with pytest.raises(error, match=told):
        write_batch(spark.sql(f"SELECT {columns}"), options, path=path)


def test_the_data_source_says_that_it_cannot(spark: SparkSession, path: str) -> None:
    df = spark.sql("SELECT 'k' AS key, 'v' AS value, 1 AS at")
    with pytest.raises(Exception, match=r"which a data source cannot ask.*write_batch"):
        DataSourceDoor().batch(df, path=path, topic="orders", sequenceBy="at")
    assert records_in(path, "orders") == []
