"""Checks a filter's tree against the columns' types, and makes the steps that run it."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa

from duolog.log.routing.filter import branches, casts, functions, logic, numbers, steps
from duolog.log.routing.filter.columns import find
from duolog.log.routing.filter.kinds import DOUBLE, INTEGER, NULL, TEXT, decimal, working_type
from duolog.log.routing.filter.steps import Step
from duolog.log.routing.filter.tree import (
    And,
    Arithmetic,
    Between,
    Call,
    Case,
    Cast,
    Column,
    Comparison,
    Constant,
    In,
    Is,
    Like,
    Negative,
    Node,
    Not,
    Operation,
    Or,
    Scalar,
)

_MAX_INTEGER = 2**63


def bind_filter(node: Node, row: pa.Schema | None, before: pa.Schema | None) -> Step:
    """The steps of a whole filter, whose result is a boolean. Raises Mistake.

    Without schemas, what depends on columns is not checked and the steps cannot be run.
    """
    return logic.boolean(_Binder(row, before).bind(node), "A filter")


def bind_value(node: Node, row: pa.Schema | None) -> Step:
    """The steps of an expression over a row, whatever its result is. Raises Mistake."""
    return _Binder(row, row).bind(node)


class _Binder:
    def __init__(self, row: pa.Schema | None, before: pa.Schema | None) -> None:
        self._schemas = {"row": row, "after": row, "before": before}

    def bind(self, node: Node) -> Step:
        match node:
            case Constant(value):
                return steps.constant(node, _scalar(value))
            case Column():
                return self._column(node)
            case Operation():
                return Step(node, TEXT, lambda rows: rows.column(node))
            case Not(operand):
                return logic.negation(node, self.bind(operand))
            case And(operands) | Or(operands):
                return logic.junction(node, self._all(operands))
            case Comparison(_, left, right):
                return logic.comparison(node, self.bind(left), self.bind(right))
            case In(operand, options):
                return logic.membership(node, self.bind(operand), self._all(options))
            case Between(operand, low, high):
                return logic.between(node, *self._all((operand, low, high)))
            case Like(operand, pattern):
                return logic.likeness(node, self.bind(operand), self.bind(pattern))
            case Is(operand):
                return logic.is_test(node, self.bind(operand))
            case Arithmetic("||", left, right):
                return functions.joined(node, self.bind(left), self.bind(right))
            case Arithmetic(_, left, right):
                return numbers.arithmetic(node, self.bind(left), self.bind(right))
            case Negative(operand):
                return numbers.negative(node, self.bind(operand))
            case Case():
                return self._case(node)
            case Cast(operand):
                return casts.cast(node, self.bind(operand))
            case Call(_, arguments):
                return functions.call(node, self._all(arguments))

    def _all(self, nodes: tuple[Node, ...]) -> list[Step]:
        return [self.bind(each) for each in nodes]

    def _column(self, node: Column) -> Step:
        schema = self._schemas[node.side]
        if schema is None:
            return steps.unknown(node)
        _, type_ = find(node, schema)
        return Step(node, working_type(type_), lambda rows: rows.column(node))

    def _case(self, node: Case) -> Step:
        conditions = [when.condition for when in node.whens]
        tests = self._all(tuple(conditions))
        if node.operand is not None:
            operand = self.bind(node.operand)
            tests = [logic.match(test.node, operand, test) for test in tests]
        results = self._all(tuple(when.result for when in node.whens))
        default = Constant(None) if node.default is None else node.default
        return branches.case(node, tests, results, self.bind(default))


def _scalar(value: Scalar) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        if -_MAX_INTEGER <= value < _MAX_INTEGER:
            return pa.scalar(value, INTEGER)
        return pa.scalar(Decimal(value), decimal(len(str(abs(value))), 0))
    type_ = {type(None): NULL, bool: pa.bool_(), float: DOUBLE, str: TEXT}[type(value)]
    return pa.scalar(value, type_)
