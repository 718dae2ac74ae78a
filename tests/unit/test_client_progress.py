"""Ranges of offsets, and the three places of a partition."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duolog.client.progress import Progress
from duolog.client.ranges import Ranges


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30))), st.integers(0, 30))
def test_ranges_hold_what_was_added_and_never_touch(
    added: list[tuple[int, int]], floor: int
) -> None:
    ranges = Ranges()
    expected: set[int] = set()
    for start, end in added:
        ranges.add(start, end)
        expected |= set(range(start, end))
    assert {at for start, end in ranges for at in range(start, end)} == expected
    found = list(ranges)
    assert all(end < start for (_, end), (start, _) in pairwise(found))
    assert all((at in ranges) == (at in expected) for at in range(32))
    wanted = floor
    while wanted in expected:
        wanted += 1
    assert ranges.take_from(floor) == wanted
    assert all(start > wanted for start, _ in ranges)


def test_the_three_places_move_apart_and_meet_again() -> None:
    progress = Progress(5)
    assert progress.is_settled
    progress.hand_out(9)
    progress.finish(6, 8)
    assert (progress.floor, progress.to_commit, progress.is_done(7)) == (5, None, True)
    progress.finish(0, 6)
    assert progress.to_commit == 8
    progress.acknowledged(8, 8)
    assert (progress.is_settled, progress.committed) == (False, 8)
    progress.finish(8, 99)
    progress.acknowledged(9, 9)
    assert progress.is_settled


@pytest.mark.parametrize(
    ("told", "position", "floor", "next_offset"),
    [(3, 3, 3, 6), (3, 5, 5, 6), (3, 20, 20, 20), (2, 2, 3, 6)],
)
def test_a_later_position_of_the_group_is_taken_over(
    told: int, position: int, floor: int, next_offset: int
) -> None:
    progress = Progress(0)
    progress.hand_out(6)
    progress.finish(0, 3)
    progress.acknowledged(told, position)
    assert (progress.floor, progress.next_offset) == (floor, next_offset)
    assert progress.committed == position


def test_the_answer_to_an_ack_from_before_a_seek_changes_nothing() -> None:
    progress = Progress(0)
    progress.hand_out(9)
    progress.finish(0, 9)
    progress.seek(2)
    progress.acknowledged(9, 9)
    assert (progress.floor, progress.next_offset, progress.to_commit) == (2, 2, None)
