"""A filter's tree keeps its meaning as JSON and as SQL, and refuses what it does not know."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duolog.errors import UnsupportedFormat
from duolog.log.routing.filter.calls import EXTRACTED
from duolog.log.routing.filter.grammar import parse
from duolog.log.routing.filter.reader import Reader
from duolog.log.routing.filter.text import to_sql
from duolog.log.routing.filter.tree import (
    MAX_DEPTH,
    VERSION,
    And,
    Arithmetic,
    ArithmeticOp,
    Between,
    Call,
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
    Test,
    TypeName,
    When,
    columns,
    from_json,
    to_json,
)

NAMES = st.one_of(
    st.sampled_from(["amount", "Odd Name", 'say "hi"', "größe", "op", "before", "select", "NULL"]),
    st.sampled_from(["current_date", "date", "order", "a.b", "1st", "case", "after", "x1"]),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5),
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
LEAVES: st.SearchStrategy[Node] = st.one_of(
    st.builds(Constant, st.one_of(st.none(), st.booleans(), TEXTS)),
    st.builds(Constant, st.integers(-(10**38) + 1, 10**38 - 1)),
    st.builds(Constant, st.floats(allow_nan=False, allow_infinity=False)),
    st.builds(
        Column,
        st.sampled_from(["row", "before", "after"]),
        st.lists(NAMES, min_size=1, max_size=3).map(tuple),
    ),
    st.just(Operation()),
)
TYPE_NAMES = st.one_of(
    st.builds(TypeName, st.sampled_from(["boolean", "tinyint", "double", "varchar", "date"])),
    st.builds(TypeName, st.just("decimal"), st.integers(5, 38), st.integers(0, 5)),
)


def _tuples(parts: Any, least: int, most: int = 4) -> Any:
    return st.lists(parts, min_size=least, max_size=most).map(tuple)


def _grown(inner: Any) -> Any:
    whens = _tuples(st.builds(When, inner, inner), 1, 3)
    return st.one_of(
        st.builds(Not, inner),
        st.builds(And, _tuples(inner, 2)),
        st.builds(Or, _tuples(inner, 2)),
        st.builds(Comparison, st.sampled_from(get_args(ComparisonOp)), inner, inner),
        st.builds(Arithmetic, st.sampled_from(get_args(ArithmeticOp)), inner, inner),
        st.builds(Negative, inner),
        st.builds(In, inner, _tuples(inner, 1)),
        st.builds(Between, inner, inner, inner),
        st.builds(Like, inner, inner, st.one_of(st.none(), st.just("!")), st.booleans()),
        st.builds(Is, inner, st.sampled_from(get_args(Test))),
        st.builds(Case, st.one_of(st.none(), inner), whens, st.one_of(st.none(), inner)),
        st.builds(Cast, inner, TYPE_NAMES, st.booleans()),
        st.builds(Call, st.sampled_from(["abs", "upper", "length"]), _tuples(inner, 1, 1)),
        st.builds(Call, st.sampled_from(["substr", "replace"]), _tuples(inner, 3, 3)),
        st.builds(Call, st.sampled_from(["coalesce", "concat"]), _tuples(inner, 1)),
        st.builds(
            lambda unit, node: Call("extract", (Constant(unit), node)),
            st.sampled_from(EXTRACTED),
            inner,
        ),
    )


NODES: st.SearchStrategy[Node] = st.recursive(LEAVES, _grown, max_leaves=12)


@given(NODES)
def test_a_tree_survives_json(node: Node) -> None:
    assert repr(from_json(json.loads(json.dumps(to_json(node))))) == repr(node)


@given(NODES)
def test_a_tree_shown_as_sql_is_read_as_the_same_tree(node: Node) -> None:
    assert repr(parse(Reader(to_sql(node)))) == repr(node)


def test_columns_are_named_once_in_the_order_of_the_text() -> None:
    tree = parse(Reader("b = before.a AND CASE WHEN c THEN s.x END IN (1, b) OR op = 'read'"))
    assert columns(tree) == (
        Column("row", ("b",)),
        Column("before", ("a",)),
        Column("row", ("c",)),
        Column("row", ("s", "x")),
    )


COMPARISON: Any = to_json(Comparison("=", Column("row", ("a",)), Constant(1)))


def changed(**parts: object) -> object:
    return {"v": VERSION, "filter": {**COMPARISON["filter"], **parts}}


@pytest.mark.parametrize(
    "stored",
    [
        None,
        [],
        {},
        {"v": VERSION},
        {"v": VERSION + 1, "filter": COMPARISON["filter"]},
        {"v": "1", "filter": COMPARISON["filter"]},
        {"v": VERSION, "filter": COMPARISON["filter"], "more": 1},
        changed(node="subquery"),
        changed(node=["comparison"]),
        changed(op="~"),
        changed(op=None),
        changed(left=None),
        changed(left={"node": "constant"}),
        changed(left={"node": "constant", "value": [1]}),
        changed(left={"node": "column", "side": "left", "path": ["a"]}),
        changed(left={"node": "column", "side": "row", "path": "a"}),
        changed(left={"node": "column", "side": "row", "path": [1]}),
        changed(left={"node": "call", "function": "sha256", "arguments": []}),
        changed(right={"node": "is", "operand": {"node": "operation"}, "test": "UNKNOWN"}),
        changed(extra=1),
    ],
)
def test_a_stored_filter_of_another_kind_is_refused(stored: object) -> None:
    with pytest.raises(UnsupportedFormat, match="stored filter"):
        from_json(stored)


def test_a_newer_format_is_named() -> None:
    with pytest.raises(UnsupportedFormat, match=f"has format 7, this Duolog reads {VERSION}"):
        from_json({"v": 7, "filter": {}})


def test_the_deepest_tree_that_parses_can_be_stored_and_no_deeper_one() -> None:
    stored: Any = to_json(parse(Reader("NOT " * (MAX_DEPTH - 2) + "a = 1")))
    assert to_sql(from_json(stored)).count("NOT") == MAX_DEPTH - 2
    with pytest.raises(UnsupportedFormat):
        from_json({"v": VERSION, "filter": {"node": "not", "operand": stored["filter"]}})


def test_one_and_true_are_different_constants() -> None:
    different = [Constant(1), Constant(1.0), Constant(True), Constant("1"), Constant(None)]
    assert len(set(different)) == len(different)
    assert Not(Constant(1)) != Not(Constant(True))
    assert Constant(1) == Constant(1)
