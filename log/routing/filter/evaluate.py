"""Runs a filter over a batch of changes: whole columns, in a Spark task or anywhere else.

What a filter means is what DataFusion makes of the same SQL, with these exceptions:
- an integer or a decimal that grows too large is an error, where DataFusion wraps integers around;
  8 to 32 bit integers are calculated in 64 bits
- a part that cannot be calculated is no error in rows that the rest of an AND, OR, CASE or
  COALESCE decides; DataFusion may look at it or not, depending on the other rows
- all NaN are equal, whatever their sign, and -0.0 equals 0.0 in IN and CASE too
- a decimal and a float in one CASE, COALESCE or NULLIF are floats
- ESCAPE is supported, and casts that would truncate or depend on an engine's habits are not
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


def _short(node: Node) -> str:
    sql = to_sql(node)
    return sql if len(sql) <= _SHOWN else sql[: _SHOWN - 1] + "…"
