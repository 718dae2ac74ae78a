"""A tree as SQL again, for messages. It parses back to the same tree."""

from __future__ import annotations

import re

from duolog.log.routing.filter.refused import BARE_CALLS
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
from duolog.log.routing.filter.words import RESERVED

_PLAIN_NAME = re.compile(r"[^\W\d]\w*")
_QUOTED_NAMES = {*(each.lower() for each in RESERVED), *BARE_CALLS, "op", "before", "after"}


def to_sql(node: Node) -> str:
    """The filter as one would type it."""
    match node:
        case Constant(value):
            return literal(value)
        case Column(side, path):
            first, *fields = path
            names = [_name(first, quoted=side == "row" and first.lower() in _QUOTED_NAMES)]
            names += [_name(each, quoted=False) for each in fields]
            return ".".join(names if side == "row" else [side, *names])
        case Operation():
            return "op"
        case Not(In() | Between() | Like() | Is() as predicate):
            return _predicate(predicate, negated=True)
        case Not(operand):
            return f"NOT {_operand(operand)}"
        case And(operands):
            return " AND ".join(_operand(each) for each in operands)
        case Or(operands):
            return " OR ".join(_operand(each) for each in operands)
        case Comparison(op, left, right) | Arithmetic(op, left, right):
            return f"{_operand(left)} {op} {_operand(right)}"
        case Negative(operand):
            inner = to_sql(operand)
            return f"-{inner}" if isinstance(operand, Column | Operation | Call) else f"-({inner})"
        case In() | Between() | Like() | Is():
            return _predicate(node, negated=False)
        case Case():
            return _case(node)
        case Cast(Constant(str() as text), to, False) if to.word in ("date", "timestamp"):
            return f"{to.word.upper()} {literal(text)}"
        case Cast(operand, to, or_null):
            return f"{'TRY_CAST' if or_null else 'CAST'}({to_sql(operand)} AS {to})"
        case Call("extract", (Constant(unit), operand)):
            return f"extract({unit} FROM {to_sql(operand)})"
        case Call(function, arguments):
            return f"{function}({', '.join(to_sql(each) for each in arguments)})"


def _predicate(node: In | Between | Like | Is, *, negated: bool) -> str:
    left, no = _operand(node.operand), "NOT " if negated else ""
    match node:
        case In(_, options):
            return f"{left} {no}IN ({', '.join(to_sql(each) for each in options)})"
        case Between(_, low, high):
            return f"{left} {no}BETWEEN {_operand(low)} AND {_operand(high)}"
        case Like(_, pattern, escape, ignore_case):
            end = "" if escape is None else f" ESCAPE {literal(escape)}"
            return f"{left} {no}{'ILIKE' if ignore_case else 'LIKE'} {_operand(pattern)}{end}"
        case Is(_, test):
            return f"{left} IS {no}{test}"


def _case(node: Case) -> str:
    parts = ["CASE"] if node.operand is None else ["CASE", to_sql(node.operand)]
    parts += [f"WHEN {to_sql(w.condition)} THEN {to_sql(w.result)}" for w in node.whens]
    if node.default is not None:
        parts.append(f"ELSE {to_sql(node.default)}")
    return " ".join((*parts, "END"))


def _operand(node: Node) -> str:
    alone = isinstance(node, Constant | Column | Operation | Call | Cast | Case)
    return to_sql(node) if alone else f"({to_sql(node)})"


def literal(value: Scalar) -> str:
    """A value as SQL has it."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            return "'" + value.replace("'", "''") + "'"
    return repr(value)


def _name(name: str, *, quoted: bool) -> str:
    if quoted or not _PLAIN_NAME.fullmatch(name):
        return '"' + name.replace('"', '""') + '"'
    return name
