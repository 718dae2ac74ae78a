"""Who is to have which partition."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duolog.bridge.members.assignment import assign

A, B, C = "a", "b", "c"


@pytest.mark.parametrize(
    ("members", "partitions", "owned", "target"),
    [
        ([], 2, {}, {}),
        ([A], 3, {}, {0: A, 1: A, 2: A}),
        ([A, B], 4, {}, {0: A, 1: A, 2: B, 3: B}),
        ([A, B], 3, {}, {0: A, 1: A, 2: B}),
        # What somebody has stays; who came gets the last ones.
        ([A, B], 4, {0: A, 1: A, 2: A, 3: A}, {0: A, 1: A, 2: B, 3: B}),
        # The one more stays with who has it.
        ([A, B], 3, {1: B, 2: B, 0: A}, {0: A, 1: B, 2: B}),
        # Who has gone leaves its partitions to others, and nothing else moves.
        ([A, C], 4, {0: A, 1: B, 2: C, 3: B}, {0: A, 1: A, 2: C, 3: C}),
        # New partitions go to those who have fewer.
        ([A, B], 4, {0: A, 1: A, 2: B}, {0: A, 1: A, 2: B, 3: B}),
        ([A, B, C], 2, {}, {0: A, 1: B}),
        ([A, B, C], 2, {0: C, 1: B}, {0: C, 1: B}),
    ],
)
def test_partitions_are_shared(
    members: list[str], partitions: int, owned: dict[int, str], target: dict[int, str]
) -> None:
    assert assign(members, partitions, owned) == target


@given(
    st.lists(st.text("abcdef", min_size=1, max_size=2), unique=True, max_size=8),
    st.integers(0, 40),
    st.dictionaries(st.integers(0, 45), st.text("abcdef", min_size=1, max_size=2)),
)
def test_shares_differ_by_one_at_most_and_move_no_more_than_they_must(
    members: list[str], partitions: int, owned: dict[int, str]
) -> None:
    target = assign(members, partitions, owned)
    assert sorted(target) == list(range(partitions if members else 0))
    if not members:
        return
    counts = Counter(dict.fromkeys(members, 0)) + Counter(target.values())
    shares = [counts[member] for member in members]
    assert max(shares) - min(shares) <= 1
    before = Counter(owner for at, owner in owned.items() if at < partitions and owner in members)
    stayed = Counter(owner for at, owner in target.items() if owned.get(at) == owner)
    for member in members:
        assert stayed[member] == min(before[member], counts[member])
    assert assign(members, partitions, target) == target
