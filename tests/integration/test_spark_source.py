"""Reading a log into Spark: batch and stream, on real Spark and a real log."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import duolog
from duolog.avro.embedded import registry_of
from duolog.avro.registry.port import SchemaText
from duolog.connector import run_available
from duolog.log import EmbeddedLog
from duolog.log.model import Format, Op, Record, Route, TopicSettings
from tests.support.spark_doors import finish

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

Batches = list[list[str]]
"""The values of each micro-batch, sorted."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Topic orders with v0 to v9: the even ones in partition 0."""
    with duolog.open_log(tmp_path / "log") as log:
        log.create_topic("orders", TopicSettings(alias="o", partitions=2))
        publish(log, 10)
    return tmp_path / "log"


def publish(log: EmbeddedLog, count: int, begin: int = 0) -> None:
    for number in range(begin, begin + count):
        log.publish("orders", Record(b"v%d" % number, partition=number % 2))


def more(path: Path, count: int, begin: int) -> None:
    with duolog.open_log(path) as log:
        publish(log, count, begin)


def read(spark: SparkSession, path: Path, **options: object) -> DataFrame:
    reader = spark.read.format("duolog").option("path", str(path)).option("subscribe", "orders")
    return reader.options(**options).load()  # type: ignore[arg-type]


def stream(spark: SparkSession, path: Path, **options: object) -> DataFrame:
    reader = spark.readStream.format("duolog").option("path", str(path))
    given = {"subscribe": "orders", "startingOffsets": "earliest", **options}
    return reader.options(**{name: str(value) for name, value in given.items()}).load()


def values(df: DataFrame) -> list[str]:
    return sorted(row[0] for row in df.selectExpr("CAST(value AS STRING)").collect())


def numbered(*numbers: int) -> list[str]:
    return sorted(f"v{number}" for number in numbers)


class Query:
    """A stream that keeps the values of each of its batches."""

    def __init__(self, df: DataFrame, checkpoint: Path) -> None:
        self.batches: Batches = []
        self.fails = False
        self.writer = df.writeStream.foreachBatch(self._take).option(
            "checkpointLocation", str(checkpoint)
        )

    def _take(self, batch: DataFrame, _: int) -> None:
        if self.fails:
            raise OSError("the disk is full")
        self.batches.append(values(batch))

    @contextmanager
    def running(self) -> Iterator[StreamingQuery]:
        query = self.writer.start()
        try:
            yield query
        finally:
            query.stop()

    def run(self) -> Batches:
        """All there is; the batches of this run, empty ones left out."""
        self.batches.clear()
        with self.running() as query:
            query.processAllAvailable()
        return [batch for batch in self.batches if batch]


# -- batch


def test_a_batch_read_has_kafkas_columns(spark: SparkSession, tmp_path: Path) -> None:
    with duolog.open_log(tmp_path / "log") as log:
        log.create_topic("orders", TopicSettings(partitions=2))
        headers = (("source", b"shop"), ("empty", None))
        record = Record(b"v", key=b"k", partition=1, ts_ms=1_700_000_000_123, headers=headers)
        log.publish("orders", [record, Record(None, partition=1, ts_ms=5)])
    df = read(spark, tmp_path / "log", includeHeaders="true", includeChange="true")
    assert df.schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,"
        "timestamp:timestamp,timestampType:int,headers:array<struct<key:string,value:binary>>,"
        "op:string,table:string>"
    )
    first, second = df.orderBy("offset").withColumn("ms", df.timestamp.cast("double")).collect()
    assert (bytes(first.key), bytes(first.value)) == (b"k", b"v")
    assert (first.topic, first.partition, first.offset) == ("orders", 1, 0)
    assert first.ms == 1_700_000_000.123
    assert [(h.key, h.value and bytes(h.value)) for h in first.headers] == list(headers)
    assert (second.key, second.value, second.headers, second.offset) == (None, None, None, 1)
    assert first.timestampType == 0


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, range(10)),
        ({"startingOffsets": '{"o": {"0": 3, "1": 5}}'}, [6, 8]),
        ({"endingOffsets": '{"orders": {"0": 1, "1": -1}}'}, [0, 1, 3, 5, 7, 9]),
        ({"minPartitions": 7}, range(10)),
        ({"maxRecordsPerPartition": 2}, range(10)),
        ({"endingOffsets": '{"orders": {"0": 0, "1": 0}}'}, []),
    ],
)
def test_batch_reads_take_their_range(
    spark: SparkSession, path: Path, options: dict[str, Any], expected: list[int]
) -> None:
    assert values(read(spark, path, **options)) == numbered(*expected)


def test_ranges_are_cut_into_tasks(spark: SparkSession, path: Path) -> None:
    assert read(spark, path, maxRecordsPerPartition=2).rdd.getNumPartitions() == 6


def test_a_batch_read_is_as_the_log_was_when_it_was_planned(
    spark: SparkSession, path: Path
) -> None:
    df = read(spark, path)
    assert values(df) == numbered(*range(10))
    more(path, 3, 10)
    assert values(read(spark, path)) == numbered(*range(13))


def test_what_was_written_with_the_sink_comes_back(spark: SparkSession, path: Path) -> None:
    rows = spark.range(2000).selectExpr(
        "CAST(id AS STRING) AS key", "repeat(CAST(id AS STRING), 50) AS value"
    )
    rows.write.format("duolog").mode("append").options(path=str(path), topic="orders").save()
    back = read(spark, path).where("key IS NOT NULL")
    back = back.selectExpr("CAST(key AS STRING) AS key", "CAST(value AS STRING) AS value")
    assert back.count() == 2000
    assert back.exceptAll(rows).isEmpty()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"kafka.bootstrap.servers": "h:1"}, "There is no option 'kafka.bootstrap.servers'"),
        ({"startingOffset": "earliest"}, "Did you mean 'startingOffsets'?"),
        ({"subscribe": "nowhere"}, "nowhere"),
        ({"group": "g"}, "'group' is for streams"),
        ({"startingOffsets": '{"orders": {"0": 3}}'}, "leaves out topic 'orders' partition 1"),
        ({"startingOffsets": '{"orders": {"0": 99, "1": 0}}'}, "Offset 99 of topic 'orders'"),
    ],
)
def test_mistakes_are_named_before_anything_is_read(
    spark: SparkSession, path: Path, options: dict[str, str], told: str
) -> None:
    with pytest.raises(Exception, match=re.escape(told)):
        read(spark, path, **options).count()


def test_a_schema_of_the_users_is_refused(spark: SparkSession, path: Path) -> None:
    reader = spark.read.format("duolog").option("path", str(path)).option("subscribe", "orders")
    with pytest.raises(Exception, match="A log has its own columns"):
        reader.schema("id INT").load().count()


# -- streams


def test_a_stream_goes_on_from_its_checkpoint(
    spark: SparkSession, path: Path, tmp_path: Path
) -> None:
    query = Query(stream(spark, path), tmp_path / "checkpoint")
    assert query.run() == [numbered(*range(10))]
    assert query.run() == []
    more(path, 3, 10)
    assert query.run() == [numbered(10, 11, 12)]


def test_limits_hold_and_all_is_read(spark: SparkSession, path: Path, tmp_path: Path) -> None:
    query = Query(stream(spark, path, maxOffsetsPerTrigger=4), tmp_path / "checkpoint")
    found = query.run()
    assert [len(batch) for batch in found] == [4, 4, 2]
    assert sorted(value for batch in found for value in batch) == numbered(*range(10))


def test_a_first_batch_that_failed_begins_where_it_began(
    spark: SparkSession, path: Path, tmp_path: Path
) -> None:
    """A stream from `latest` that dies in its first batch has lost nothing."""
    query = Query(stream(spark, path, startingOffsets="latest"), tmp_path / "checkpoint")
    query.fails = True
    with query.running() as run, pytest.raises(Exception, match="the disk is full"):
        run.processAllAvailable()
    more(path, 2, 10)
    query.fails = False
    assert query.run() == [numbered(10, 11)]


def test_a_batch_that_failed_is_read_again_as_it_was(
    spark: SparkSession, path: Path, tmp_path: Path
) -> None:
    query = Query(stream(spark, path), tmp_path / "checkpoint")
    query.run()
    more(path, 2, 10)
    query.fails = True
    with query.running() as run, pytest.raises(Exception, match="the disk is full"):
        run.processAllAvailable()
    more(path, 2, 12)
    query.fails = False
    assert query.run() == [numbered(10, 11), numbered(12, 13)]


def test_what_comes_while_a_stream_runs_is_read(
    spark: SparkSession, path: Path, tmp_path: Path
) -> None:
    query = Query(stream(spark, path), tmp_path / "checkpoint")
    with query.running() as run:
        run.processAllAvailable()
        with duolog.open_log(path) as log:
            log.set_partitions("orders", 3)
            log.publish("orders", Record(b"v10", partition=2))
        run.processAllAvailable()
        progress = run.lastProgress
        assert progress is not None
        (source,) = json.loads(progress.json)["sources"]
        assert source["endOffset"]["offsets"] == {"orders": {"0": 5, "1": 5, "2": 1}}
    assert [batch for batch in query.batches if batch] == [numbered(*range(10)), ["v10"]]


def test_a_group_shows_how_far_a_stream_is(spark: SparkSession, path: Path, tmp_path: Path) -> None:
    query = Query(stream(spark, path, group="g"), tmp_path / "checkpoint")
    query.run()
    with duolog.open_log(path) as log:
        assert [found.position for found in log.group_positions("g")] == [5, 5]


def test_a_stream_and_its_sink_may_share_a_log(
    spark: SparkSession, path: Path, tmp_path: Path
) -> None:
    with duolog.open_log(path) as log:
        log.create_topic("copies")
    writer = stream(spark, path).select("key", "value").writeStream.format("duolog")
    writer = writer.options(path=str(path), topic="copies").queryName("copy")
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    run_available(writer)
    assert values(
        read(spark, path)
        .sparkSession.read.format("duolog")
        .options(path=str(path), subscribe="copies")
        .load()
    ) == numbered(*range(10))


@pytest.mark.parametrize("trigger", [{"availableNow": True}, {"once": True}])
def test_triggers_of_one_batch_read_all_where_nothing_limits_them(
    spark: SparkSession, path: Path, tmp_path: Path, trigger: dict[str, bool]
) -> None:
    query = Query(stream(spark, path), tmp_path / "checkpoint")
    finish(query.writer.trigger(**trigger).start())
    assert query.batches == [numbered(*range(10))]
    more(path, 2, 10)
    finish(query.writer.trigger(**trigger).start())
    assert query.batches[1:] == [numbered(10, 11)]


def test_sparks_wrapper_for_available_now_is_served(
    spark: SparkSession, path: Path, tmp_path: Path
) -> None:
    name = "spark.sql.streaming.triggerAvailableNowWrapper.enabled"
    spark.conf.set(name, "true")
    try:
        query = Query(stream(spark, path), tmp_path / "checkpoint")
        finish(query.writer.trigger(availableNow=True).start())
        more(path, 2, 10)
        finish(query.writer.trigger(availableNow=True).start())
        assert [batch for batch in query.batches if batch] == [
            numbered(*range(10)),
            numbered(10, 11),
        ]
    finally:
        spark.conf.unset(name)


def test_run_available_reads_all_in_limited_batches(
    spark: SparkSession, path: Path, tmp_path: Path
) -> None:
    df = stream(spark, path, maxOffsetsPerTrigger=4, availableNow="true", group="g")
    query = Query(df, tmp_path / "checkpoint")
    run = run_available(query.writer)
    assert not run.isActive
    assert [len(batch) for batch in query.batches] == [4, 4, 2]
    with duolog.open_log(path) as log:
        assert sum(found.position for found in log.group_positions("g")) == 10
    more(path, 3, 10)
    query.batches.clear()
    run_available(query.writer)
    assert query.batches == [numbered(10, 11, 12)]


def test_run_available_raises_what_failed(spark: SparkSession, path: Path, tmp_path: Path) -> None:
    query = Query(stream(spark, path, availableNow="true"), tmp_path / "checkpoint")
    query.fails = True
    with pytest.raises(Exception, match="the disk is full"):
        run_available(query.writer)


# -- what is gone


def test_what_is_gone_stops_a_stream_unless_it_is_told_to_go_on(
    spark: SparkSession, path: Path, tmp_path: Path
) -> None:
    Query(stream(spark, path), tmp_path / "checkpoint").run()
    with duolog.open_log(path) as log:
        publish(log, 2, 10)
        log.drop_topic("orders")
        log.create_topic("orders", TopicSettings(partitions=2))
        publish(log, 2, 12)
    query = Query(stream(spark, path), tmp_path / "checkpoint")
    told = "RecordsLost: Topic 'orders' was dropped and made again"
    with query.running() as run, pytest.raises(Exception, match=told):
        run.processAllAvailable()
    going_on = Query(stream(spark, path, failOnDataLoss="false"), tmp_path / "checkpoint")
    assert going_on.run() == [numbered(12, 13)]


# -- decode


def test_values_come_as_columns(spark: SparkSession, tmp_path: Path) -> None:
    with duolog.open_log(tmp_path / "log") as log:
        log.create_topic("orders", TopicSettings(value_format=Format.AVRO, partitions=2))
        log.add_route("orders", Route("shop.orders", frozenset({Op.INSERT, Op.DELETE})))
        rows = [
            {"id": n, "at": datetime(2024, 5, n + 1, tzinfo=UTC), "tags": ["a"]} for n in (0, 1)
        ]
        log.publish_rows("shop.orders", Op.INSERT, rows, ["id"])
        log.publish("orders", Record(None, key=b"gone", partition=0))
    df = read(spark, tmp_path / "log", decode="true", includeChange="true")
    assert df.schema["value"].simpleString() == (
        "value:struct<_table:string,id:bigint,at:timestamp,tags:array<string>>"
    )
    found = df.selectExpr("value.id", "value.tags", "op", "table").orderBy("id").collect()
    assert [(row.id, row.tags, row.op, row.table) for row in found] == [
        (None, None, None, None),
        (0, ["a"], "insert", "shop.orders"),
        (1, ["a"], "insert", "shop.orders"),
    ]
    times = df.where("value.id = 1").selectExpr("unix_seconds(value.at)").collect()
    assert [row[0] for row in times] == [1_714_608_000]


def test_a_stream_decodes_schemas_that_come_while_it_runs(
    spark: SparkSession, tmp_path: Path
) -> None:
    fields = [{"name": "id", "type": "int"}]
    later = [*fields, {"name": "note", "type": "string", "default": ""}]

    def write(schema: list[dict[str, str]], body: bytes) -> None:
        with duolog.open_log(tmp_path / "log") as log:
            log.create_topic("orders", if_not_exists=True)
            text = json.dumps({"type": "record", "name": "Order", "fields": schema})
            number = registry_of(log).register("orders-value", SchemaText(text))
            log.publish("orders", Record(b"\0" + number.to_bytes(4, "big") + body))

    write(fields, b"\x02")
    df = stream(spark, tmp_path / "log", decode="true").selectExpr("CAST(value.id AS STRING) value")
    query = Query(df, tmp_path / "checkpoint")
    with query.running() as run:
        run.processAllAvailable()
        write(later, b"\x04\x00")
        run.processAllAvailable()
    assert [batch for batch in query.batches if batch] == [["1"], ["2"]]
