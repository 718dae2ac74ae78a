"""How much of a batch the driver takes, and how, by what the one before it held."""

from __future__ import annotations

import pytest

from duolog.connector.small_batches import BatchSize, is_for_one_task, is_slow, rows_on_driver

MIB = 1 << 20


@pytest.mark.parametrize(
    ("before", "rows"),
    [
        (None, 0),  # the first one since the start
        (BatchSize(0, 0), 100),
        (BatchSize(100, 100), 100),
        (BatchSize(101, 100), 0),
        (BatchSize(100, 16 * MIB), 100),
        (BatchSize(10, 16 * MIB), 40),  # large rows: as many as are 64 MiB
        (BatchSize(1, 16 * MIB), 4),
        (BatchSize(100, 16 * MIB + 1), 0),
    ],
)
def test_rows_on_the_driver(before: BatchSize | None, rows: int) -> None:
    assert rows_on_driver(before, 100) == rows


@pytest.mark.parametrize(
    ("before", "partitions", "answer"),
    [
        (None, 1, True),
        (BatchSize(100, 100), 8, True),
        (BatchSize(100, 100), 9, False),
        (BatchSize(100, 100), None, False),
        (BatchSize(100, 100, is_slow=True), 2, False),
    ],
)
def test_one_task_for_a_few_partitions(
    before: BatchSize | None, partitions: int | None, answer: bool
) -> None:
    assert is_for_one_task(before, partitions) is answer


def test_rows_that_are_slow_in_one_task_stay_with_many() -> None:
    quick = BatchSize(1, 1)
    assert not is_slow(None, in_one_task=True, seconds=0.1)
    assert not is_slow(quick, in_one_task=False, seconds=60)
    assert is_slow(quick, in_one_task=True, seconds=60)
    assert is_slow(BatchSize(1, 1, is_slow=True), in_one_task=False, seconds=0.1)
