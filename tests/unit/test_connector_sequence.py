"""Rows on the driver are put in the order that Spark would put them in."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duolog.connector.sequence import check_sequence, quoted, sorted_rows
from duolog.errors import InvalidRows


@given(
    st.lists(st.tuples(st.none() | st.integers(0, 3), st.none() | st.text(max_size=2)), max_size=30)
)
def test_null_comes_first_and_rows_of_equal_rank_keep_their_order(
    rows: list[tuple[int | None, str | None]],
) -> None:
    table = pa.table(
        {
            "a": pa.array([a for a, _ in rows], pa.int64()),
            "b": pa.array([b for _, b in rows], pa.string()),
            "n": pa.array(range(len(rows)), pa.int64()),
        }
    )

    def rank(n: int) -> tuple[Any, ...]:
        a, b = rows[n]
        return (a is not None, a or 0, b is not None, (b or "").encode())

    found = sorted_rows(table, ["a", "b"]).column("n").to_pylist()
    assert found == sorted(range(len(rows)), key=rank)


@pytest.mark.parametrize(
    "kind",
    [pa.float32(), pa.float64(), pa.bool_(), pa.list_(pa.int8()), pa.struct([("a", pa.int8())])],
    ids=str,
)
def test_columns_without_an_order_are_refused(kind: pa.DataType) -> None:
    with pytest.raises(InvalidRows, match="cannot be put in order"):
        check_sequence(pa.schema([("k", pa.int8()), ("at", kind)]), ["k"], ["at"])


def test_names_are_quoted_for_spark() -> None:
    assert quoted("a`b.c") == "`a``b.c`"
