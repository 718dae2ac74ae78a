"""Group positions in memory: each group is found by itself."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from duolog.log.model import Side, TopicPartition
from duolog.log.positions import PositionKey, Positions, StoredPosition

_KEYS = st.tuples(
    st.sampled_from(["audit", "billing", "search"]),
    st.builds(TopicPartition, st.integers(1, 2), st.integers(0, 2)),
)
_POSITIONS = st.none() | st.integers(0, 9).map(lambda at: StoredPosition(at, 1, 0, Side.NATIVE))


@given(st.lists(st.tuples(_KEYS, _POSITIONS), max_size=30))
def test_what_was_put_last_is_there_and_what_was_forgotten_is_not(
    changes: list[tuple[PositionKey, StoredPosition | None]],
) -> None:
    positions, expected = Positions(), dict[PositionKey, StoredPosition]()
    for key, position in changes:
        positions.put(key, position)
        if position is None:
            expected.pop(key, None)
        else:
            expected[key] = position
    assert dict(positions.all()) == expected
    assert len(positions.all()) == len(expected)
    for key, _ in changes:
        of_its_group = {each: at for each, at in expected.items() if each[0] == key[0]}
        assert positions.get(key) == expected.get(key)
        assert dict(positions.of_group(key[0])) == of_its_group
    assert dict(Positions(expected.items()).all()) == expected
