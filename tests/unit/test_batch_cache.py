"""The cache of decoded batches, when stored batches are merged meanwhile."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from duolog.log.cache import BatchCache
from duolog.log.model import TopicPartition
from tests.support.records import record_batch

TP = TopicPartition(1, 0)


def records(first: int, stop: int) -> Any:
    return record_batch([b"%d" % offset for offset in range(first, stop)])


def test_a_merged_batch_takes_the_place_of_its_parts_whichever_comes_first() -> None:
    cache = BatchCache(1 << 20)
    for first in (0, 2, 4):
        cache.add(TP, first, records(first, first + 2))
    cache.add(TP, 0, records(0, 6))
    cache.add(TP, 2, records(2, 4))  # by a reader who was slower
    for offset in range(6):
        found = cache.find(TP, offset)
        assert found is not None
        assert (found[0], found[1].num_rows) == (0, 6)
    assert cache.held_upto(TP, 0, 10) == 6


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 12)), max_size=40),
    st.integers(0, 40_000),
)
def test_what_is_found_is_always_right(added: list[tuple[int, int]], budget_bytes: int) -> None:
    cache = BatchCache(budget_bytes)
    for first, count in added:
        cache.add(TP, first, records(first, first + count))
        for offset in range(45):
            found = cache.find(TP, offset)
            if found is not None:
                base, held, _ = found
                assert held.column("value")[offset - base].as_py() == b"%d" % offset


def test_what_is_stored_no_more_is_forgotten_also_as_the_batches_it_was_merged_from() -> None:
    cache = BatchCache(1 << 20)
    for first in (0, 2, 4, 6):
        cache.add(TP, first, records(first, first + 2))
    cache.forget(TP, 0, 6)
    assert [cache.find(TP, offset) is not None for offset in range(8)] == [False] * 6 + [True] * 2
    cache.forget(TP, 6, 8)
    cache.add(TP, 0, records(0, 8))
    assert cache.held_upto(TP, 0, 10) == 8
