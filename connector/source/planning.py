"""From options to what Spark reads with. Each step runs in a process of its own on the driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from duolog.connector.source.columns import Columns
from duolog.connector.source.options import SourceOptions
from duolog.errors import InvalidSetting

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from duolog.connector.source.decoding import ValueColumns
    from duolog.connector.source.readers import BatchReader, StreamReader, TaskPlan


def value_columns(given: Mapping[str, object]) -> ValueColumns | None:
    """With option decode, what the values are; settled once for each use of a source."""
    options = SourceOptions.of(given)
    if not options.decode:
        return None
    from duolog.connector.source.decoding import settle_value_columns

    return settle_value_columns(options)


def read_columns(given: Mapping[str, object], values: ValueColumns | None) -> str:
    """The columns as SQL writes them. Mistakes in the options are found here."""
    columns = _columns(SourceOptions.of(given))
    return columns.ddl() if values is None else columns.ddl(values.sql)


def batch_reader(
    given: Mapping[str, object], values: ValueColumns | None, schema: StructType
) -> BatchReader:
    from duolog.connector.source.readers import BatchReader

    options = SourceOptions.of(given, streaming=False)
    return BatchReader(options, _task_plan(options, values, schema))


def stream_reader(
    given: Mapping[str, object], values: ValueColumns | None, schema: StructType
) -> StreamReader:
    from duolog.connector.source.readers import StreamReader

    options = SourceOptions.of(given, streaming=True)
    return StreamReader(options, _task_plan(options, values, schema))


def _task_plan(options: SourceOptions, values: ValueColumns | None, schema: StructType) -> TaskPlan:
    from duolog.connector.source.readers import TaskPlan

    columns = _columns(options)
    if schema.names != columns.names or options.decode != (values is not None):
        raise InvalidSetting(
            f"A log has its own columns ({', '.join(columns.names)}), as Spark's Kafka source has. "
            "Leave out schema(...)."
        )
    return TaskPlan(options.place, columns, options.fail_on_data_loss, values, options.skip_damaged)


def _columns(options: SourceOptions) -> Columns:
    return Columns(headers=options.include_headers, change=options.include_change)
