"""Runs: stretches of log offsets in Kafka."""

from __future__ import annotations

import pytest

from duolog.bridge.kafka.runs import Run, cut_at_kafka, extended, run_of_kafka, run_of_log

RUNS = (Run(0, 100, 10), Run(12, 110, 5, 2), Run(17, 120, 3, 2))


@pytest.mark.parametrize(
    ("runs", "more", "expected"),
    [
        ((), Run(3, 7, 2), (Run(3, 7, 2),)),
        ((Run(0, 0, 5),), Run(5, 5, 1), (Run(0, 0, 6),)),
        ((Run(0, 0, 5),), Run(5, 6, 1), (Run(0, 0, 5), Run(5, 6, 1))),  # a foreign record
        ((Run(0, 0, 5),), Run(6, 5, 1, 1), (Run(0, 0, 5), Run(6, 5, 1, 1))),  # a skip
    ],
)
def test_runs_grow(runs: tuple[Run, ...], more: Run, expected: tuple[Run, ...]) -> None:
    assert extended(runs, more) == expected


@pytest.mark.parametrize("more", [Run(4, 5, 1), Run(5, 4, 1), Run(5, 5, 0)])
def test_runs_never_overlap(more: Run) -> None:
    with pytest.raises(ValueError, match=r"does not follow|at least one record"):
        extended((Run(0, 0, 5),), more)


def test_every_offset_is_found_both_ways() -> None:
    by_log = {
        run.first_log_offset + n: run.first_kafka_offset + n
        for run in RUNS
        for n in range(run.count)
    }
    for log_offset in range(25):
        run = run_of_log(RUNS, log_offset)
        expected = by_log.get(log_offset)
        assert (None if run is None else log_offset + run.difference) == expected
    for kafka_offset in range(90, 130):
        run = run_of_kafka(RUNS, kafka_offset)
        assert (run is not None) == (kafka_offset in by_log.values())
        if run is not None:
            assert by_log[kafka_offset - run.difference] == kafka_offset


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (123, RUNS),
        (122, (*RUNS[:2], Run(17, 120, 2, 2))),
        (120, RUNS[:2]),
        (117, RUNS[:2]),
        (111, (RUNS[0], Run(12, 110, 1, 2))),
        (101, (Run(0, 100, 1),)),
        (100, ()),
        (0, ()),
    ],
)
def test_runs_are_cut_where_kafka_ends(end: int, expected: tuple[Run, ...]) -> None:
    assert cut_at_kafka(RUNS, end) == expected
