"""What a query can need of a topic: never less than where its conditions are true."""

from __future__ import annotations

import operator
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duolog.sql.select.span import EVERYTHING, FLIPPED, Span, span_of

OPS: dict[str, Callable[[int, int], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

CASES = {
    ("offset", "=", 5): Span(first_offset=5, last_offset=5),
    ("offset", ">", 5): Span(first_offset=6),
    ("offset", ">=", 5): Span(first_offset=5),
    ("offset", "<", 5): Span(last_offset=4),
    ("offset", "<=", 5): Span(last_offset=5),
    ("offset", "<>", 5): EVERYTHING,
    ("partition", "=", 5): Span(partitions=frozenset({5})),
    ("partition", "<", 5): EVERYTHING,
    ("ts", "=", 5): Span(from_ms=5),
    ("ts", ">", 5): Span(from_ms=6),
    ("ts", ">=", 5): Span(from_ms=5),
    ("ts", "<", 5): EVERYTHING,  # earlier times may come behind later ones
    ("qty", "=", 5): EVERYTHING,
}


@pytest.mark.parametrize("case", CASES)
def test_a_comparison(case: tuple[str, str, int]) -> None:
    assert span_of(*case) == CASES[case]


def test_both_and_either() -> None:
    low, high = Span(frozenset({1, 2}), 3, 9, 100), Span(frozenset({2, 3}), 5, None, None)
    assert low & high == Span(frozenset({2}), 5, 9, 100)
    assert low | high == Span(frozenset({1, 2, 3}), 3, None, None)
    assert low & EVERYTHING == low
    assert low | EVERYTHING == EVERYTHING


comparisons = st.tuples(
    st.sampled_from(["partition", "offset", "ts"]), st.sampled_from(list(OPS)), st.integers(0, 6)
)
Tree = tuple[str, "Tree", "Tree"] | tuple[str, str, int]
trees = st.recursive(
    comparisons, lambda inner: st.tuples(st.sampled_from(["AND", "OR"]), inner, inner), max_leaves=8
)


def is_true(tree: Tree, record: dict[str, int]) -> bool:
    match tree:
        case "AND", left, right:
            return is_true(left, record) and is_true(right, record)  # type: ignore[arg-type]
        case "OR", left, right:
            return is_true(left, record) or is_true(right, record)  # type: ignore[arg-type]
        case column, op, int(value):
            return OPS[str(op)](record[str(column)], value)
    raise AssertionError


def span_of_tree(tree: Tree) -> Span:
    match tree:
        case "AND", left, right:
            return span_of_tree(left) & span_of_tree(right)  # type: ignore[arg-type]
        case "OR", left, right:
            return span_of_tree(left) | span_of_tree(right)  # type: ignore[arg-type]
        case column, op, int(value):
            return span_of(str(column), str(op), value)
    raise AssertionError


@given(
    trees,
    st.fixed_dictionaries({name: st.integers(0, 6) for name in ("partition", "offset", "ts")}),
)
def test_no_record_is_left_out(tree: Tree, record: dict[str, int]) -> None:
    span = span_of_tree(tree)
    if is_true(tree, record):
        assert span.partitions is None or record["partition"] in span.partitions
        assert span.first_offset is None or record["offset"] >= span.first_offset
        assert span.last_offset is None or record["offset"] <= span.last_offset
        assert span.from_ms is None or record["ts"] >= span.from_ms


@given(st.sampled_from(sorted(FLIPPED)), st.integers(), st.integers())
def test_a_comparison_from_the_other_side(op: str, left: int, right: int) -> None:
    assert OPS[op](left, right) == OPS[FLIPPED[op]](right, left)
