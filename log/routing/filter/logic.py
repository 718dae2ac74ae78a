"""Comparisons and what joins them, with NULL as the third truth value.

A part whose values decide whether it can be calculated (`a / b > 2`) is only run on rows that the
parts beside it leave open, whatever their order: `b <> 0 AND a / b > 2` never divides by zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from duolog.log.routing.filter import steps, strings
from duolog.log.routing.filter.coerce import coerce, named, together
from duolog.log.routing.filter.kinds import BOOLEAN, NULL, Kind, Type, kind_of
from duolog.log.routing.filter.mistake import Mistake
from duolog.log.routing.filter.steps import Array, Rows, Step, Values, count, scatter
from duolog.log.routing.filter.tree import (
    And,
    Between,
    Comparison,
    ComparisonOp,
    In,
    Is,
    Like,
    Node,
    Not,
    Operation,
    Or,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Kernel = Callable[[Values, Values], Values]

# By hash; floats are compared one by one, since -0.0 equals 0.0 and NaN itself.
_LOOKED_UP = frozenset(Kind) - {Kind.FLOAT, Kind.UNKNOWN, Kind.NULL, Kind.OTHER}
_OPERATIONS = ("insert", "update", "delete", "read")


def boolean(part: Step, what: str) -> Step:
    """The part, if it is a boolean or could be one."""
    if kind_of(part.type) not in (Kind.BOOLEAN, Kind.NULL, Kind.UNKNOWN):
        raise Mistake(part.node, f"{what} needs a condition, and {named(part)} is none.")
    return coerce(part, BOOLEAN)


def negation(node: Not, part: Step) -> Step:
    return steps.step(node, BOOLEAN, [boolean(part, "NOT")], pc.invert)


def junction(node: And | Or, parts: Sequence[Step]) -> Step:
    """All or any of the parts."""
    every = isinstance(node, And)
    tests = [boolean(part, "AND" if every else "OR") for part in parts]
    return _joined(node, tests, every=every)


def _joined(node: Node, tests: Sequence[Step], *, every: bool) -> Step:
    join = pc.and_kleene if every else pc.or_kleene
    first, *rest = sorted(tests, key=lambda test: test.may_fail)

    def run(rows: Rows) -> Array:
        result = first.whole(rows)
        for test in rest:
            if not test.may_fail:
                result = join(result, test.run(rows))
                continue
            undecided = pc.fill_null(result if every else pc.invert(result), True)
            if count(undecided):
                held_bytes = rows.room.held_bytes
                found = test.whole(rows.where(undecided))
                rows.room.replace(node, held_bytes, found)
                result = join(result, scatter(found, undecided))
        return result

    return Step(node, BOOLEAN, run, any(test.may_fail for test in tests))


def comparison(node: Comparison, left: Step, right: Step) -> Step:
    """left = right, and the like."""
    return _compared(node, node.op, left, right)


def match(node: Node, operand: Step, value: Step) -> Step:
    """operand = value, in a CASE that compares; a mistake is that of `node`."""
    equal = _compared(node, "=", operand, value)
    if not value.may_fail:
        return equal
    # NULL matches nothing, so the value is not needed there.
    known = steps.step(node, BOOLEAN, [operand], pc.is_valid, whole=True)
    return _joined(node, [known, equal], every=True)


def between(node: Between, operand: Step, low: Step, high: Step) -> Step:
    """low <= operand AND operand <= high"""
    tests = [_compared(node, ">=", operand, low), _compared(node, "<=", operand, high)]
    return _joined(node, tests, every=True)


def membership(node: In, operand: Step, options: Sequence[Step]) -> Step:
    """operand = option, for any of the options."""
    _check_operations(operand, *options)
    (value, *among), type_ = together([operand, *options])
    constants = [option.constant for option in among]
    if kind_of(type_) in _LOOKED_UP and all(each is not None for each in constants):
        known = pa.array(constants, type_)
        return steps.step(node, BOOLEAN, [value], _lookup(known), whole=True)
    if type_ == NULL:
        return steps.nothing(node, BOOLEAN)
    equal = comparator("=", type_)
    tests = [steps.step(node, BOOLEAN, [value, option], equal) for option in among]
    return _joined(node, tests, every=False)


def likeness(node: Like, operand: Step, pattern: Step) -> Step:
    """operand LIKE pattern"""
    for part in (operand, pattern):
        if kind_of(part.type) not in (Kind.TEXT, Kind.NULL, Kind.UNKNOWN):
            raise Mistake(part.node, f"LIKE needs texts, and {named(part)} is none.")
    if pattern.constant is None:
        raise Mistake(pattern.node, "The pattern must be a text in quotes, not calculated.")
    if NULL in (operand.type, pattern.type):
        return steps.nothing(node, BOOLEAN)
    test = strings.like(pattern.constant.as_py(), node.escape, ignore_case=node.ignore_case)
    return steps.step(node, BOOLEAN, [operand], test, whole=True)


def is_test(node: Is, part: Step) -> Step:
    """part IS NULL, TRUE or FALSE: never NULL itself."""
    if node.test == "NULL":
        return steps.step(node, BOOLEAN, [part], pc.is_null, whole=True)
    tested = boolean(part, f"IS {node.test}")

    def run(values: Array) -> Array:
        return pc.fill_null(values if node.test == "TRUE" else pc.invert(values), False)

    return steps.step(node, BOOLEAN, [tested], run, whole=True)


def comparator(op: ComparisonOp, type_: Type) -> Kernel:
    """The kernel that compares two columns of this type."""
    if op in ("IS DISTINCT FROM", "IS NOT DISTINCT FROM"):
        equal = comparator("=", type_)

        def same(left: Values, right: Values) -> Values:
            both_null = pc.and_(pc.is_null(left), pc.is_null(right))
            return pc.or_(pc.fill_null(equal(left, right), False), both_null)

        return same if "NOT" in op else lambda left, right: pc.invert(same(left, right))
    return (_FLOATS if kind_of(type_) is Kind.FLOAT else _PLAIN)[op]


def _compared(node: Node, op: ComparisonOp, left: Step, right: Step) -> Step:
    _check_operations(left, right)
    parts, type_ = together([left, right], node)
    if type_ == NULL:
        parts = [steps.nothing(part.node, BOOLEAN) for part in parts]
    return steps.step(node, BOOLEAN, parts, comparator(op, type_))


def _check_operations(*parts: Step) -> None:
    """A misspelt operation would only ever be unequal to all there are."""
    if not any(isinstance(part.node, Operation) for part in parts):
        return
    for part in parts:
        word = None if part.constant is None else part.constant.as_py()
        if isinstance(word, str) and word not in _OPERATIONS:
            listed = ", ".join(f"'{each}'" for each in _OPERATIONS)
            raise Mistake(part.node, f"`op` is never '{word}': it is one of {listed}.")


def _lookup(known: Array) -> Callable[[Array], Array]:
    null = pa.scalar(None, BOOLEAN)
    values = known.drop_null()
    missing = null if known.null_count else pa.scalar(False)

    def run(column: Array) -> Array:
        found = pc.if_else(pc.is_in(column, value_set=values), True, missing)
        return pc.if_else(column.is_valid(), found, null)

    return run


def _nan_equal(left: Values, right: Values) -> Values:
    return pc.or_(pc.equal(left, right), pc.and_(pc.is_nan(left), pc.is_nan(right)))


def _nan_less(left: Values, right: Values) -> Values:
    return pc.or_(pc.less(left, right), pc.and_(pc.invert(pc.is_nan(left)), pc.is_nan(right)))


_PLAIN: dict[str, Kernel] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
# NaN equals itself and is greater than all numbers.
_FLOATS: dict[str, Kernel] = {
    "=": _nan_equal,
    "<>": lambda left, right: pc.invert(_nan_equal(left, right)),
    "<": _nan_less,
    "<=": lambda left, right: pc.invert(_nan_less(right, left)),
    ">": lambda left, right: _nan_less(right, left),
    ">=": lambda left, right: pc.invert(_nan_less(left, right)),
}
