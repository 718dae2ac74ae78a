"""Which span of each topic a plan of DataFusion needs.

DataFusion offers a table made in Python only to apply conditions itself, exactly, and it would
have to do so with pyarrow, which answers otherwise for NaN, for zeros with a sign and for NOT IN
over nulls. So each table lies behind a LIMIT that is never reached: conditions gather above it,
DataFusion applies them, and what they say of partitions, offsets and times is read here.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from duolog.sql.select.span import EVERYTHING, FLIPPED, Span, span_of

if TYPE_CHECKING:
    from collections.abc import Mapping

NEVER_REACHED = 2**63 - 1
_MOST_NESTED = 200


def spans_of(plan: Any, scans: Mapping[str, int]) -> dict[str, Span]:
    """What each table has to read, by its name; `scans` says how often each is read.

    A table that is read in a place that the plan does not show (a scalar subquery) is read whole.
    """
    found: dict[str, list[Span]] = {name: [] for name in scans}
    waiting = [plan]
    while waiting:
        plan = waiting.pop()
        span = EVERYTHING
        while type(node := plan.to_variant()).__name__ == "Filter":
            span &= _span(node.predicate(), _MOST_NESTED)
            (plan,) = plan.inputs()
        if type(node).__name__ == "Limit" and _is_barrier(node):
            (plan,) = plan.inputs()
            node = plan.to_variant()
        else:
            span = EVERYTHING
        if type(node).__name__ == "TableScan" and node.table_name() in found:
            found[node.table_name()].append(span)
        waiting += plan.inputs()
    return {
        name: reduce(Span.__or__, spans) if spans and len(spans) == scans[name] else EVERYTHING
        for name, spans in found.items()
    }


def _is_barrier(limit: Any) -> bool:
    return _number(limit.skip()) in (None, 0) and _number(limit.fetch()) == NEVER_REACHED


def _span(condition: Any, depth: int) -> Span:
    """Where a condition can be true; everything, where that is not seen."""
    if not depth:
        return EVERYTHING
    match condition.variant_name():
        case "BinaryExpr":
            return _of_two(condition, depth)
        case "InList":
            return _of_list(condition)
    return EVERYTHING


def _of_two(condition: Any, depth: int) -> Span:
    op = condition.rex_call_operator()
    left, right = condition.rex_call_operands()
    if op == "AND":
        return _span(left, depth - 1) & _span(right, depth - 1)
    if op == "OR":
        return _span(left, depth - 1) | _span(right, depth - 1)
    if left.variant_name() == "Literal":
        left, right, op = right, left, FLIPPED.get(op, "")
    column, value = _column(left), _number(right)
    return EVERYTHING if column is None or value is None else span_of(column, op, value)


def _of_list(condition: Any) -> Span:
    if condition.to_variant().negated():
        return EVERYTHING
    operand, *options = condition.rex_call_operands()
    column, values = _column(operand), [_number(each) for each in options]
    spans = [span_of(column, "=", each) for each in values if column and each is not None]
    return reduce(Span.__or__, spans) if spans and len(spans) == len(values) else EVERYTHING


def _column(expression: Any) -> str | None:
    if expression.variant_name() != "Column":
        return None
    name: str = expression.to_variant().name()
    return name


def _number(expression: Any) -> int | None:
    """A whole number, or a time in milliseconds."""
    if expression is None or expression.variant_name() != "Literal":
        return None
    scalar = expression.python_value()
    if not isinstance(scalar, pa.Scalar):
        return scalar if type(scalar) is int else None
    number: int | None = None
    if pa.types.is_integer(scalar.type):
        number = scalar.as_py()
    elif pa.types.is_timestamp(scalar.type) and scalar.type.unit == "ms":
        number = scalar.value
    return number
