"""`write_batch` and `write_stream`: the door for every pyspark from 3.5 on.

Spark makes the data source's processes anew in each of its rounds, which costs a small batch half a
second; a function of foreachBatch has none of that.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from duolog.connector.arrow_rows import arrow_schema
from duolog.connector.identity import anonymous_in_stream, is_anonymous, stream_name
from duolog.connector.options import SinkOptions
from duolog.connector.sequence import in_sequence, quoted, sorted_rows
from duolog.connector.sink import Planned, abort, commit, plan_batch, plan_stream
from duolog.connector.stage import Staged
from duolog.connector.throw_away import warn_of_throw_away_disk
from duolog.connector.topic_rows import TopicRows
from duolog.errors import InvalidSetting

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from duolog.log.model import Appended

_SMALL_BYTES = 16 << 20
_AT_MOST_BYTES = 64 << 20  # of a batch that turns out to be larger than the one before
_WRITERS_REMEMBERED = 256


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
    if isinstance(stage.rows, TopicRows):
        used = dict.fromkeys((*stage.rows.columns, *sequence))
        df = df.select(*(quoted(name) for name in used))
    # What a batch holds is not known before it is run, so the one before is the guess; should it be
    # far more, what the driver takes is bounded, and the batch goes through tasks after all.
    limit = rows_on_driver(_sizes.of(str(stage.writer)), planned.options.small_batch_rows)
    staged: list[Staged] = []
    try:
        few = _on_driver(df, limit) if limit else None
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
        BatchSize(sum(told.rows for told in staged), sum(told.row_bytes for told in staged)),
    )
    return appended


def _on_driver(df: DataFrame, limit: int) -> pa.Table | None:
    """The rows, unless they are more than these."""
    frame: Any = df.limit(limit + 1)
    if hasattr(frame, "toArrow"):  # since 4.0
        rows: pa.Table = frame.toArrow()
    else:
        collected = frame._collect_as_arrow()  # noqa: SLF001
        schema = collected[0].schema if collected else arrow_schema(df.schema)
        rows = pa.Table.from_batches(collected, schema)
    return rows if len(rows) <= limit else None


def _in_tasks(df: DataFrame, planned: Planned, epoch: int) -> list[Staged]:
    stage = planned.stage

    def staged(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        task: Any = TaskContext.get()
        told = stage.stage(batches, epoch=epoch, turn=task.partitionId())
        yield pa.RecordBatch.from_pydict({"staged": pa.array([pickle.dumps(told)], pa.binary())})

    rows = df.mapInArrow(staged, "staged binary").collect()
    return [pickle.loads(bytes(row[0])) for row in rows]  # noqa: S301 - our own tasks made them


def _deploy_mode(df: DataFrame) -> str | None:
    configuration = df.sparkSession.sparkContext.getConf()
    return configuration.get("spark.submit.deployMode", "client")


def _is_in_stream(df: DataFrame) -> bool:
    return df.sparkSession.sparkContext.getLocalProperty("streaming.sql.batchId") is not None


@dataclass(frozen=True, slots=True)
class BatchSize:
    """What a batch held."""

    rows: int
    row_bytes: int


class _Sizes:
    """How large each writer's last batch was, for the writers of late."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, BatchSize] = OrderedDict()

    def of(self, writer: str) -> BatchSize | None:
        return self._known.get(writer)

    def keep(self, writer: str, size: BatchSize) -> None:
        self._known[writer] = size
        self._known.move_to_end(writer)
        while len(self._known) > _WRITERS_REMEMBERED:
            self._known.popitem(last=False)


_sizes = _Sizes()


def rows_on_driver(before: BatchSize | None, small_batch_rows: int) -> int:
    """How many rows may be encoded on the driver, after a batch like this; 0: none."""
    if before is None or before.rows > small_batch_rows or before.row_bytes > _SMALL_BYTES:
        return 0
    if not before.rows:
        return small_batch_rows
    # Rows of this size, and a few times as much as a small batch has.
    fitting = _AT_MOST_BYTES * before.rows // max(1, before.row_bytes)
    return min(small_batch_rows, max(1, fitting))
