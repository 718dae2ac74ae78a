"""Bad rows are found among good ones, whatever the mixture; all rows come out once."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duolog.connector.bad_rows import Bad, sift
from duolog.errors import (
    AmbiguousKey,
    DuologError,
    InvalidRows,
    InvalidSetting,
    UnknownTopic,
    VersionCut,
)


class Door:
    """Takes numbers that are not negative, and counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, rows: pa.RecordBatch) -> list[int]:
        self.asked += 1
        numbers: list[int] = rows.column("n").to_pylist()
        for number in numbers:
            if number < 0:
                raise InvalidRows(f"no {number}")
        return numbers


def rows_of(numbers: list[int]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"n": pa.array(numbers, pa.int64())})


def as_number(rows: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """Suspects what is below -5, each number by itself; and 7, wrongly."""
    numbers = rows.column("n").to_numpy()
    return np.where(numbers < -5, -numbers, np.where(numbers == 7, 700, 0))


def sifted(numbers: list[int], *, suspects: bool) -> tuple[list[int], list[tuple[int, str]], int]:
    door = Door()
    good: list[int] = []
    bad: list[tuple[int, str]] = []
    for found in sift(rows_of(numbers), door, as_number if suspects else None):
        if isinstance(found, Bad):
            bad += [(number, str(found.refusal)) for number in found.rows.column("n").to_pylist()]
        else:
            good += found
    return good, bad, door.asked


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=60), st.booleans())
def test_good_rows_keep_their_order_and_bad_ones_their_own_reason(
    numbers: list[int], suspects: bool
) -> None:
    good, bad, _ = sifted(numbers, suspects=suspects)
    assert good == [number for number in numbers if number >= 0]
    assert sorted(number for number, _ in bad) == sorted(n for n in numbers if n < 0)
    assert all(why == f"no {number}" for number, why in bad)


def test_good_rows_are_tried_once_and_one_bad_row_is_found_by_halving() -> None:
    assert sifted(list(range(1000)), suspects=True)[2] == 1
    good, bad, asked = sifted([*range(500), -1, *range(500)], suspects=False)
    assert (len(good), bad) == (1000, [(-1, "no -1")])
    assert asked < 25


def test_rows_that_are_wrong_in_one_way_are_not_tried_one_by_one() -> None:
    good, bad, asked = sifted([-8, 1, -9] * 300, suspects=True)
    assert (len(good), len(bad)) == (300, 600)
    assert asked < 6


@pytest.mark.parametrize(
    "error", [InvalidSetting("x"), AmbiguousKey("x"), VersionCut("x"), DuologError("x")]
)
def test_what_is_no_rows_fault_stops_it(error: Exception) -> None:
    def attempt(_: Any) -> None:
        raise error

    with pytest.raises(type(error)):
        list(sift(rows_of([1, 2]), attempt))


def test_a_topic_that_is_not_there_is_a_rows_fault() -> None:
    def attempt(_: Any) -> None:
        raise UnknownTopic("x")

    assert len(list(sift(rows_of([1, 2]), attempt))) == 2
