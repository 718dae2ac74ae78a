"""What Spark holds while it reads: made on the driver, taken along to tasks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition

from duolog.connector.source.batch import batch_ranges
from duolog.connector.source.columns import Columns
from duolog.connector.source.reading import read_range
from duolog.connector.source.stream import Stream
from duolog.connector.worker_rounds import let_go_of_sparks_archives

if TYPE_CHECKING:
    import pyarrow as pa

    from duolog.connector.place import LogPlace
    from duolog.connector.source.decoding import ValueColumns, WrittenSchemas
    from duolog.connector.source.options import SourceOptions
    from duolog.connector.source.ranges import Range


@dataclass
class TaskRange(InputPartition):
    """What one task reads, and the schemas that its values may have been written with."""

    range: Range
    written: WrittenSchemas | None = None


@dataclass(frozen=True)
class TaskPlan:
    """What every task of a read needs to know."""

    place: LogPlace
    columns: Columns
    fail_on_data_loss: bool
    values: ValueColumns | None = None
    skip_damaged: bool = False

    def tasks(self, options: SourceOptions, ranges: list[Range]) -> list[InputPartition]:
        written = None
        if self.values is not None and ranges:
            written = self.values.written(self.place, options.registry)
        return [TaskRange(range_, written) for range_ in ranges]

    def read(self, wanted: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """In a task."""
        yield from self._records(wanted)
        let_go_of_sparks_archives()

    def _records(self, wanted: InputPartition | None) -> Iterator[pa.RecordBatch]:
        if not isinstance(wanted, TaskRange):  # Spark makes one empty task where there are none
            return
        decode = None
        if self.values is not None and wanted.written is not None:
            decode = self.values.decoder(wanted.written, self.place).decode
        found = read_range(
            self.place,
            wanted.range,
            fail_on_data_loss=self.fail_on_data_loss,
            skip_damaged=self.skip_damaged,
        )
        for batch in found:
            value = None if decode is None else decode(wanted.range.place, batch)
            yield self.columns.rows(wanted.range.place, batch, value)


class BatchReader(DataSourceReader):
    """One batch read."""

    def __init__(self, options: SourceOptions, plan: TaskPlan) -> None:
        self._options = options
        self._plan = plan

    def __getstate__(self) -> dict[str, Any]:
        return {"_plan": self._plan}  # to tasks; passwords of a registry stay on the driver

    def partitions(self) -> list[InputPartition]:
        with self._plan.place.opened() as log:
            ranges = batch_ranges(log, self._options)
        let_go_of_sparks_archives()
        return self._plan.tasks(self._options, ranges)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return self._plan.read(partition)


class StreamReader(DataSourceStreamReader):
    """One run of a streaming query on the driver; and in tasks, what they read with."""

    def __init__(self, options: SourceOptions, plan: TaskPlan) -> None:
        self._options = options
        self._plan = plan
        self._run: Stream | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_plan": self._plan}

    @property
    def _stream(self) -> Stream:
        if self._run is None:
            self._run = Stream(self._options, time.monotonic)
        return self._run

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return self._stream.initial()

    def latestOffset(self) -> dict[str, Any]:  # noqa: N802
        return self._stream.latest()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        return self._plan.tasks(self._options, self._stream.ranges(start, end))

    def commit(self, end: dict[str, Any]) -> None:
        self._stream.commit(end)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return self._plan.read(partition)
