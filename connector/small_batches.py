"""Which batches the driver takes itself, and how it asks Spark for their rows.

What a batch holds is not known before it is run, so the one before it is the guess. Should it be
far more, what the driver takes is bounded, and the batch goes through tasks after all.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pyarrow as pa

from duolog.connector.arrow_rows import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from duolog.connector.options import SinkOptions

_SMALL_BYTES = 16 << 20
_AT_MOST_BYTES = 64 << 20  # of a batch that turns out to be larger than the one before
_WRITERS_REMEMBERED = 256
_MOST_PARTITIONS: Final = 8
_SLOW_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class BatchSize:
    """What a batch held."""

    rows: int
    row_bytes: int
    is_slow: bool = False  # one task alone takes long for this writer's rows
    in_one_task: bool = False  # its rows came so, and the next ones may without asking


@dataclass(frozen=True, slots=True)
class FewRows:
    """The rows of a small batch, and how they came."""

    rows: pa.Table
    in_one_task: bool
    seconds: float


class BatchSizes:
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


def name_of(options: SinkOptions) -> str:
    """Under which name sizes are kept; a nameless write is never known again."""
    name = options.app_id or options.query_name or uuid4().hex
    return f"{name} {options.place.path or options.place.url} {options.topic} {options.table}"


def size_after(
    before: BatchSize | None, rows: int, row_bytes: int, few: FewRows | None
) -> BatchSize:
    """What to keep of a batch."""
    in_one_task = few is not None and few.in_one_task
    slow = is_slow(before, in_one_task=in_one_task, seconds=0 if few is None else few.seconds)
    return BatchSize(rows, row_bytes, slow, in_one_task and not slow)


def rows_on_driver(before: BatchSize | None, small_batch_rows: int) -> int:
    """How many rows may be encoded on the driver, after a batch like this; 0: none."""
    if before is None or before.rows > small_batch_rows or before.row_bytes > _SMALL_BYTES:
        return 0
    if not before.rows:
        return small_batch_rows
    # Rows of this size, and a few times as much as a small batch has.
    fitting = _AT_MOST_BYTES * before.rows // max(1, before.row_bytes)
    return min(small_batch_rows, max(1, fitting))


def is_for_one_task(before: BatchSize | None, partitions: int | None) -> bool:
    """Whether one task may fetch a small batch, after a batch like this.

    A limit over several partitions costs a stage that brings them together (25 ms and more); one
    task that reads them in turn has no need of it, and stops at the limit all the same.
    """
    if partitions is None or partitions > _MOST_PARTITIONS:
        return False
    return before is None or not before.is_slow


def is_slow(before: BatchSize | None, *, in_one_task: bool, seconds: float) -> bool:
    """What this batch says of the writer's next ones. Once slow, they stay with many tasks."""
    return (before is not None and before.is_slow) or (in_one_task and seconds > _SLOW_SECONDS)


def partitions_of(df: DataFrame) -> int | None:
    """How many tasks the frame's rows come from; none, if asking would run something."""
    frame: Any = df
    if not hasattr(frame, "_jdf"):
        return None
    execution = frame._jdf.queryExecution()  # noqa: SLF001 - df.rdd would make a new RDD, 30 ms
    if execution.executedPlan().getClass().getSimpleName() == "AdaptiveSparkPlanExec":
        return None  # it runs its shuffles to say
    return int(execution.toRdd().getNumPartitions())


def few_rows(df: DataFrame, limit: int, before: BatchSize | None) -> FewRows | None:
    """The rows, unless they are more than these."""
    in_one_task = (before is not None and before.in_one_task) or is_for_one_task(
        before, partitions_of(df)
    )
    began = time.monotonic()
    rows = rows_up_to(df, limit, in_one_task=in_one_task)
    return None if rows is None else FewRows(rows, in_one_task, time.monotonic() - began)


def rows_up_to(df: DataFrame, limit: int, *, in_one_task: bool) -> pa.Table | None:
    """The rows, unless they are more than these."""
    frame: Any = (df.coalesce(1) if in_one_task else df).limit(limit + 1)
    if hasattr(frame, "toArrow"):  # since 4.0
        rows: pa.Table = frame.toArrow()
    else:
        collected = frame._collect_as_arrow()  # noqa: SLF001
        schema = collected[0].schema if collected else arrow_schema(df.schema)
        rows = pa.Table.from_batches(collected, schema)
    return rows if len(rows) <= limit else None
