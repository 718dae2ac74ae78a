"""How much of a batch the driver takes, and how, by what the one before it held."""

from __future__ import annotations

import pyarrow as pa
import pytest

from duolog.connector.options import SinkOptions
from duolog.connector.small_batches import (
    BatchSize,
    FewRows,
    is_for_one_task,
    is_slow,
    name_of,
    rows_on_driver,
    size_after,
)

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


@pytest.mark.parametrize(
    ("before", "few", "expected"),
    [
        (None, None, BatchSize(3, 30)),
        (None, (True, 0.1), BatchSize(3, 30, in_one_task=True)),
        (None, (True, 60.0), BatchSize(3, 30, is_slow=True)),
        (BatchSize(1, 1, is_slow=True), (True, 0.1), BatchSize(3, 30, is_slow=True)),
        (BatchSize(1, 1, in_one_task=True), (False, 0.1), BatchSize(3, 30)),
    ],
)
def test_the_next_batch_is_not_asked_again_how_many_tasks_it_takes_while_one_was_quick(
    before: BatchSize | None, few: tuple[bool, float] | None, expected: BatchSize
) -> None:
    came = None if few is None else FewRows(pa.table({}), *few)
    assert size_after(before, 3, 30, came) == expected


def test_sizes_are_kept_by_name_and_target() -> None:
    def name(**options: object) -> str:
        return name_of(SinkOptions.of({"path": "a.log", "topic": "t", **options}))

    assert name(queryName="q") == name(queryName="q")
    assert name(queryName="q") != name(queryName="r")
    assert name(queryName="q") != name(queryName="q", topic="u")
    assert name() != name()  # a nameless write is not known again
