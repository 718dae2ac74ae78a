"""`format("duolog")`: the door for pyspark 4.1 and later.

Spark makes the source and its writer several times, in processes of its own: to plan a write, to
run it in tasks, and to commit it. What a task needs travels in the writer's plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from duolog.connector.worker_rounds import let_go_of_sparks_archives
from duolog.errors import InvalidSetting

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from duolog.connector.sink import Planned
    from duolog.connector.source.decoding import ValueColumns
    from duolog.connector.source.readers import BatchReader, StreamReader
    from duolog.connector.stage import Staged

_BATCH_ID = "streaming.sql.batchId"


class DuologSource(DataSource):
    """Rows into a log, and records out of it."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        self._values: ValueColumns | None = None

    @classmethod
    def name(cls) -> str:
        return "duolog"

    def schema(self) -> str:
        """Asked first, for a read without a schema of the user's. The answer goes along."""
        from duolog.connector.source.planning import read_columns, value_columns

        self._values = value_columns(self.options)
        let_go_of_sparks_archives()
        return read_columns(self.options, self._values)

    def reader(self, schema: StructType) -> BatchReader:
        from duolog.connector.source.planning import batch_reader

        return batch_reader(self._handed_over(), self._values, schema)

    def streamReader(self, schema: StructType) -> StreamReader:  # noqa: N802
        from duolog.connector.source.planning import stream_reader

        return stream_reader(self._handed_over(), self._values, schema)

    def _handed_over(self) -> Mapping[str, str]:
        """The options, which go on to one reader: Spark sends this object to the tasks as well."""
        options, self.options = self.options, {}
        return options

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        from duolog.connector.arrow_rows import arrow_schema
        from duolog.connector.options import SinkOptions
        from duolog.connector.sink import plan_batch

        if overwrite:
            raise InvalidSetting(
                "A log cannot be overwritten. Use mode('append'), or clear the topic first."
            )
        writer = BatchWriter(*plan_batch(SinkOptions.of(self.options), arrow_schema(schema)))
        let_go_of_sparks_archives()
        return writer

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:  # noqa: N802
        from duolog.connector.arrow_rows import arrow_schema
        from duolog.connector.options import SinkOptions
        from duolog.connector.sink import plan_stream

        if overwrite:
            raise InvalidSetting(
                "Output mode 'complete' would write the whole result with every batch. Use "
                "'append' or 'update'."
            )
        writer = StreamWriter(plan_stream(SinkOptions.of(self.options), arrow_schema(schema)))
        let_go_of_sparks_archives()
        return writer


@dataclass
class Message(WriterCommitMessage):
    """What a task staged, as Spark takes it to the commit."""

    staged: Staged


class BatchWriter(DataSourceArrowWriter):
    """One batch write."""

    def __init__(self, planned: Planned, epoch: int) -> None:
        self.planned = planned
        self._epoch = epoch

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Message:
        from pyspark import TaskContext

        from duolog.connector.identity import anonymous_in_stream, is_anonymous
        from duolog.connector.stage import Staged

        task: Any = TaskContext.get()
        if is_anonymous(self.planned.options) and task.getLocalProperty(_BATCH_ID) is not None:
            return Message(Staged(refusal=anonymous_in_stream()))
        staged = self.planned.stage.stage(iterator, epoch=self._epoch, turn=task.partitionId())
        let_go_of_sparks_archives()
        return Message(staged)

    def commit(self, messages: Sequence[Any]) -> None:
        from duolog.connector.sink import commit

        commit(self.planned, self._epoch, _staged(messages))
        let_go_of_sparks_archives()

    def abort(self, messages: Sequence[Any]) -> None:
        from duolog.connector.sink import abort

        abort(self.planned, self._epoch, _staged(messages))


class StreamWriter(DataSourceStreamArrowWriter):
    """One micro-batch of a stream."""

    def __init__(self, planned: Planned) -> None:
        self.planned = planned

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Message:
        from pyspark import TaskContext

        task: Any = TaskContext.get()
        epoch = int(task.getLocalProperty(_BATCH_ID))
        staged = self.planned.stage.stage(iterator, epoch=epoch, turn=task.partitionId())
        let_go_of_sparks_archives()
        return Message(staged)

    def commit(self, messages: Sequence[Any], batchId: int) -> None:  # noqa: N803
        from duolog.connector.sink import commit

        commit(self.planned, batchId, _staged(messages))
        let_go_of_sparks_archives()

    def abort(self, messages: Sequence[Any], batchId: int) -> None:  # noqa: N803
        from duolog.connector.sink import abort

        abort(self.planned, batchId, _staged(messages))


def _staged(messages: Sequence[Any]) -> list[Staged]:
    return [message.staged for message in messages if message is not None]
