"""CASE, COALESCE and NULLIF. A branch is calculated only for the rows that take it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from duolog.log.routing.filter import steps
from duolog.log.routing.filter.coerce import together
from duolog.log.routing.filter.kinds import NULL
from duolog.log.routing.filter.logic import boolean, comparator
from duolog.log.routing.filter.steps import Array, Pieces, Rows, Step, Values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duolog.log.routing.filter.tree import Call, Case


def case(node: Case, conditions: Sequence[Step], results: Sequence[Step], default: Step) -> Step:
    """The result of the first condition that is true, else the default."""
    tests = [boolean(condition, "WHEN") for condition in conditions]
    (*chosen, otherwise), type_ = together([*results, default])

    def run(rows: Rows) -> Array:
        pieces = Pieces(rows)
        for test, result in zip(tests, chosen, strict=True):
            held_bytes = rows.room.held_bytes
            hit = pc.fill_null(test.whole(pieces.open), False)
            values = result.whole(pieces.open.where(hit))
            rows.room.replace(node, held_bytes, values)
            pieces.settle(hit, values)
        pieces.settle_rest(otherwise.whole(pieces.open))
        return pieces.column()

    fails = any(part.may_fail for part in (*tests, *chosen, otherwise))
    return Step(node, type_, run, fails)


def coalesce(node: Call, parts: Sequence[Step]) -> Step:
    """The first of the parts that is not NULL."""
    options, type_ = together(parts)

    def run(rows: Rows) -> Array:
        pieces = Pieces(rows)
        for option in options:
            held_bytes = rows.room.held_bytes
            values = option.whole(pieces.open)
            known, present = values.is_valid(), values.drop_null()
            rows.room.replace(node, held_bytes, present)
            pieces.settle(known, present)
        pieces.settle_rest(pa.nulls(pieces.open.count, type_))
        return pieces.column()

    return Step(node, type_, run, any(part.may_fail for part in options))


def nullif(node: Call, parts: Sequence[Step]) -> Step:
    """The first part, or NULL where it equals the second."""
    both, type_ = together(parts, node)
    if type_ == NULL:
        return steps.nothing(node, NULL)
    equal = comparator("=", type_)

    def run(left: Values, right: Values) -> Values:
        same = pc.fill_null(equal(left, right), False)
        return pc.if_else(same, pa.scalar(None, type_), left)

    return steps.step(node, type_, both, run, whole=True)
