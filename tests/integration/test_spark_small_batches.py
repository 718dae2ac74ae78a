"""How the driver asks Spark for the rows of a small batch."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from duolog.connector.small_batches import partitions_of, rows_up_to

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession


@contextmanager
def tasks_of(spark: SparkSession) -> Iterator[list[int]]:
    """How many tasks each stage had that is run meanwhile; known at the end."""
    context = spark.sparkContext
    name = uuid.uuid4().hex
    context.setJobGroup(name, name)
    found: list[int] = []
    try:
        yield found
    finally:
        tracker = context.statusTracker()
        for job in tracker.getJobIdsForGroup(name):
            info = tracker.getJobInfo(job)
            stages = [] if info is None else list(info.stageIds)
            for stage in map(tracker.getStageInfo, stages):
                found.append(0 if stage is None else stage.numTasks)
        context.setLocalProperty("spark.jobGroup.id", "")


def test_one_task_takes_the_rows_of_all_partitions_in_their_order(spark: SparkSession) -> None:
    frame = spark.range(0, 20, 1, 4)
    with tasks_of(spark) as tasks:
        rows = rows_up_to(frame, 20, in_one_task=True)
    assert rows is not None
    assert rows.column("id").to_pylist() == list(range(20))
    assert tasks == [1]


@pytest.mark.parametrize("in_one_task", [True, False])
def test_a_row_too_many_is_noticed(spark: SparkSession, in_one_task: bool) -> None:
    frame = spark.range(0, 20, 1, 4)
    assert rows_up_to(frame, 19, in_one_task=in_one_task) is None
    rows = rows_up_to(frame, 20, in_one_task=in_one_task)
    assert rows is not None
    assert sorted(rows.column("id").to_pylist()) == list(range(20))


def test_a_burst_stops_at_the_limit_also_within_a_partition(spark: SparkSession) -> None:
    """The driver holds what is allowed and one row, however much there is."""
    seen = spark.sparkContext.accumulator(0)

    def counted(rows: Iterable[Row]) -> Iterator[Row]:
        for row in rows:
            seen.add(1)
            yield row

    burst = spark.createDataFrame(
        spark.range(0, 1_000_000, 1, 2).rdd.mapPartitions(counted), "id long"
    )
    assert rows_up_to(burst, 10, in_one_task=True) is None
    assert seen.value < 100_000


def test_how_many_tasks_a_frame_has_is_asked_without_running_it(spark: SparkSession) -> None:
    with tasks_of(spark) as tasks:
        assert partitions_of(spark.range(0, 20, 1, 4)) == 4
        assert partitions_of(spark.range(0, 20, 1, 4).selectExpr("id + 1 AS id")) == 4
        assert partitions_of(spark.range(20).groupBy("id").count()) is None
    assert tasks == []
