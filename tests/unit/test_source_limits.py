"""How much a micro-batch takes, and how it is cut into tasks."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duolog.connector.source.choice import Kept, Place
from duolog.connector.source.limits import limited, waits_for_more
from duolog.connector.source.options import SourceOptions
from duolog.connector.source.pace import Pace
from duolog.connector.source.ranges import Range, split

A, B, C = Place("a", 1, 0), Place("a", 1, 1), Place("b", 2, 0)

places = st.dictionaries(
    st.sampled_from([Place("t", 1, number) for number in range(8)]),
    st.tuples(st.integers(0, 10**12), st.integers(0, 10**6)),
)


@pytest.mark.parametrize(
    ("most", "sizes", "taken"),
    [
        (10, {A: 4, B: 6}, {A: 4, B: 6}),
        (5, {A: 4, B: 6}, {A: 2, B: 3}),
        (10, {A: 1, B: 1000}, {A: 1, B: 9}),  # the small one is not starved
        (1, {A: 3, B: 5}, {A: 0, B: 1}),
        (2, {A: 3, B: 5, C: 1}, {A: 1, B: 1, C: 0}),
        (5, {}, {}),
        (5, {A: 0}, {A: 0}),
    ],
)
def test_what_there_is_is_taken_in_proportion(
    most: int, sizes: dict[Place, int], taken: dict[Place, int]
) -> None:
    begin = dict.fromkeys(sizes, 100)
    until = {place: 100 + size for place, size in sizes.items()}
    assert limited(most, begin, until) == {place: 100 + n for place, n in taken.items()}


@given(places, st.integers(1, 10**6))
def test_the_limit_holds_to_the_record_and_nobody_starves(
    sizes: dict[Place, tuple[int, int]], most: int
) -> None:
    begin = {place: at for place, (at, _) in sizes.items()}
    until = {place: at + size for place, (at, size) in sizes.items()}
    ends = limited(most, begin, until)
    taken = {place: ends[place] - begin[place] for place in sizes}
    filled = [place for place, (_, size) in sizes.items() if size]
    assert sum(taken.values()) == min(most, sum(size for _, size in sizes.values()))
    assert all(0 <= taken[place] <= sizes[place][1] for place in sizes)
    if most >= len(filled):
        assert all(taken[place] for place in filled)


def test_a_stream_with_fewer_records_than_partitions_a_batch_comes_to_all_of_them() -> None:
    begin, until = {A: 0, B: 0, C: 0}, {A: 2, B: 3, C: 1}
    for _ in range(3):
        begin = limited(2, begin, until)
    assert begin == until


@pytest.mark.parametrize(
    ("least", "available", "since", "waits"),
    [
        (None, 0, 0.0, False),
        (5, 4, 1.0, True),
        (5, 5, 1.0, False),
        (5, 4, 60.0, False),
        (5, 0, float("inf"), False),
    ],
)
def test_few_records_wait_but_not_for_ever(
    least: int | None, available: int, since: float, waits: bool
) -> None:
    assert waits_for_more(least, available, since, 60.0) is waits


class Seconds:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def pace(clock: Seconds | None = None, **given: object) -> Pace:
    options = SourceOptions.of({"path": "l", "subscribe": "a", **given}, streaming=True)
    return Pace(options, clock or Seconds())


def test_without_limits_a_batch_takes_all() -> None:
    ends = pace().ends({A: 3}, {A: Kept(0, 10), B: Kept(0, 4)})
    assert ends == {A: 10, B: 4}


def test_what_retention_took_does_not_count() -> None:
    ends = pace(maxOffsetsPerTrigger=2).ends({A: 3}, {A: Kept(100, 110)})
    assert ends == {A: 102}


def test_a_stream_never_goes_back() -> None:
    assert pace().ends({A: 12}, {A: Kept(0, 10)}) == {A: 12}


def test_the_first_few_records_go_at_once_and_later_ones_wait() -> None:
    clock = Seconds()
    limits = pace(clock, minOffsetsPerTrigger=5, maxTriggerDelay="60s")
    assert limits.ends({A: 0}, {A: Kept(0, 1)}) == {A: 1}
    clock.now += 1
    assert limits.ends({A: 1}, {A: Kept(0, 4)}) == {A: 1}
    assert limits.ends({A: 1}, {A: Kept(0, 6)}) == {A: 6}
    clock.now += 59
    assert limits.ends({A: 6}, {A: Kept(0, 8)}) == {A: 6}
    clock.now += 1
    assert limits.ends({A: 6}, {A: Kept(0, 8)}) == {A: 8}


def test_available_now_ends_where_the_log_did_and_waits_for_nothing() -> None:
    limits = pace(availableNow="true", maxOffsetsPerTrigger=4, minOffsetsPerTrigger=3)
    assert limits.ends({A: 0}, {A: Kept(0, 5)}) == {A: 4}
    assert limits.ends({A: 4}, {A: Kept(0, 90), B: Kept(0, 9)}) == {A: 5, B: 0}
    assert limits.ends({A: 5, B: 0}, {A: Kept(0, 95), B: Kept(0, 9)}) == {A: 5, B: 0}


def test_who_limits_batches_is_told_once_what_that_means(caplog: pytest.LogCaptureFixture) -> None:
    limits = pace(maxOffsetsPerTrigger=4)
    with caplog.at_level(logging.WARNING, "duolog.connector"):
        for position in (0, 4):
            limits.ends({A: position}, {A: Kept(0, 50)})
    (record,) = caplog.records
    assert "this micro-batch reads 4 of 50 records" in record.getMessage()
    assert "run_available" in record.getMessage()


@pytest.mark.parametrize(
    ("counts", "min_partitions", "max_records", "cut"),
    [
        ([4, 0, 2], None, None, [4, 2]),
        ([4, 2], 2, None, [4, 2]),
        ([6], 3, None, [2, 2, 2]),
        ([7], 2, None, [3, 4]),
        ([100, 1], 4, None, [33, 33, 34, 1]),
        ([2], 5, None, [1, 1]),
        ([10], None, 4, [3, 3, 4]),
        ([10, 3], 6, 5, [2, 3, 2, 3, 3]),
        ([], 3, 4, []),
    ],
)
def test_ranges_are_cut_for_tasks(
    counts: list[int], min_partitions: int | None, max_records: int | None, cut: list[int]
) -> None:
    ranges = [Range(Place("t", 1, n), 10, 10 + count) for n, count in enumerate(counts)]
    assert [part.count for part in split(ranges, min_partitions, max_records)] == cut


@given(places, st.none() | st.integers(1, 20), st.none() | st.integers(100_000, 10**6))
def test_cut_ranges_are_the_same_records_in_order(
    sizes: dict[Place, tuple[int, int]], min_partitions: int | None, max_records: int | None
) -> None:
    ranges = [Range(place, at, at + size) for place, (at, size) in sizes.items()]
    parts = split(ranges, min_partitions, max_records)
    for whole in ranges:
        mine = [part for part in parts if part.place == whole.place]
        bounds = [whole.start, *(part.end for part in mine)]
        assert [part.start for part in mine] == bounds[:-1]
        assert bounds[-1] == whole.end
        assert all(part.count > 0 for part in mine)
        assert max_records is None or all(part.count <= max_records for part in mine)
