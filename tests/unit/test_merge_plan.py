"""Which small batches are merged: a table of cases, and bounds that always hold."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duolog.log.batch import TARGET_BYTES
from duolog.log.merge_plan import SMALL_BYTES, plan_merges
from duolog.log.model import Retention
from duolog.log.times import BatchSize, TimedBatch

KEPT_FOR_EVER = Retention()
HOUR_MS = 3_600_000


def batches(*sizes_and_times: tuple[int, int]) -> list[TimedBatch]:
    return [
        TimedBatch(at_ms, offset, BatchSize(1, size))
        for offset, (size, at_ms) in enumerate(sizes_and_times)
    ]


def merged(
    *sizes_and_times: tuple[int, int], retention: Retention = KEPT_FOR_EVER
) -> list[list[int]]:
    """The offsets of each group."""
    groups = plan_merges(batches(*sizes_and_times), retention)
    return [[batch.base_offset for batch in group] for group in groups]


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([], []),
        ([100], []),
        ([100, 100], [[0, 1]]),
        ([100, 100, 100], [[0, 1, 2]]),
        ([100, 10, 10], [[1, 2]]),  # the first is larger than all behind it
        ([100, 50, 10, 10], [[2, 3]]),
        ([20, 10, 10], [[0, 1, 2]]),
        ([100, 10], []),
        ([TARGET_BYTES - 5, 10, 10], [[1, 2]]),
        ([300_000, 200_000, 100_000, 1000], [[0, 1]]),  # full: nothing can be added to them
    ],
)
def test_groups_by_size(sizes: list[int], expected: list[list[int]]) -> None:
    assert merged(*((size, 0) for size in sizes)) == expected


@pytest.mark.parametrize(
    ("retention", "times_ms", "expected"),
    [
        (Retention(seconds=86_400 * 7), [0, 1, HOUR_MS - 1, HOUR_MS], [[0, 1, 2]]),
        (Retention(seconds=100), [0, 9_999, 10_000, 10_001], [[0, 1], [2, 3]]),
        (Retention(seconds=0.001), [0, 0, 1, 1], [[0, 1], [2, 3]]),
        (Retention(), [0, HOUR_MS, 23 * HOUR_MS, 24 * HOUR_MS], [[0, 1, 2]]),
    ],
)
def test_groups_stay_within_a_tenth_of_what_is_kept(
    retention: Retention, times_ms: list[int], expected: list[list[int]]
) -> None:
    assert merged(*((10, at_ms) for at_ms in times_ms), retention=retention) == expected


def test_groups_stay_within_a_tenth_of_the_bytes_that_are_kept() -> None:
    assert merged(*[(10, 0)] * 4, retention=Retention(max_bytes=200)) == [[0, 1], [2, 3]]


@given(
    st.lists(st.tuples(st.integers(1, SMALL_BYTES), st.integers(0, HOUR_MS)), max_size=200),
    st.builds(
        Retention,
        seconds=st.none() | st.floats(1, 1e6),
        max_bytes=st.none() | st.integers(1, 10**7),
    ),
)
def test_groups_follow_one_another_and_are_bounded(
    steps: list[tuple[int, int]], retention: Retention
) -> None:
    times = accumulate(step for _, step in steps)
    given_ = batches(*((size, at_ms) for (size, _), at_ms in zip(steps, times, strict=True)))
    last = -1
    for group in plan_merges(given_, retention):
        offsets = [batch.base_offset for batch in group]
        assert offsets[0] > last
        assert offsets == list(range(offsets[0], offsets[-1] + 1))
        assert len(offsets) > 1
        assert sum(batch.size.length for batch in group) <= TARGET_BYTES
        if retention.seconds is not None:
            span_ms = group[-1].running_max_ms - group[0].running_max_ms
            assert span_ms <= retention.seconds * 100
        last = offsets[-1]


def test_a_record_is_written_again_a_few_times_only() -> None:
    """As a log does it: 64 small batches come, then the end is merged."""
    kept: list[TimedBatch] = []
    written = offset = 0
    for _ in range(500):
        for _ in range(64):
            kept.append(TimedBatch(0, offset, BatchSize(1, 10)))
            offset += 1
        small = [batch for batch in kept if batch.size.length < SMALL_BYTES]
        for group in plan_merges(small, KEPT_FOR_EVER):
            size = sum(batch.size.length for batch in group)
            written += size
            at = kept.index(group[0])
            kept[at : at + len(group)] = [
                TimedBatch(0, group[0].base_offset, BatchSize(len(group), size))
            ]
    assert written < 12 * 10 * offset
    assert len(kept) < 20
