"""Runs a filter over a batch of changes: whole columns, in a Spark task or anywhere else.

A filter means what DataFusion makes of the same SQL. Where the two differ:

- What is too large for 64 bits, or 38 digits, is an error; DataFusion wraps integers around.
  Integers of 8 to 32 bits are calculated in 64.
- What cannot be calculated is no error in rows that the rest of an AND, OR, BETWEEN, CASE or
  COALESCE decides, in whatever order these stand. In DataFusion it depends on the other rows.
- All NaN are equal, and -0.0 equals 0.0 everywhere; DataFusion tells a NaN's sign, and zeros
  apart in CASE and in long IN lists. A decimal that meets a float becomes a float; DataFusion
  rounds the float to 15 places when it compares them.
- A timestamp keeps its unit; DataFusion counts many in nanoseconds, which end in 1677 and 2262.
- A cast in a comparison is always made; DataFusion may compare without it, and then sees neither
  an error nor the NULL of a TRY_CAST.
- Texts that grow (`replace`, `concat`, `||`) are refused beyond a bound for each batch (room.py).
- LIKE takes any ESCAPE character. A text is not compared with a number, nor cast from a float or a
  timestamp; dates in texts are written YYYY-MM-DD.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from duolog.errors import InvalidRows
from duolog.log.routing.filter.bind import bind_filter, bind_value
from duolog.log.routing.filter.columns import Change
from duolog.log.routing.filter.mistake import Mistake
from duolog.log.routing.filter.room import room_for
from duolog.log.routing.filter.steps import Rows
from duolog.log.routing.filter.text import to_sql

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duolog.log.routing.filter.tree import Node

_SHOWN = 200  # characters of a filter in a message


def evaluate(
    node: Node, row: pa.RecordBatch, *, before: pa.RecordBatch | None, op: pa.Array
) -> pa.BooleanArray:
    """Which rows the filter keeps; where it is NULL, the answer is no.

    `row` holds the rows after the change, and for deletes the old ones; `before` the old rows, or
    nothing where these are not known: then `before.x` is NULL. `op` says insert, update, delete or
    read. Raises InvalidRows for columns that are missing or of the wrong type, and for values that
    cannot be calculated with.
    """
    _check_lengths(row, before, op)
    rows = Rows(row.num_rows, Change(row, before, op).load, room_for(row, before))
    with _mistakes_named("filter", node):
        step = bind_filter(node, row.schema, row.schema if before is None else before.schema)
        return pc.fill_null(step.whole(rows), False)


def value_type(node: Node, row: pa.Schema) -> pa.DataType:
    """The type of an expression's values, for rows with these columns."""
    with _mistakes_named("expression", node):
        return bind_value(node, row).type


def calculate(node: Node, row: pa.RecordBatch) -> pa.Array:
    """The value of an expression for each row. Raises InvalidRows as `evaluate` does."""
    change = Change(row, None, pa.nulls(row.num_rows, pa.string()))
    rows = Rows(row.num_rows, change.load, room_for(row))
    with _mistakes_named("expression", node):
        return bind_value(node, row.schema).whole(rows)


@contextmanager
def _mistakes_named(what: str, node: Node) -> Iterator[None]:
    try:
        yield
    except Mistake as mistake:
        raise InvalidRows(
            f"The {what} `{_short(node)}` cannot be applied to these rows. In "
            f"`{_short(mistake.node)}`: {mistake.reason} Change the route's {what}, or the rows."
        ) from mistake.__cause__


def _check_lengths(row: pa.RecordBatch, before: pa.RecordBatch | None, op: pa.Array) -> None:
    count = row.num_rows
    if len(op) != count:
        raise InvalidRows(f"There are {count} rows and {len(op)} operations: each row needs one.")
    if before is not None and before.num_rows != count:
        raise InvalidRows(
            f"There are {count} rows and {before.num_rows} old ones: give one for each, all NULL "
            "where there was none."
        )


def _short(node: Node) -> str:
    sql = to_sql(node)
    return sql if len(sql) <= _SHOWN else sql[: _SHOWN - 1] + "…"
