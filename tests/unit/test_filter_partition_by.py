"""PARTITION BY: columns and expressions of the row, from their text."""

from __future__ import annotations

import pytest

from duolog.errors import InvalidFilter
from duolog.log.model import Expression
from duolog.log.routing.filter.parse import parse_partition_by
from duolog.log.routing.filter.tree import Call, Column


def lower(name: str) -> Expression:
    return Expression(f"lower({name})", Call("lower", (Column("row", (name,)),)))


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a", ("a",)),
        ("(a)", ("a",)),
        ("a, b", ("a", "b")),
        ('( a , "b c" )', ("a", "b c")),
        ('"op", "before"', ("op", "before")),
        ("before", ("before",)),  # without a field: a column
        ("(a, lower(b))", ("a", lower("b"))),
        ("LOWER( b )", (lower("b"),)),
        ("(a), (b)", ("a", "b")),
    ],
)
def test_what_is_partitioned_by(text: str, parts: tuple[str | Expression, ...]) -> None:
    assert parse_partition_by(text) == parts


def test_parentheses_around_the_first_part_alone_are_its_own() -> None:
    (part,) = parse_partition_by("(a + b) % (c)")
    assert isinstance(part, Expression)
    assert part.text == "(a + b) % c"


@pytest.mark.parametrize(
    ("text", "position", "reason"),
    [
        ("", 0, "name a column"),
        ("a,", 2, "Expected a value"),
        ("a b", 2, "no place here"),
        ("(a, b", 5, r"Expected \)"),
        ("a, 1", 3, "same for all rows"),
        ("upper('x')", 0, "same for all rows"),
        ("a, before.b", 3, "row alone"),
        ("concat(a, after.b)", 10, "row alone"),
        ("a, op", 3, "row alone"),
        ("a, random()", 3, "random"),
        ("lower(a, b)", 0, "lower"),
        ("a || 'x' + 1", 2, "text"),
    ],
)
def test_mistakes_point_at_their_word(text: str, position: int, reason: str) -> None:
    with pytest.raises(InvalidFilter, match=reason) as mistake:
        parse_partition_by(text)
    assert (mistake.value.text, mistake.value.position) == (text, position)
