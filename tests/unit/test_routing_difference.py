"""What counts as a change of a column."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duolog.errors import InvalidRows
from duolog.log.routing.difference import differs

SMALL = st.none() | st.integers(0, 2)
FLOATS = st.sampled_from([None, 0.0, 1.5, math.nan])
WORDS = st.sampled_from([None, "", "a", "ab"])
PAIR = st.none() | st.fixed_dictionaries({"n": SMALL, "f": FLOATS})
CASES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int32(), SMALL),
    (pa.float16(), FLOATS.map(lambda x: x if x is None else np.float16(x))),
    (pa.float64(), FLOATS),
    (pa.string(), WORDS),
    (pa.large_string(), WORDS),
    (pa.dictionary(pa.int8(), pa.string()), WORDS),
    (pa.null(), st.none()),
    (pa.bool_(), st.none() | st.booleans()),
    (pa.decimal128(5, 1), SMALL),
    (pa.timestamp("us", "UTC"), SMALL),
    (pa.struct([("n", pa.int64()), ("f", pa.float32())]), PAIR),
    (pa.list_(pa.float64()), st.none() | st.lists(FLOATS, max_size=2)),
    (pa.large_list(pa.string()), st.none() | st.lists(WORDS, max_size=2)),
    (pa.list_(pa.int8(), 2), st.none() | st.lists(SMALL, min_size=2, max_size=2)),
    (
        pa.list_(pa.list_(pa.int8())),
        st.none() | st.lists(st.none() | st.lists(SMALL, max_size=2), max_size=2),
    ),
    (
        pa.map_(pa.string(), pa.struct([("n", pa.int64()), ("f", pa.float32())])),
        st.none() | st.lists(st.tuples(st.sampled_from("ab"), PAIR), max_size=2),
    ),
]


def same(old: Any, new: Any) -> bool:
    """Row by row, what `differs` does for columns."""
    if isinstance(old, (float, np.floating)) and isinstance(new, (float, np.floating)):
        return bool(old == new or (math.isnan(old) and math.isnan(new)))
    if isinstance(old, dict) and isinstance(new, dict):
        return all(same(old[name], new[name]) for name in old)
    if isinstance(old, (list, tuple)) and isinstance(new, (list, tuple)):
        return len(old) == len(new) and all(map(same, old, new))
    return bool(old == new)


@pytest.mark.parametrize(("kind", "values"), CASES, ids=[str(kind) for kind, _ in CASES])
def test_columns_differ_where_their_values_do(
    kind: pa.DataType, values: st.SearchStrategy[Any]
) -> None:
    @settings(max_examples=60, deadline=None)
    @given(st.lists(st.tuples(values, values), max_size=6), st.integers(0, 6))
    def check(pairs: list[tuple[Any, Any]], begin: int) -> None:
        before = pa.array([old for old, _ in pairs], kind)[begin:]
        after = pa.array([new for _, new in pairs], kind)[begin:]
        wanted = [not same(old, new) for old, new in pairs[begin:]]
        assert differs(before, after, "x").tolist() == wanted

    check()


def test_null_equals_null_and_nan_equals_nan() -> None:
    before = pa.array([None, math.nan, None, math.nan, 0.0])
    after = pa.array([None, math.nan, math.nan, 1.0, -0.0])
    assert differs(before, after, "x").tolist() == [False, False, True, True, False]


def test_what_lies_below_a_null_does_not_count() -> None:
    hidden = [pa.array([1]), pa.array([2])]
    before, after = (
        pa.StructArray.from_arrays([child], names=["n"], mask=pa.array([True])) for child in hidden
    )
    assert differs(before, after, "x").tolist() == [False]


def test_values_that_cannot_be_compared_are_refused_by_name() -> None:
    values = pa.array([(1, 2, 3)], pa.month_day_nano_interval())
    with pytest.raises(InvalidRows, match="column 'x' of type month_day_nano_interval"):
        differs(values, values, "x")
