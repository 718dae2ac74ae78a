"""What DataFusion is given instead of what was typed, and back to where it stood."""

from __future__ import annotations

import pytest

from duolog.errors import InvalidSql
from duolog.sql.select.taken import MAX_WORDS, taken

UNTOUCHED = "SELECT 'offset', \"Offset\" -- offset\nFROM t"
CASES = {
    "SELECT partition, offset FROM t": 'SELECT partition, "offset" FROM t',
    "SELECT Offset, ts FROM t WHERE OFFSET>5": 'SELECT "offset", ts FROM t WHERE "offset">5',
    "SELECT t.offset FROM t LIMIT 5 OFFSET 10": 'SELECT t."offset" FROM t LIMIT 5 OFFSET 10',
    "SELECT a FROM t ORDER BY offset OFFSET 3": 'SELECT a FROM t ORDER BY "offset" OFFSET 3',
    "SELECT a FROM t OFFSET (1)": "SELECT a FROM t OFFSET (1)",
    UNTOUCHED: UNTOUCHED,
    "SELECT offset": 'SELECT "offset"',
}


@pytest.mark.parametrize("text", CASES)
def test_a_column_called_offset(text: str) -> None:
    assert taken(text).text == CASES[text]


@pytest.mark.parametrize("text", CASES)
def test_every_place_is_where_it_was_typed(text: str) -> None:
    given = taken(text)
    at = 0
    for line, part in enumerate(given.text.split("\n"), 1):
        for column in range(1, len(part) + 1):
            position = given.typed_position(line, column)
            typed = given.text[at + column - 1]
            if typed != '"':
                assert text[position].lower() == typed.lower()
        at += len(part) + 1


def test_the_number_of_words_is_limited() -> None:
    taken("SELECT a FROM t WHERE a IN (" + ", ".join(["1"] * 5 * MAX_WORDS) + ")")
    with pytest.raises(InvalidSql, match="words"):
        taken("SELECT " + "+".join(["a"] * MAX_WORDS))
