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
- LIKE takes any ESCAPE character. A text is not compared with a number, nor cast from a float or a
  timestamp; dates in texts are written YYYY-MM-DD.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from duolog.errors import InvalidRows
from duolog.log.routing.filter.bind import bind_filter
from duolog.log.routing.filter.columns import Change
from duolog.log.routing.filter.mistake import Mistake
from duolog.log.routing.filter.steps import Rows
from duolog.log.routing.filter.text import to_sql

if TYPE_CHECKING:
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
    rows = Rows(row.num_rows, Change(row, before, op).load)
    try:
        step = bind_filter(node, row.schema, row.schema if before is None else before.schema)
        kept = step.whole(rows)
    except Mistake as mistake:
        raise InvalidRows(
            f"The filter `{_short(node)}` cannot be applied to these rows. In "
            f"`{_short(mistake.node)}`: {mistake.reason} Change the route's filter, or the rows."
        ) from mistake.__cause__
    return pc.fill_null(kept, False)


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
