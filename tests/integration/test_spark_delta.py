"""Real Delta tables: their change data feed, read back from a real log as each key's story."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from duolog import open_log
from duolog.connector import write_batch, write_stream
from duolog.connector.lakes import delta, follow_delta
from duolog.errors import InvalidSetting, VersionCut
from duolog.log.model import Envelope, Op, Route, TopicSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Row = dict[str, Any]
ALL = frozenset({Op.INSERT, Op.UPDATE, Op.DELETE})
STATEMENTS = [
    "INSERT INTO {t} SELECT id, IF(id % 2 = 0, 'a', 'b'), id * 10 FROM range(12)",
    "UPDATE {t} SET qty = qty + 1 WHERE id < 8",
    "UPDATE {t} SET area = 'c' WHERE id IN (2, 3, 5)",
    "UPDATE {t} SET id = 100 WHERE id = 4",
    "DELETE FROM {t} WHERE id IN (0, 7)",
    """MERGE INTO {t} USING (SELECT id, 'b' AS area, 7 AS qty FROM range(6, 15)) s ON {t}.id = s.id
       WHEN MATCHED AND s.id = 6 THEN DELETE
       WHEN MATCHED THEN UPDATE SET *
       WHEN NOT MATCHED THEN INSERT *""",
    "INSERT OVERWRITE {t} SELECT id, area, qty + 1000 FROM {t} WHERE id <> 9",
    "UPDATE {t} SET id = IF(id = 1, 200, 201) WHERE id IN (1, 2)",
]


def make_table(spark: SparkSession, name: str, statements: list[str]) -> str:
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, area STRING, qty BIGINT) USING delta "
        "PARTITIONED BY (area) TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    )
    play(spark, name, statements)
    return name


def play(spark: SparkSession, name: str, statements: list[str]) -> None:
    for statement in statements:
        spark.sql(statement.format(t=name))


def make_log(folder: Path, table: str) -> Path:
    """A log with one topic that takes both images of each change of the table."""
    path = folder / "log"
    with open_log(path) as log:
        settings = TopicSettings(
            partitions=3, envelope=Envelope.DEBEZIUM, tombstones_on_delete=False
        )
        log.create_topic("stock", settings)
        log.add_route("stock", Route(table, ALL))
    return path


def stories(path: Path) -> dict[int, list[tuple[str, Row | None, Row | None]]]:
    """What the log says of each key, in the order of its offsets: op, old row, new row."""
    told: dict[int, list[tuple[str, Row | None, Row | None]]] = defaultdict(list)
    with open_log(path, create=False) as log:
        for where in log.offsets("stock"):
            at = where.start
            while at < where.next_offset:
                fetched = log.fetch("stock", where.partition, at)
                at = fetched.next_offset
                for record in fetched:
                    assert record.key is not None
                    assert record.value is not None
                    event = json.loads(record.value)
                    key = json.loads(record.key)["id"]
                    told[key].append((event["op"], event["before"], event["after"]))
    return dict(told)


def final(told: dict[int, list[tuple[str, Row | None, Row | None]]]) -> dict[int, Row]:
    """The table that the stories end with; each is held to what came before it."""
    state: dict[int, Row] = {}
    for key, story in told.items():
        row: Row | None = None
        for op, old, new in story:
            assert old == (row if op in {"u", "d"} else None), (key, story)
            assert (row is None) == (op in {"c", "r"}), (key, story)
            row = new
        if row is not None:
            state[key] = row
    return state


def rows_of(spark: SparkSession, table: str) -> dict[int, Row]:
    return {row["id"]: row.asDict() for row in spark.table(table).collect()}


def changes_of(spark: SparkSession, table: str) -> DataFrame:
    reader = spark.read.format("delta").option("readChangeFeed", "true")
    return reader.option("startingVersion", 0).table(table)


@pytest.fixture(scope="module")
def stock(spark: SparkSession) -> str:
    return make_table(spark, "stock", STATEMENTS)


@pytest.mark.parametrize("tasks", [None, 7])
def test_every_statement_is_told_whatever_the_tasks(
    spark: SparkSession, stock: str, tmp_path: Path, tasks: int | None
) -> None:
    path = make_log(tmp_path, stock)
    changes = changes_of(spark, stock)
    changes = changes if tasks is None else changes.repartition(tasks)
    write_batch(changes, path=str(path), table=stock, keyColumns="id")
    told = stories(path)
    assert final(told) == rows_of(spark, stock)
    assert [op for op, _, _ in told[3]] == ["c", "u", "u", "d", "c"]  # moved to another partition
    assert [op for op, _, _ in told[4]] == ["c", "u", "d"]  # went on as 100
    assert [op for op, _, _ in told[100]] == ["c", "d", "c"]
    assert [op for op, _, _ in told[9]] == ["c", "u", "d"]
    assert [op for op, _, _ in told[1]] == ["c", "u", "d", "c", "d"]
    assert [op for op, _, _ in told[201]] == ["c"]


def test_a_table_is_followed_from_what_it_is_with_no_gap(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = make_table(spark, "followed", STATEMENTS[:3])
    path = make_log(tmp_path, table)
    options = {"path": str(path), "keyColumns": "id", "queryName": "follow"}
    play(spark, table, STATEMENTS[3:4])
    writer = follow_delta(spark, table, options)
    play(spark, table, STATEMENTS[4:5])  # between the first rows and the stream's start
    run(writer, tmp_path)
    assert final(stories(path)) == rows_of(spark, table)
    play(spark, table, STATEMENTS[5:])
    run(follow_delta(spark, table, options), tmp_path)
    told = stories(path)
    assert final(told) == rows_of(spark, table)
    assert [op for op, _, _ in told[3]] == ["r", "d", "c"]
    assert [op for op, _, _ in told[0]] == ["r", "d"]
    assert sum(op == "r" for story in told.values() for op, _, _ in story) == 12


def test_a_table_that_keeps_no_changes_is_refused_before_anything_is_written(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = str(tmp_path / "plain")
    spark.range(3).write.format("delta").save(folder)
    path = make_log(tmp_path, "plain")
    options = {"path": str(path), "table": "plain", "keyColumns": "id", "queryName": "q"}
    with pytest.raises(InvalidSetting, match=r"delta\.enableChangeDataFeed"):
        follow_delta(spark, folder, options)
    with pytest.raises(InvalidSetting, match="Leave options 'changes' and 'topic' out"):
        follow_delta(spark, folder, options, Changes="append")
    assert stories(path) == {}
    spark.sql(f"ALTER TABLE delta.`{folder}` SET TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    run(follow_delta(spark, folder, options), tmp_path)
    assert final(stories(path)) == {number: {"id": number} for number in range(3)}


def test_of_two_first_starts_only_one_writes_the_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second has looked before the first wrote, and finds a later version of the table."""
    table = make_table(spark, "raced", STATEMENTS[:1])
    path = make_log(tmp_path, table)
    options = {"path": str(path), "keyColumns": "id", "queryName": "follow"}
    follow_delta(spark, table, options)
    looks = [None]

    def looked(*arguments: Any) -> int | None:
        return looks.pop() if looks else written(*arguments)

    written = delta._written
    for statement in STATEMENTS[1:3]:
        play(spark, table, [statement])
        looks = [None]
        with monkeypatch.context() as patched:
            patched.setattr(delta, "_written", looked)
            writer = follow_delta(spark, table, options)
        assert looks == []
    run(writer, tmp_path)
    told = stories(path)
    assert final(told) == rows_of(spark, table)
    assert sum(op == "r" for story in told.values() for op, _, _ in story) == 12


def test_a_table_without_a_key_is_refused_before_anything_is_written(
    spark: SparkSession, stock: str, tmp_path: Path
) -> None:
    path = make_log(tmp_path, stock)
    with pytest.raises(InvalidSetting, match="Set keyColumns"):
        follow_delta(spark, stock, path=str(path), queryName="q")
    assert stories(path) == {}


def test_a_version_that_a_trigger_cuts_in_two_stops_the_stream(
    spark: SparkSession, tmp_path: Path
) -> None:
    """An overwrite is told by the files that came and those that went, which Delta may part."""
    table = make_table(spark, "cut", STATEMENTS[:1])
    play(spark, table, ["INSERT OVERWRITE {t} SELECT id, area, qty + 1 FROM {t}"])
    path = make_log(tmp_path, table)
    reader = spark.readStream.format("delta").option("readChangeFeed", "true")
    changes = reader.option("startingVersion", 0).option("maxFilesPerTrigger", 1).table(table)
    options = {"path": str(path), "table": table, "keyColumns": "id", "queryName": "cut"}
    with pytest.raises(Exception, match=r"VersionCut.*maxFilesPerTrigger to 2147483647"):
        run(write_stream(changes, options), tmp_path)
    assert 0 < sum(map(len, stories(path).values())) < 36


def test_versions_that_are_written_again_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    table = make_table(spark, "again", STATEMENTS[:3])
    path = make_log(tmp_path, table)
    options = {"path": str(path), "table": table, "keyColumns": "id", "txnAppId": "job"}
    changes = changes_of(spark, table)
    write_batch(changes.where("_commit_version <= 2"), options, txnVersion=1)
    write_batch(changes.where("_commit_version <= 2"), options, txnVersion=1)
    with pytest.raises(VersionCut, match="written up to version 2, and version 2 comes again"):
        write_batch(changes.where("_commit_version >= 2"), options, txnVersion=2)
    write_batch(changes.where("_commit_version > 2"), options, txnVersion=2)
    assert final(stories(path)) == rows_of(spark, table)


def run(writer: Any, folder: Path) -> None:
    query = writer.option("checkpointLocation", str(folder / "checkpoint"))
    query = query.trigger(availableNow=True).start()
    try:
        assert query.awaitTermination(90)
    finally:
        query.stop()
