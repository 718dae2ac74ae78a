"""The sink's promises, on real Spark and a real log, through each of its doors."""

from __future__ import annotations

import itertools
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import duolog
from duolog.avro.embedded import registry_of
from duolog.avro.reading import ValueReader
from duolog.connector import write_batch, write_stream
from duolog.connector.sink import commit
from duolog.errors import EpochContentMismatch, InvalidRows, InvalidSetting
from duolog.log.model import Format, Op, PayloadMode, Route, TopicSettings
from duolog.log.routing.murmur2_scalar import partition_of_key
from tests.support.groups import until
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

KEY_VALUE = "key string, value string"


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A log with a topic of two partitions, and one for the inserts and deletes of a table."""
    folder = tmp_path / "shop.log"
    with duolog.open_log(folder) as log:
        log.create_topic("orders", TopicSettings(alias="o", partitions=2))
        log.create_topic("changes")
        log.add_route("changes", Route("shop.orders", frozenset({Op.INSERT, Op.DELETE})))
    return str(folder)


@pytest.fixture(params=["data source", "foreachBatch on the driver", "foreachBatch in tasks"])
def door(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Door:
    if request.param == "data source":
        return DataSourceDoor()
    take_rows_on_driver(monkeypatch, 10**6 if request.param.endswith("driver") else 0)
    return FunctionDoor()


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path) -> Folder:
    return Folder(spark, tmp_path / "files", KEY_VALUE)


def take_rows_on_driver(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    """Batches of up to so many rows are encoded on the driver, whatever came before."""
    monkeypatch.setattr("duolog.connector.frames.rows_on_driver", lambda *_: rows)


def line(value: str, key: str = "k") -> str:
    return json.dumps({"key": key, "value": value})


# -- rows with key and value


def test_rows_become_records(spark: SparkSession, door: Door, path: str) -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    headers = "array<struct<key string, value binary>>"
    df = spark.createDataFrame(
        [
            ("a", bytearray(b"1"), [("h", bytearray(b"x")), ("n", None)], at, None),
            ("a", None, None, None, None),
            (None, bytearray(b"3"), None, at, 1),
        ],
        f"key string, value binary, headers {headers}, timestamp timestamp, partition int",
    ).coalesce(1)
    door.batch(df, path=path, topic="o")
    placed = records_in(path, "orders")
    of_key = [record for partition, record in placed if record.key == b"a"]
    assert [record.value for record in of_key] == [b"1", None]
    assert of_key[0].headers == (("h", b"x"), ("n", None))
    assert of_key[0].ts_ms == int(at.timestamp() * 1000)
    assert of_key[1].ts_ms > of_key[0].ts_ms
    assert {p for p, record in placed if record.key == b"a"} == {partition_of_key(b"a", 2)}
    assert [p for p, record in placed if record.key is None] == [1]
    assert {record.op for _, record in placed} == {Op.NONE}
    assert {record.payload for _, record in placed} == {PayloadMode.NONE}


def test_rows_name_their_topics(spark: SparkSession, door: Door, path: str) -> None:
    df = spark.createDataFrame(
        [("o", "1"), ("changes", "2"), ("orders", "3")], "topic string, value string"
    )
    door.batch(df, path=path)
    assert values_in(path, "orders") == ["1", "3"]
    assert values_in(path, "changes") == ["2"]
    door.batch(df, path=path, topic="changes")
    assert values_in(path, "changes") == ["1", "2", "2", "3"]


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ("'a' AS key", "no column 'value'"),
        ("5 AS value", "Column 'value' is of type int32; it must be string or binary"),
        ("'a' AS value, 2 AS partition", "Column 'partition' is 2 in row 0"),
        ("'a' AS value, INTERVAL '1' YEAR AS y", "cannot come to Python as Arrow"),
    ],
)
def test_rows_that_do_not_fit_are_named_and_not_written(
    spark: SparkSession, door: Door, path: str, columns: str, told: str
) -> None:
    with pytest.raises(Exception, match=re.escape(told)):
        door.batch(spark.sql(f"SELECT {columns}"), path=path, topic="orders")
    assert values_in(path, "orders") == []


def test_the_functions_raise_duologs_own_errors(
    spark: SparkSession, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    df = spark.sql("SELECT 'a' AS value, CAST(NULL AS STRING) AS topic")
    for rows in (10, 0):
        take_rows_on_driver(monkeypatch, rows)
        with pytest.raises(InvalidRows, match="Column 'topic' is null in row 0"):
            write_batch(df, path=path)


# -- rows of a table


def test_rows_of_a_table_go_by_its_routes(spark: SparkSession, door: Door, path: str) -> None:
    df = spark.createDataFrame([(1, "tea"), (2, None)], "id int, item string")
    door.batch(df, path=path, table="shop.orders", keyColumns=["id"])
    found = sorted(record.value or b"" for _, record in records_in(path, "changes"))
    assert [json.loads(value) for value in found] == [
        {"_table": "shop.orders", "id": 1, "item": "tea"},
        {"_table": "shop.orders", "id": 2, "item": None},
    ]
    _, record = records_in(path, "changes")[0]
    assert (record.op, record.table, record.payload) == (
        Op.INSERT,
        "shop.orders",
        PayloadMode.FULL,
    )


def test_changes_without_a_route_are_refused_or_dropped(
    spark: SparkSession, door: Door, path: str
) -> None:
    df = spark.sql(
        "SELECT id, change AS _change_type, 1L AS _commit_version,"
        "       TIMESTAMP '2026-01-01' AS _commit_timestamp "
        "FROM VALUES (1, 'insert'), (2, 'update_preimage'), (2, 'update_postimage') t(id, change)"
    )
    options = {"path": path, "table": "shop.orders", "keyColumns": "id"}
    with pytest.raises(Exception, match=r"have no route .* unrouted=drop"):
        door.batch(df, **options)
    assert values_in(path, "changes") == []
    door.batch(df, **options, unrouted="drop")
    assert [json.loads(value or "")["id"] for value in values_in(path, "changes")] == [1]


def test_an_avro_topic_is_read_back(spark: SparkSession, door: Door, path: str) -> None:
    with duolog.open_log(path) as log:
        log.create_topic("avro", TopicSettings(key_format=Format.AVRO, value_format=Format.AVRO))
        log.add_route("avro", Route("shop.bills", frozenset({Op.INSERT})))
    df = spark.sql(
        "SELECT id, CAST(id / 4 AS DECIMAL(10, 2)) AS price, array(id, NULL) AS lines,"
        "       TIMESTAMP '2026-01-01 00:00:00' AS at FROM VALUES (1L), (2L) t(id)"
    ).coalesce(1)
    door.batch(df, path=path, table="shop.bills", keyColumns="id")
    with duolog.open_log(path) as log:
        values = log.fetch("avro", 0, 0).table().column("value").combine_chunks()
        (decoded,) = ValueReader(registry_of(log)).decode(values)
    rows = decoded.values.to_pylist()
    assert [str(row["price"]) for row in rows] == ["0.25", "0.50"]
    assert [row["lines"] for row in rows] == [[1, None], [2, None]]
    assert {row["at"] for row in rows} == {datetime(2026, 1, 1, tzinfo=UTC)}


# -- exactly once: batch jobs


def test_a_batch_job_that_is_run_again_changes_nothing(
    spark: SparkSession, door: Door, path: str
) -> None:
    df = spark.range(50).selectExpr("CAST(id AS STRING) AS value")
    job = {"path": path, "topic": "orders", "txnAppId": "nightly"}
    door.batch(df, **job, txnVersion=3)
    door.batch(df.repartition(2), **job, txnVersion=3)
    assert len(values_in(path, "orders")) == 50
    with pytest.raises(Exception, match="give its next run a higher txnVersion"):
        door.batch(df.limit(49), **job, txnVersion=3)
    with pytest.raises(Exception, match="has committed 3"):
        door.batch(df, **job, txnVersion=2)
    door.batch(df, **job, txnVersion=8)
    assert len(values_in(path, "orders")) == 100


def test_a_task_that_fails_and_runs_again_doubles_nothing(
    spark: SparkSession, door: Door, path: str, tmp_path: Path
) -> None:
    from pyspark.sql.functions import udf

    marker = str(tmp_path / "failed")

    def fails_once(number: int) -> str:
        from pathlib import Path

        if number == 39_000 and not Path(marker).exists():
            Path(marker).touch()
            raise ConnectionError("a worker went away")
        return f"{number} {'x' * 20}"

    value = udf(fails_once, "string", useArrow=False)("id").alias("value")
    df = spark.range(0, 40_000, numPartitions=2).select(value)
    door.batch(df, path=path, topic="orders", txnAppId="job", txnVersion=1)
    assert Path(marker).exists()
    values = values_in(path, "orders")
    assert sorted(int((value or "").split()[0]) for value in values) == list(range(40_000))
    # The worker of the failed attempt may notice only now that nobody reads it, and Spark may have
    # killed it before it removed its part: the next write does.
    versions, more = itertools.count(2), spark.range(1).selectExpr("'more' AS value")

    def is_swept() -> bool:
        door.batch(more, path=path, topic="orders", txnAppId="job", txnVersion=next(versions))
        return not list(Path(path).glob("staging/**/*.part"))

    until(is_swept, "remove it")


def test_a_write_that_fails_leaves_nothing(spark: SparkSession, door: Door, path: str) -> None:
    df = spark.range(0, 40_000, numPartitions=2).selectExpr(
        "IF(id = 39999, raise_error('no such order'), concat(id, repeat('x', 20))) AS value"
    )
    with pytest.raises(Exception, match="no such order"):
        door.batch(df, path=path, topic="orders")
    assert values_in(path, "orders") == []


# -- exactly once: streams


def test_a_stream_goes_on_from_its_checkpoint(
    door: Door, path: str, folder: Folder, tmp_path: Path
) -> None:
    """Restarted; then with its last commit file gone, so that Spark runs the batch again."""
    checkpoint = tmp_path / "checkpoint"

    def run() -> list[str | None]:
        query = door.start(
            folder.stream(), checkpoint, path=path, topic="orders", queryName="orders"
        )
        finish(query)
        return values_in(path, "orders")

    folder.add(line("a"), line("b"))
    folder.add(line("c"))
    assert run() == ["a", "b", "c"]
    folder.add(line("d"))
    assert run() == ["a", "b", "c", "d"]
    for lost in (checkpoint / "commits").glob("*2*"):
        lost.unlink()
    assert run() == ["a", "b", "c", "d"]
    folder.add(line("e"))
    assert run() == ["a", "b", "c", "d", "e"]


def test_a_commit_whose_answer_is_lost_is_not_written_again(
    path: str, folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a driver that is killed between the log's commit and the checkpoint's."""

    def start() -> None:
        writer = write_stream(folder.stream(), path=path, topic="orders", queryName="q")
        finish(
            writer.option("checkpointLocation", str(tmp_path / "c"))
            .trigger(availableNow=True)
            .start()
        )

    def lost(*arguments: object, **named: object) -> None:
        committed(*arguments, **named)  # type: ignore[arg-type]
        raise ConnectionError("the answer was lost")

    committed = commit
    folder.add(*[line(f"{number} {'x' * 100}") for number in range(4000)])
    with monkeypatch.context() as patched:
        patched.setattr("duolog.connector.frames.commit", lost)
        with pytest.raises(Exception, match="the answer was lost"):
            start()
    assert len(values_in(path, "orders")) == 4000
    folder.add(line("after"))
    start()
    assert len(values_in(path, "orders")) == 4001


def test_a_batch_that_is_planned_anew_with_other_rows_is_refused(
    door: Door, path: str, folder: Folder, tmp_path: Path
) -> None:
    def run(checkpoint: Path) -> None:
        finish(door.start(folder.stream(), checkpoint, path=path, topic="orders", queryName="q"))

    folder.add(line("a"))
    run(tmp_path / "c")
    for lost in (tmp_path / "c" / "commits").glob("*0*"):
        lost.unlink()
    folder.replace(0, line("b"))
    with pytest.raises(Exception, match="sends epoch 0 again with other content"):
        run(tmp_path / "c")
    folder.replace(0, line("a"))
    run(tmp_path / "c")
    folder.add(line("c"))
    run(tmp_path / "c")
    with pytest.raises(Exception, match="new or restored checkpoint runs under an old name"):
        run(tmp_path / "another")
    assert values_in(path, "orders") == ["a", "c"]


def test_a_stream_without_a_name_is_refused(
    door: Door, path: str, folder: Folder, tmp_path: Path
) -> None:
    folder.add(line("a"))
    with pytest.raises(Exception, match=r"A stream needs a name .* Set queryName"):
        finish(door.start(folder.stream(), tmp_path / "c", path=path, topic="orders"))
    assert values_in(path, "orders") == []


def test_a_stream_of_a_table_with_large_batches(
    door: Door, path: str, folder: Folder, tmp_path: Path
) -> None:
    lines = [line("x" * 100, str(number)) for number in range(4000)]
    folder.add(*lines[:2000])
    folder.add()
    folder.add(*lines[2000:])
    query = door.start(
        folder.stream(),
        tmp_path / "c",
        path=path,
        table="shop.orders",
        keyColumns="key",
        txnAppId="app",
    )
    finish(query)
    found = {record.key for _, record in records_in(path, "changes")}
    assert len(found) == len(records_in(path, "changes")) == 4000
    assert list(Path(path).glob("staging/**/*.part")) == []


@pytest.mark.parametrize("way", ["data source", "function"])
def test_two_writes_in_one_foreach_batch_are_two_writers(
    path: str, folder: Folder, tmp_path: Path, way: str
) -> None:
    folder.add(line("a"), line("b"))

    failing = [True]

    def write(df: DataFrame, batch_id: int) -> None:
        door: Door = DataSourceDoor() if way == "data source" else FunctionDoor()
        app = {"path": path, "txnAppId": "two", "txnVersion": batch_id}
        door.batch(df, **app, topic="orders")
        if failing:
            failing.clear()
            raise ConnectionError("between the two")
        door.batch(df, **app, topic="changes")

    def run() -> None:
        writer = folder.stream().writeStream.foreachBatch(write)
        writer = writer.option("checkpointLocation", str(tmp_path / "c"))
        finish(writer.trigger(availableNow=True).start())

    with pytest.raises(Exception, match="between the two"):
        run()
    run()
    assert values_in(path, "orders") == ["a", "b"]
    assert values_in(path, "changes") == ["a", "b"]


@pytest.mark.parametrize("way", ["data source", "function"])
def test_a_nameless_write_in_a_foreach_batch_is_refused(
    path: str, folder: Folder, tmp_path: Path, way: str
) -> None:
    folder.add(line("a"))
    door: Door = DataSourceDoor() if way == "data source" else FunctionDoor()
    query = (
        folder.stream()
        .writeStream.foreachBatch(lambda df, _: door.batch(df, path=path, topic="orders"))
        .option("checkpointLocation", str(tmp_path / "c"))
        .trigger(availableNow=True)
        .start()
    )
    with pytest.raises(Exception, match="inside a stream's foreachBatch"):
        finish(query)
    assert values_in(path, "orders") == []


# -- the doors themselves


def test_small_batches_are_encoded_on_the_driver_after_a_first_one_in_tasks(
    path: str, folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from duolog.connector import frames

    ways: list[str] = []
    for way in ("few_rows", "_in_tasks"):
        original = getattr(frames, way)

        def noted(
            *arguments: object, way: str = way, original: object = original, **named: object
        ) -> object:
            ways.append(way)
            return original(*arguments, **named)  # type: ignore[operator]

        monkeypatch.setattr(frames, way, noted)
    for count in (2, 3, 2, 2):
        folder.add(*[line(str(number)) for number in range(count)])
    options = {"path": path, "topic": "orders"}
    writer = write_stream(folder.stream(), options, queryName="small", smallBatchRows=2)
    writer = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
    query = writer.start()
    assert query.name == "small"
    finish(query)
    # The second is too large for the driver, which learns it from the first row too many.
    assert ways == ["_in_tasks", "few_rows", "_in_tasks", "_in_tasks", "few_rows"]
    assert len(values_in(path, "orders")) == 9


def test_frames_go_to_the_function_that_is_for_them(
    spark: SparkSession, path: str, folder: Folder
) -> None:
    with pytest.raises(InvalidSetting, match="Write it with write_stream"):
        write_batch(folder.stream(), path=path, topic="orders")
    with pytest.raises(InvalidSetting, match="Write it with write_batch"):
        write_stream(spark.range(1), path=path, topic="orders", queryName="q")


def test_mistakes_in_a_streams_options_show_at_once(path: str, folder: Folder) -> None:
    with pytest.raises(InvalidSetting, match="Did you mean 'topic'"):
        write_stream(folder.stream(), path=path, topics="orders", queryName="q")


def test_the_answer_tells_offsets_and_repeats(spark: SparkSession, path: str) -> None:
    df = spark.sql("SELECT 'k' AS key, 'v' AS value")
    options = {"path": path, "topic": "orders"}
    first = write_batch(df, options, txnAppId="a", txnVersion=0)
    again = write_batch(df, options, txnAppId="a", txnVersion=0)
    assert [range_.count for range_ in first.ranges] == [1]
    assert (first.repeated, again.repeated) == (False, True)
    assert again.ranges == first.ranges
    with pytest.raises(EpochContentMismatch):
        write_batch(df.union(df), options, txnAppId="a", txnVersion=0)


def test_the_data_source_refuses_what_a_log_cannot_do(spark: SparkSession, path: str) -> None:
    df = spark.sql("SELECT 'v' AS value")
    writer = df.write.format("duolog").option("path", path).option("topic", "orders")
    with pytest.raises(Exception, match="A log cannot be overwritten"):
        writer.mode("overwrite").save()
