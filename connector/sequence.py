"""`sequenceBy`: the rows of each key in the order that columns of them say, whatever the tasks.

Within one write, rows of one key come in rising order, null before all; rows that are equal in all
these columns come in any order. So that one task has all rows of a key, they are brought together
by it and sorted there, by Spark, which can do that with more rows than memory holds. A small batch
is sorted on the driver. A data source cannot ask Spark for this, so it refuses the option.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from duolog.connector.feeds.appended import AppendFeed
from duolog.errors import InvalidRows, InvalidSetting
from duolog.log.routing.kinds import is_binary, is_string, without_view

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from duolog.connector.feeds import Feed


def no_sequence_here() -> InvalidSetting:
    """Of the data source."""
    return InvalidSetting(
        "Option 'sequenceBy' needs the rows of a key in one task, which a data source cannot ask "
        "Spark for. Write with duolog.connector.write_batch or write_stream, which take the same "
        "options."
    )


def check_sequence_of(feed: Feed, columns: Sequence[str]) -> None:
    """Refuse an order for rows of a table that cannot be had."""
    if not isinstance(feed, AppendFeed):
        raise InvalidSetting(
            f"Table '{feed.table}' comes as a change feed ({feed.found}), which has an order of "
            "its own. Leave 'sequenceBy' out, or set changes=append if these are plain rows."
        )
    if not feed.key_columns:
        raise InvalidSetting(
            f"Option 'sequenceBy' orders the rows of each key, and table '{feed.table}' has none. "
            "Set keyColumns too."
        )
    check_sequence(feed.rows, feed.key_columns, columns)


def check_sequence(schema: pa.Schema, key: Sequence[str], columns: Sequence[str]) -> None:
    """Refuse columns that are not there or that do not put rows in one order."""
    for name in (*key, *columns):
        if schema.names.count(name) != 1:
            many = "more than one" if name in schema.names else "no"
            raise InvalidRows(
                f"Option 'sequenceBy' needs the columns {', '.join((*key, *columns))}, and the "
                f"rows have {many} column '{name}' (they have {', '.join(schema.names)})."
            )
    for name in columns:
        kind = schema.field(name).type
        if not _has_order(kind):
            raise InvalidRows(
                f"Column '{name}' is of type {kind}, by which rows cannot be put in order. Name "
                "whole numbers, decimals, dates, timestamps, text or bytes in 'sequenceBy'."
            )


def in_sequence(df: DataFrame, key: Sequence[str], columns: Sequence[str]) -> DataFrame:
    """The rows of each key in one task, sorted."""
    together = df.repartition(*(df[quoted(name)] for name in key))
    order = [together[quoted(name)].asc_nulls_first() for name in columns]
    return together.sortWithinPartitions(*order)


def sorted_rows(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Rows on the driver, sorted as Spark would."""
    keys: dict[str, pa.ChunkedArray] = {}
    for number, name in enumerate(columns):  # what is known after what is null
        keys[f"known {number}"] = pc.is_valid(rows.column(name)).cast(pa.int8())
        keys[f"value {number}"] = rows.column(name)
    order = pc.sort_indices(pa.table(keys), sort_keys=[(key, "ascending") for key in keys])
    return rows.take(order)


def quoted(name: str) -> str:
    """A column's name as Spark takes it, whatever is in it."""
    escaped = name.replace("`", "``")
    return f"`{escaped}`"


def _has_order(kind: pa.DataType) -> bool:
    kind = without_view(kind)
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_date(kind)
        or pa.types.is_timestamp(kind)
        or is_string(kind)
        or is_binary(kind)
    )
