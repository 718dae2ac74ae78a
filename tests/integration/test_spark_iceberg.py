"""Real Iceberg tables: written run by run into a real log, and read back as each key's story."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from duolog import open_log
from duolog.connector.lakes import write_iceberg
from duolog.errors import InvalidSetting
from duolog.log.model import Envelope, Op, Route, TopicSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ALL = frozenset({Op.INSERT, Op.UPDATE, Op.DELETE})


def sql(spark: SparkSession, *statements: str) -> None:
    for statement in statements:
        spark.sql(statement)


def make_log(folder: Path, table: str) -> Path:
    path = folder / "log"
    with open_log(path) as log:
        settings = TopicSettings(
            partitions=2, envelope=Envelope.DEBEZIUM, tombstones_on_delete=False
        )
        log.create_topic("stock", settings)
        log.add_route("stock", Route(table, ALL))
    return path


def stories(path: Path) -> dict[int, list[tuple[str, int | None, int | None]]]:
    """What the log says of each key, in the order of its offsets: op, old and new quantity."""
    told: dict[int, list[tuple[str, int | None, int | None]]] = {}
    with open_log(path, create=False) as log:
        for partition in range(2):
            for record in log.fetch("stock", partition, 0):
                assert record.key is not None
                assert record.value is not None
                event = json.loads(record.value)
                images = [image and image["qty"] for image in (event["before"], event["after"])]
                key = json.loads(record.key)["id"]
                told.setdefault(key, []).append((event["op"], images[0], images[1]))
    return told


def test_each_run_writes_what_is_new_exactly_once(spark: SparkSession, tmp_path: Path) -> None:
    table = "lake.shop.stock"
    sql(
        spark,
        f"CREATE TABLE {table} (id BIGINT NOT NULL, area STRING, qty BIGINT) USING iceberg "
        "PARTITIONED BY (area)",
        f"ALTER TABLE {table} SET IDENTIFIER FIELDS id",
    )
    path = make_log(tmp_path, table)
    assert write_iceberg(spark, table, path=str(path)) is None
    sql(spark, f"INSERT INTO {table} SELECT id, IF(id < 3, 'a', 'b'), id * 10 FROM range(6)")
    first = write_iceberg(spark, table, path=str(path))
    assert first is not None
    assert sum(range_.count for range_ in first.ranges) == 6
    assert write_iceberg(spark, table, path=str(path)) is None

    sql(
        spark,
        f"UPDATE {table} SET qty = qty + 1, area = 'c' WHERE id IN (0, 4)",
        f"UPDATE {table} SET id = 100 WHERE id = 1",
        f"DELETE FROM {table} WHERE id = 2",
        f"INSERT INTO {table} VALUES (2, 'a', 22)",
        f"""MERGE INTO {table} t
            USING (SELECT * FROM VALUES (0, 5), (3, 6), (9, 90) AS v (id, qty)) s
            ON t.id = s.id WHEN MATCHED AND s.id = 3 THEN DELETE
            WHEN MATCHED THEN UPDATE SET qty = s.qty
            WHEN NOT MATCHED THEN INSERT (id, area, qty) VALUES (s.id, 'b', s.qty)""",
    )
    assert write_iceberg(spark, table, path=str(path)) is not None
    assert write_iceberg(spark, table, path=str(path)) is None
    sql(spark, f"INSERT OVERWRITE {table} SELECT id, area, qty + 1000 FROM {table} WHERE id <> 9")
    assert write_iceberg(spark, table, path=str(path)) is not None

    told = stories(path)
    assert told == {
        0: [("r", None, 0), ("u", 0, 1), ("u", 1, 5), ("u", 5, 1005)],
        1: [("r", None, 10), ("d", 10, None)],
        2: [("r", None, 20), ("d", 20, None), ("c", None, 22), ("u", 22, 1022)],
        3: [("r", None, 30), ("d", 30, None)],
        4: [("r", None, 40), ("u", 40, 41), ("u", 41, 1041)],
        5: [("r", None, 50), ("u", 50, 1050)],
        9: [("c", None, 90), ("d", 90, None)],
        100: [("c", None, 10), ("u", 10, 1010)],
    }
    left = {row["id"]: row["qty"] for row in spark.table(table).collect()}
    assert {key: story[-1][2] for key, story in told.items() if story[-1][2] is not None} == left

    (first_snapshot, *_, last_snapshot) = spark.table(f"{table}.history").collect()
    sql(
        spark,
        f"CALL lake.system.rollback_to_snapshot('shop.stock', {first_snapshot['snapshot_id']})",
        f"INSERT INTO {table} VALUES (77, 'a', 77)",
    )
    with pytest.raises(InvalidSetting, match="its history does not have any more"):
        write_iceberg(spark, table, path=str(path))
    assert stories(path) == told
    assert last_snapshot["snapshot_id"] != first_snapshot["snapshot_id"]


def test_a_table_without_a_key_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    table = "lake.shop.keyless"
    sql(spark, f"CREATE TABLE {table} (id BIGINT, qty BIGINT) USING iceberg")
    path = make_log(tmp_path, table)
    with pytest.raises(InvalidSetting, match="Set keyColumns"):
        write_iceberg(spark, table, path=str(path))
    with pytest.raises(InvalidSetting, match="Leave options 'changes'"):
        write_iceberg(spark, table, path=str(path), changes="append", keyColumns="id")
    assert stories(path) == {}
