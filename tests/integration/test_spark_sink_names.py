"""A stream's name is its own: another log, and another query with it, are noticed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import duolog
from duolog.log.model import TopicSettings
from tests.support.spark_doors import (
    PATIENCE_SECONDS,
    DataSourceDoor,
    Door,
    Folder,
    FunctionDoor,
    finish,
    values_in,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "key string, value string"


@pytest.fixture(params=["data source", "foreachBatch"])
def door(request: pytest.FixtureRequest) -> Door:
    return DataSourceDoor() if request.param == "data source" else FunctionDoor()


def new_log(path: Path) -> str:
    with duolog.open_log(path) as log:
        log.create_topic("orders", TopicSettings(partitions=2))
    return str(path)


def line(value: str) -> str:
    return f'{{"key": "{value}", "value": "{value}"}}'


def test_an_old_checkpoint_on_a_new_log_is_refused_by_name(
    spark: SparkSession, door: Door, tmp_path: Path
) -> None:
    folder = Folder(spark, tmp_path / "files", SCHEMA)
    options = {"topic": "orders", "queryName": "old"}
    folder.add(line("a"))
    old = new_log(tmp_path / "old.log")
    finish(door.start(folder.stream(), tmp_path / "c", path=old, **options))
    folder.add(line("b"))
    new = new_log(tmp_path / "new.log")
    with pytest.raises(Exception, match="starts with epoch 1, but this log has nothing of it"):
        finish(door.start(folder.stream(), tmp_path / "c", path=new, **options))
    assert values_in(new, "orders") == []
    finish(door.start(folder.stream(), tmp_path / "c", path=old, **options))
    assert values_in(old, "orders") == ["a", "b"]


def test_of_two_queries_with_one_name_only_one_writes(
    spark: SparkSession, door: Door, tmp_path: Path
) -> None:
    path = new_log(tmp_path / "shop.log")
    folders = []
    for name in "ab":
        # In sessions of their own: within one, Spark itself refuses a second query of a name.
        folder = Folder(spark.newSession(), tmp_path / name, SCHEMA)
        for number in range(3):
            folder.add(line(f"{name}{number}"))
        folders.append(folder)
    queries = [
        door.start(
            folder.stream(),
            tmp_path / f"checkpoint {number}",
            path=path,
            topic="orders",
            txnAppId="both",
        )
        for number, folder in enumerate(folders)
    ]
    failures = []
    for query in queries:
        try:
            assert query.awaitTermination(PATIENCE_SECONDS)
        except Exception as error:
            failures.append(str(error))
    written = values_in(path, "orders")
    assert failures
    assert all("'both'" in failure for failure in failures), failures
    epochs = [value[1:] for value in written if value is not None]
    assert sorted(epochs) == sorted(set(epochs)), "an epoch is there from both"
