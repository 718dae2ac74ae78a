"""`write_batch` and `write_stream`: the door for every pyspark from 3.5 on.

Spark makes the data source's processes anew in each of its rounds, which costs a small batch half a
second; a function of foreachBatch has none of that.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from duolog.connector.arrow_rows import arrow_schema
from duolog.connector.identity import anonymous_in_stream, is_anonymous, stream_name
from duolog.connector.options import SinkOptions
from duolog.connector.sequence import in_sequence, quoted, sorted_rows
from duolog.connector.sink import Planned, abort, commit, plan_batch, plan_stream
from duolog.connector.small_batches import (
    BatchSize,
    BatchSizes,
    is_for_one_task,
    is_slow,
    partitions_of,
    rows_on_driver,
    rows_up_to,
)
from duolog.connector.stage import Staged
from duolog.connector.throw_away import warn_of_throw_away_disk
from duolog.connector.topic_rows import TopicRows
from duolog.errors import InvalidSetting

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from duolog.log.model import Appended


def write_batch(
    df: DataFrame, options: Mapping[str, object] | None = None, **more: object
) -> Appended:
    """Write a frame's rows into a log, all of them or none, and answer their offsets.

    The options are those of `format("duolog")`. With `txnAppId` and `txnVersion`, writing the same
    again changes nothing: `repeated` says so.
    """
    if df.isStreaming:
        raise InvalidSetting("This frame is a stream. Write it with write_stream.")
    parsed = SinkOptions.of({**(options or {}), **more})
    if is_anonymous(parsed) and _is_in_stream(df):
        raise anonymous_in_stream()
    warn_of_throw_away_disk(parsed.place.path, _deploy_mode(df))
    planned, epoch = plan_batch(parsed, arrow_schema(df.schema), may_shuffle=True)
    return run(df, planned, epoch)


def write_stream(
    df: DataFrame, options: Mapping[str, object] | None = None, **more: object
) -> DataStreamWriter:
    """A stream's writer into a log; set its trigger and checkpoint, and start it.

    The options are those of `format("duolog")`; `queryName` (or `txnAppId`) is needed.
    """
    if not df.isStreaming:
        raise InvalidSetting("This frame is not a stream. Write it with write_batch.")
    parsed = SinkOptions.of({**(options or {}), **more})
    warn_of_throw_away_disk(parsed.place.path, _deploy_mode(df))
    # Mistakes show here, not in the first batch.
    plan_stream(parsed, arrow_schema(df.schema), may_shuffle=True)

    def write(batch: DataFrame, batch_id: int) -> None:
        planned = plan_stream(parsed, arrow_schema(batch.schema), may_shuffle=True)
        run(batch, planned, batch_id)

    return df.writeStream.queryName(parsed.query_name or stream_name(parsed)).foreachBatch(write)


def run(df: DataFrame, planned: Planned, epoch: int) -> Appended:
    """Stage and commit."""
    stage = planned.stage
    sequence = planned.options.sequence_by
    before = _sizes.of(str(stage.writer))
    limit = rows_on_driver(before, planned.options.small_batch_rows)
    in_one_task = bool(limit) and is_for_one_task(before, partitions_of(df))
    if isinstance(stage.rows, TopicRows):
        used = dict.fromkeys((*stage.rows.columns, *sequence))
        df = df.select(*(quoted(name) for name in used))
    staged: list[Staged] = []
    try:
        began = time.monotonic()
        few = rows_up_to(df, limit, in_one_task=in_one_task) if limit else None
        seconds = time.monotonic() - began
        if few is not None:
            batches = (sorted_rows(few, sequence) if sequence else few).to_batches()
            staged = [stage.stage(batches, epoch=epoch, turn=0)]
        else:
            if sequence:
                df = in_sequence(df, planned.key_columns, sequence)
            staged = _in_tasks(df, planned, epoch)
        appended = commit(planned, epoch, staged)
    except BaseException:
        abort(planned, epoch, staged)
        raise
    _sizes.keep(
        str(stage.writer),
        BatchSize(
            sum(told.rows for told in staged),
            sum(told.row_bytes for told in staged),
            is_slow(before, in_one_task=in_one_task, seconds=seconds),
        ),
    )
    return appended


def _in_tasks(df: DataFrame, planned: Planned, epoch: int) -> list[Staged]:
    stage = planned.stage

    def staged(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        from duolog.connector.worker_rounds import let_go_of_sparks_archives

        task: Any = TaskContext.get()
        told = stage.stage(batches, epoch=epoch, turn=task.partitionId())
        let_go_of_sparks_archives()
        yield pa.RecordBatch.from_pydict({"staged": pa.array([pickle.dumps(told)], pa.binary())})

    rows = df.mapInArrow(staged, "staged binary").collect()
    return [pickle.loads(bytes(row[0])) for row in rows]  # noqa: S301 - our own tasks made them


def _deploy_mode(df: DataFrame) -> str | None:
    configuration = df.sparkSession.sparkContext.getConf()
    return configuration.get("spark.submit.deployMode", "client")


def _is_in_stream(df: DataFrame) -> bool:
    return df.sparkSession.sparkContext.getLocalProperty("streaming.sql.batchId") is not None


_sizes = BatchSizes()
