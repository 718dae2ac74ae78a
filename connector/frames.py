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
from duolog.connector.sink import Planned, abort, commit, plan_batch, plan_stream
from duolog.connector.stage import Staged
from duolog.connector.topic_rows import TopicRows
from duolog.errors import InvalidSetting

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from duolog.log.model import Appended

_SMALL_BYTES = 16 << 20
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
    planned, epoch = plan_batch(parsed, arrow_schema(df.schema))
    return _run(df, planned, epoch)


def write_stream(
    df: DataFrame, options: Mapping[str, object] | None = None, **more: object
) -> DataStreamWriter:
    """A stream's writer into a log; set its trigger and checkpoint, and start it.

    The options are those of `format("duolog")`; `queryName` (or `txnAppId`) is needed.
    """
    if not df.isStreaming:
        raise InvalidSetting("This frame is not a stream. Write it with write_batch.")
    parsed = SinkOptions.of({**(options or {}), **more})
    plan_stream(parsed, arrow_schema(df.schema))  # mistakes show here, not in the first batch

    def write(batch: DataFrame, batch_id: int) -> None:
        _run(batch, plan_stream(parsed, arrow_schema(batch.schema)), batch_id)

    return df.writeStream.queryName(parsed.query_name or stream_name(parsed)).foreachBatch(write)


def _run(df: DataFrame, planned: Planned, epoch: int) -> Appended:
    """Stage and commit."""
    stage = planned.stage
    if isinstance(stage.rows, TopicRows):
        df = df.select(*(f"`{name}`" for name in stage.rows.columns))
    before = _sizes.of(str(stage.writer))
    # What a batch holds is not known before it is run, so the one before is the guess. The first
    # goes through tasks, and so does the first after a restart: should a burst after small batches
    # be too much for the driver, starting again mends it.
    staged: list[Staged] = []
    try:
        if is_small(before, planned.options.small_batch_rows):
            staged = [stage.stage(_on_driver(df), epoch=epoch, turn=0)]
        else:
            staged = _in_tasks(df, planned, epoch)
        appended = commit(planned, epoch, staged)
    except BaseException:
        abort(planned, epoch, staged)
        raise
    _sizes.keep(
        str(stage.writer),
        _Size(sum(told.rows for told in staged), sum(told.row_bytes for told in staged)),
    )
    return appended


def _on_driver(df: DataFrame) -> list[pa.RecordBatch]:
    frame: Any = df
    if hasattr(frame, "toArrow"):  # since 4.0
        batches: list[pa.RecordBatch] = frame.toArrow().to_batches()
        return batches
    collected: list[pa.RecordBatch] = frame._collect_as_arrow()  # noqa: SLF001
    return collected


def _in_tasks(df: DataFrame, planned: Planned, epoch: int) -> list[Staged]:
    stage = planned.stage

    def staged(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        task: Any = TaskContext.get()
        told = stage.stage(batches, epoch=epoch, turn=task.partitionId())
        yield pa.RecordBatch.from_pydict({"staged": pa.array([pickle.dumps(told)], pa.binary())})

    rows = df.mapInArrow(staged, "staged binary").collect()
    return [pickle.loads(bytes(row[0])) for row in rows]  # noqa: S301 - our own tasks made them


def _is_in_stream(df: DataFrame) -> bool:
    return df.sparkSession.sparkContext.getLocalProperty("streaming.sql.batchId") is not None


@dataclass(frozen=True, slots=True)
class _Size:
    rows: int
    row_bytes: int


class _Sizes:
    """How large each writer's last batch was, for the writers of late."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, _Size] = OrderedDict()

    def of(self, writer: str) -> _Size | None:
        return self._known.get(writer)

    def keep(self, writer: str, size: _Size) -> None:
        self._known[writer] = size
        self._known.move_to_end(writer)
        while len(self._known) > _WRITERS_REMEMBERED:
            self._known.popitem(last=False)


_sizes = _Sizes()


def is_small(size: _Size | None, small_batch_rows: int) -> bool:
    """Whether a batch like this is encoded on the driver."""
    return size is not None and size.rows <= small_batch_rows and size.row_bytes <= _SMALL_BYTES
