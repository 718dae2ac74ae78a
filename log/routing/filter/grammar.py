"""Turns a filter's words into its tree. What binds tighter follows DataFusion and PostgreSQL.

Parsers of all of SQL take in more than a filter means, and forget where its literals stood.
Comparisons in a row (`a = b IS NULL`, `a < b < c`) are read differently by different engines:
they are refused until parentheses say what is meant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from duolog.log.routing.filter import refused
from duolog.log.routing.filter.calls import call, type_name, typed_text
from duolog.log.routing.filter.reader import Level, Reader, shown
from duolog.log.routing.filter.tree import (
    MAX_DEPTH,
    And,
    Arithmetic,
    ArithmeticOp,
    Between,
    Case,
    Cast,
    Column,
    Comparison,
    ComparisonOp,
    Constant,
    In,
    Is,
    Like,
    Negative,
    Node,
    Not,
    Operation,
    Or,
    Side,
    Test,
    When,
)
from duolog.log.routing.filter.words import RESERVED

if TYPE_CHECKING:
    from duolog.log.routing.filter.words import Word


_COMPARISONS: dict[str, ComparisonOp] = {
    "=": "=",
    "<>": "<>",
    "!=": "<>",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
}
_LEVELS = {
    "OR": Level.OR,
    "AND": Level.AND,
    **dict.fromkeys(_COMPARISONS, Level.COMPARISON),
    **dict.fromkeys(("IS", "NOT", "IN", "LIKE", "ILIKE", "BETWEEN"), Level.COMPARISON),
    **dict.fromkeys(("+", "-", "||"), Level.SUM),
    **dict.fromkeys(("*", "/", "%"), Level.PRODUCT),
    "::": Level.CAST,
}
_CONSTANTS = {"NULL": None, "TRUE": True, "FALSE": False}
_QUERIES = frozenset(("SELECT", "WITH", "EXISTS"))
_MAX_INTEGER_DIGITS = 38  # beyond 64 bits an integer is a decimal without places


def parse(reader: Reader) -> Node:
    """The tree of the whole text."""
    first = reader.next
    if first.kind == "end":
        raise reader.error(first, "The filter is empty: leave it out, or say what to keep.")
    node = _Grammar(reader).expression()
    last = reader.next
    if last.kind != "end":
        raise reader.error(last, f"{shown(last)} has no place here.")
    return node


def parse_list(reader: Reader) -> tuple[Node, ...]:
    """The trees of a list with commas between, also when it stands in parentheses."""
    first = reader.next
    if first.kind == "end":
        raise reader.error(first, "The list is empty: name a column.")
    enclosed = reader.is_enclosed and reader.expect("(")
    grammar = _Grammar(reader)
    nodes = tuple(grammar.expression() for _ in reader.commas())
    if enclosed:
        reader.expect(")")
    last = reader.next
    if last.kind != "end":
        raise reader.error(last, f"{shown(last)} has no place here.")
    return nodes


class _Grammar:
    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self._nested = 0

    def expression(self, level: Level = Level.OR) -> Node:
        """What follows, up to a word that holds less tightly than `level`."""
        self._nested += 1
        if self._nested > MAX_DEPTH:
            raise self.reader.too_deep(self.reader.next)
        node = self._start(level)
        held = self._level()
        while held and held >= level:
            node = self._continue(node, held)
            last, held = held, self._level()
            if held == last == Level.COMPARISON:
                raise self.reader.error(
                    self.reader.next, "Put one of these two comparisons into parentheses."
                )
        self._nested -= 1
        return node

    def _level(self) -> Level:
        return _LEVELS.get(self.reader.next.keyword, Level.NONE)

    def _start(self, level: Level) -> Node:
        word = self.reader.take()
        match word.kind, word.keyword:
            case _, "NOT":
                if level > Level.NOT:
                    raise self.reader.error(word, "Put NOT and what it negates into parentheses.")
                return self.reader.place(Not(self.expression(Level.NOT)), word)
            case _, "-":
                if self.reader.next.kind == "number":
                    return self._number(self.reader.take(), word)
                return self.reader.place(Negative(self.expression(Level.SIGN)), word)
            case _, "(":
                node = self.expression()
                if self.reader.next.keyword == ",":
                    raise self.reader.error(
                        self.reader.next, "Rows of several values cannot be compared."
                    )
                self.reader.expect(")")
                return node
            case _, "*":
                raise self.reader.error(word, "`*` stands for no value: name a column.")
            case "number", _:
                return self._number(word, word)
            case "text", _:
                return self.reader.place(Constant(word.text), word)
            case "name" | "quoted", _:
                return self._name(word)
        raise self.reader.error(word, f"Expected a value here, found {shown(word)}.")

    def _continue(self, left: Node, level: Level) -> Node:
        word = self.reader.take()
        match level:
            case Level.OR | Level.AND:
                operands = [left, self.expression(Level(level + 1))]
                while self.reader.accept(word.keyword):
                    operands.append(self.expression(Level(level + 1)))
                kind = Or if level is Level.OR else And
                return self.reader.place(kind(tuple(operands)), word)
            case Level.COMPARISON:
                return self._comparison(left, word)
            case Level.CAST:
                return self.reader.place(Cast(left, type_name(self.reader), or_null=False), word)
        op = cast("ArithmeticOp", word.keyword)
        right = self.expression(Level(level + 1))
        return self.reader.place(Arithmetic(op, left, right), word)

    def _comparison(self, left: Node, word: Word) -> Node:
        reader = self.reader
        match word.keyword:
            case "NOT":
                inner = reader.next
                if inner.keyword not in ("IN", "LIKE", "ILIKE", "BETWEEN"):
                    raise reader.error(
                        inner, f"Expected IN, LIKE or BETWEEN here, found {shown(inner)}."
                    )
                return reader.place(Not(self._comparison(left, reader.take())), word)
            case "IN":
                return reader.place(In(left, self._options()), word)
            case "BETWEEN":
                low = self.expression(Level.SUM)
                reader.expect("AND")
                return reader.place(Between(left, low, self.expression(Level.SUM)), word)
            case "LIKE" | "ILIKE":
                pattern = self.expression(Level.SUM)
                ignore_case = word.keyword == "ILIKE"
                return reader.place(Like(left, pattern, self._escape(), ignore_case), word)
            case "IS":
                return self._is(left, word)
        right = self.expression(Level.SUM)
        return reader.place(Comparison(_COMPARISONS[word.keyword], left, right), word)

    def _options(self) -> tuple[Node, ...]:
        self.reader.expect("(")
        if self.reader.next.keyword == ")":
            raise self.reader.error(self.reader.next, "IN needs at least one value.")
        options = tuple(self.expression() for _ in self.reader.commas())
        self.reader.expect(")")
        return options

    def _escape(self) -> str | None:
        if not self.reader.accept("ESCAPE"):
            return None
        word = self.reader.take()
        if word.kind != "text" or len(word.text) != 1:
            raise self.reader.error(word, "ESCAPE needs one character in quotes.")
        return word.text

    def _is(self, left: Node, word: Word) -> Node:
        negated = self.reader.accept("NOT")
        test = self.reader.take()
        if test.keyword == "DISTINCT":
            self.reader.expect("FROM")
            op: ComparisonOp = "IS NOT DISTINCT FROM" if negated else "IS DISTINCT FROM"
            return self.reader.place(Comparison(op, left, self.expression(Level.SUM)), word)
        if test.keyword not in _CONSTANTS:
            raise self.reader.error(
                test, f"Expected NULL, TRUE, FALSE or DISTINCT FROM here, found {shown(test)}."
            )
        node = self.reader.place(Is(left, cast("Test", test.keyword)), word)
        return self.reader.place(Not(node), word) if negated else node

    def _number(self, word: Word, start: Word) -> Node:
        sign = -1 if start is not word else 1
        if word.text.isdigit():
            digits = word.text.lstrip("0")
            if len(digits) > _MAX_INTEGER_DIGITS:
                raise self.reader.error(word, f"An integer may have {_MAX_INTEGER_DIGITS} digits.")
            return self.reader.place(Constant(sign * int(digits or "0")), start)
        number = float(word.text)
        if number == float("inf"):
            raise self.reader.error(word, "This number is too large for a double.")
        return self.reader.place(Constant(sign * number), start)

    def _name(self, word: Word) -> Node:
        reader = self.reader
        if word.keyword in _CONSTANTS:
            return reader.place(Constant(_CONSTANTS[word.keyword]), word)
        if word.keyword == "CASE":
            return self._case(word)
        if word.keyword in _QUERIES:
            raise reader.error(word, "No subqueries: a filter sees one change at a time.")
        if word.keyword in RESERVED:
            raise reader.error(word, f"Expected a value here, found {shown(word)}.")
        if word.kind == "name" and reader.next.kind == "text":
            return typed_text(reader, word)
        if word.kind == "name" and reader.next.keyword == "(":
            return call(reader, word, self.expression)
        if word.keyword.lower() in refused.BARE_CALLS:
            raise reader.error(word, refused.reason(word.text, ()))
        return self._column(word)

    def _column(self, word: Word) -> Node:
        reader = self.reader
        path = [word.text]
        while reader.accept("."):
            part = reader.take()
            if part.kind not in ("name", "quoted"):
                raise reader.error(part, f"Expected a column's name here, found {shown(part)}.")
            path.append(part.text)
        if word.keyword == "OP" and len(path) == 1:
            return reader.place(Operation(), word)
        if word.keyword in ("BEFORE", "AFTER") and len(path) > 1:
            side = cast("Side", word.keyword.lower())
            return reader.place(Column(side, tuple(path[1:])), word)
        return reader.place(Column("row", tuple(path)), word)

    def _case(self, word: Word) -> Node:
        reader = self.reader
        operand = None if reader.next.keyword == "WHEN" else self.expression()
        whens: list[When] = []
        while when := reader.accept("WHEN") if whens else reader.expect("WHEN"):
            condition = self.expression()
            reader.expect("THEN")
            whens.append(reader.place(When(condition, self.expression()), when))
        default = self.expression() if reader.accept("ELSE") else None
        reader.expect("END")
        return reader.place(Case(operand, tuple(whens), default), word)
