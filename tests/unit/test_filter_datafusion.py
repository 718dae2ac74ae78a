"""A filter answers what DataFusion answers to the same SQL: random conditions on random rows."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from datafusion import SessionConfig, SessionContext
from hypothesis import HealthCheck, given, note, settings

from duolog.errors import InvalidFilter, InvalidRows
from duolog.log.routing.filter.evaluate import evaluate
from duolog.log.routing.filter.parse import parse_filter
from tests.unit.filter_conditions import Expr, Rows, conditions

# Where a filter refuses to calculate though DataFusion has an answer.
STRICTER = (
    "beyond 64 bits",  # DataFusion wraps integers around
    "too many digits",  # a decimal of more than 38 digits
)
# Why a text in the filter itself is refused as a date, a timestamp or another cast, where a column
# with this text would be a matter of its rows.
UNREADABLE = ("TRY_CAST would make it NULL", "is no date:", "is no timestamp:", "names a zone")


@settings(max_examples=250, deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))
@given(conditions())
def test_answers_are_those_of_datafusion(case: tuple[Rows, Expr]) -> None:
    rows, condition = case
    note(f"filter: {condition.ours}\nDataFusion: {condition.theirs}")
    for name, column in rows.table().to_pydict().items():
        note(f"{name}: {column}")
    ours = ask_us(rows, condition.ours)
    note(f"ours: {ours}")
    if isinstance(ours, InvalidFilter):
        assert any(reason in ours.reason for reason in UNREADABLE)
        return
    answer = ask_datafusion(rows, condition.theirs)
    if isinstance(ours, InvalidRows):
        assert answer is None or any(reason in str(ours) for reason in STRICTER)
    else:
        assert answer in (None, ours)


def ask_us(rows: Rows, condition: str) -> list[bool] | InvalidFilter | InvalidRows:
    try:
        tree = parse_filter(condition, rows.row.schema).tree
        kept: list[bool] = evaluate(tree, rows.row, before=rows.before, op=rows.op).to_pylist()
    except (InvalidFilter, InvalidRows) as error:
        return error
    return kept


def ask_datafusion(rows: Rows, condition: str) -> list[bool] | None:
    """What DataFusion answers for each row; None if it refuses."""
    # The optimizer takes casts out of comparisons, and with them what does not fit (in version 55).
    context = SessionContext(SessionConfig().set("datafusion.optimizer.max_passes", "0"))
    context.register_record_batches("changes", [[rows.table()]])
    try:
        found = context.sql(f"SELECT {condition} AS kept FROM changes").collect()
    except Exception as error:
        note(f"DataFusion: {error}")
        return None
    kept = pa.Table.from_batches(found).column("kept").cast(pa.bool_())
    answers: list[bool] = pc.fill_null(kept, False).to_pylist()
    return answers
