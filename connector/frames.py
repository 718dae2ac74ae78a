"""`write_batch` and `write_stream`: the door for every pyspark from 3.5 on.

Spark makes the data source's processes anew in each of its rounds, which costs a small batch half a
second; a function of foreachBatch has none of that.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from duolog.connector.arrow_rows import arrow_schema
from duolog.connector.identity import anonymous_in_stream, is_anonymous, stream_name
from duolog.connector.options import SinkOptions
from duolog.connector.sequence import in_sequence, quoted, sorted_rows
from duolog.connector.sink import Planned, abort, commit, opened, plan_batch, plan_stream
from duolog.connector.small_batches import (
    BatchSizes,
    FewRows,
    few_rows,
    name_of,
    rows_on_driver,
    size_after,
)
from duolog.connector.stage import Staged
from duolog.connector.throw_away import warn_of_throw_away_disk
from duolog.connector.topic_rows import used_columns
from duolog.errors import InvalidSetting

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from duolog.log.access import LogAccess
    from duolog.log.model import Appended

    _Plan = Callable[[pa.Schema, LogAccess | None], tuple[Planned, int]]


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

    def plan(schema: pa.Schema, log: LogAccess | None) -> tuple[Planned, int]:
        return plan_batch(parsed, schema, may_shuffle=True, log=log)

    return _write(df, parsed, plan)


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
        def plan(schema: pa.Schema, log: LogAccess | None) -> tuple[Planned, int]:
            return plan_stream(parsed, schema, may_shuffle=True, log=log), batch_id

        _write(batch, parsed, plan)

    return df.writeStream.queryName(parsed.query_name or stream_name(parsed)).foreachBatch(write)


def run(df: DataFrame, planned: Planned, epoch: int) -> Appended:
    """Stage in tasks, and commit."""
    options = planned.options
    df = _used(df, options)
    if options.sequence_by:
        df = in_sequence(df, planned.key_columns, options.sequence_by)
    return _committed(planned, epoch, lambda: _in_tasks(df, planned, epoch))


def _write(df: DataFrame, options: SinkOptions, plan: _Plan) -> Appended:
    """Write what may be a small batch, if those of its name before it were.

    A small batch's rows come first, so the log is opened once: to plan, and at once to commit.
    """
    schema = arrow_schema(df.schema)
    before = _sizes.of(name_of(options))
    limit = rows_on_driver(before, options.small_batch_rows)
    few = few_rows(_used(df, options), limit, before) if limit else None
    if few is None:
        planned, epoch = plan(schema, None)
        return run(df, planned, epoch)
    with opened(options) as log:
        planned, epoch = plan(schema, log)
        return _here(few, planned, epoch, log)


def _here(few: FewRows, planned: Planned, epoch: int, log: LogAccess) -> Appended:
    """Stage on the driver, and commit."""
    stage, sequence = planned.stage, planned.options.sequence_by

    def staged() -> list[Staged]:
        rows = sorted_rows(few.rows, sequence) if sequence else few.rows
        return [stage.stage(rows.to_batches(), epoch=epoch, turn=0)]

    return _committed(planned, epoch, staged, few=few, log=log)


def _committed(
    planned: Planned,
    epoch: int,
    stage: Callable[[], list[Staged]],
    *,
    few: FewRows | None = None,
    log: LogAccess | None = None,
) -> Appended:
    staged: list[Staged] = []
    try:
        staged = stage()
        appended = commit(planned, epoch, staged, log=log)
    except BaseException:
        abort(planned, epoch, staged)
        raise
    name = name_of(planned.options)
    rows, row_bytes = sum(told.rows for told in staged), sum(told.row_bytes for told in staged)
    _sizes.keep(name, size_after(_sizes.of(name), rows, row_bytes, few))
    return appended


def _used(df: DataFrame, options: SinkOptions) -> DataFrame:
    """Without the columns that nobody writes; a table's are all written."""
    if options.table is not None:
        return df
    names = set(df.columns)
    used = used_columns(names, has_topic=options.topic is not None)
    wanted = dict.fromkeys((*used, *(name for name in options.sequence_by if name in names)))
    return df.select(*(quoted(name) for name in wanted)) if used else df


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
