"""What lies in a stream's checkpoint, and what is found to be gone when it is read again."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duolog.connector.source.choice import Kept, Place
from duolog.connector.source.losses import losses
from duolog.connector.source.offset import StreamOffset
from duolog.errors import UnsupportedFormat

A, B = Place("orders", 3, 0), Place("orders", 3, 1)
AGAIN = Place("orders", 7, 0)
OTHER = Place("items", 4, 0)

# A topic's name has one id at a time.
positions = st.dictionaries(
    st.builds(lambda t, p: Place(f"t{t}", t, p), st.integers(1, 5), st.integers(0, 30)),
    st.integers(0, 2**62),
)


def test_the_offset_is_kafkas_with_ids_beside_it() -> None:
    stored = StreamOffset("log-1", {B: 7, A: 23, OTHER: 0}).to_json()
    assert json.dumps(stored) == (
        '{"version": 1, "log": "log-1", "topics": {"items": 4, "orders": 3}, '
        '"offsets": {"items": {"0": 0}, "orders": {"0": 23, "1": 7}}}'
    )


def test_a_first_offset_says_where_the_query_began() -> None:
    stored = StreamOffset("log-1", {A: 23}, begin={A: 20}).to_json()
    assert stored["from"] == {"orders": {"0": 20}}
    assert StreamOffset("log-1", {A: 20}, is_initial=True).to_json()["initial"] is True


@given(positions, st.none() | st.just({}), st.booleans())
def test_what_was_stored_is_read_and_written_to_the_letter(
    found: dict[Place, int], begin: dict[Place, int] | None, is_initial: bool
) -> None:
    offset = StreamOffset("log-1", found, found if begin is not None else None, is_initial)
    text = json.dumps(offset.to_json())
    again = StreamOffset.of(json.loads(text))
    assert again == offset
    assert json.dumps(again.to_json()) == text


@pytest.mark.parametrize("stored", [{"version": 2}, {}, {"orders": {"0": 5}}])
def test_another_sources_checkpoint_is_refused(stored: dict[str, object]) -> None:
    with pytest.raises(UnsupportedFormat, match="belongs to another source, or to a newer Duolog"):
        StreamOffset.of(stored)


@pytest.mark.parametrize(
    ("seen", "places", "told"),
    [
        ({A: 5}, {A: Kept(0, 9)}, []),
        ({A: 5}, {A: Kept(5, 5)}, []),
        ({A: 5}, {A: Kept(0, 9), B: Kept(0, 3)}, []),
        ({A: 5}, {A: Kept(7, 9)}, ["Offsets 5 to 6 of topic 'orders' partition 0 were removed"]),
        ({A: 5}, {A: Kept(0, 4)}, ["has read topic 'orders' partition 0 up to 5, and the log"]),
        ({A: 5}, {AGAIN: Kept(0, 9)}, ["Topic 'orders' was dropped and made again"]),
        ({A: 5}, {}, ["The topic 'orders' partition 0 is gone"]),
        ({A: 5}, {A: Kept(0, 9), B: Kept(2, 3)}, ["New topic 'orders' partition 1 begins with"]),
        ({A: 5, B: 5}, {A: Kept(6, 9), B: Kept(7, 9)}, ["Offsets 5 to 5", "Offsets 5 to 6"]),
    ],
)
def test_each_thing_that_is_gone_is_told(
    seen: dict[Place, int], places: dict[Place, Kept], told: list[str]
) -> None:
    found = losses(StreamOffset("log-1", seen), "log-1", places)
    assert len(found) == len(told)
    assert all(part in sentence for part, sentence in zip(told, found, strict=True))


def test_another_log_is_told_before_anything_else() -> None:
    (told,) = losses(StreamOffset("log-1", {A: 5}), "log-2", {})
    assert "is of log log-1, and this is log log-2" in told
