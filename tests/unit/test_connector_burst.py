"""How much of a batch the driver takes, by what the one before it held."""

from __future__ import annotations

import pytest

from duolog.connector.frames import BatchSize, rows_on_driver

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
