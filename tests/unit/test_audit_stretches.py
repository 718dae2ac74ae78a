"""What an audit compares, and what it finds wrong before it has read a record."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duolog.bridge.kafka.audit.report import Finding
from duolog.bridge.kafka.audit.stretches import (
    SAMPLE_RECORDS,
    Edges,
    Stretch,
    holes,
    layout,
    sampled,
    skips_without_holes,
)
from duolog.log.mirror_model import Mirror, MirrorTarget, Run, Skip, SkipReason


def mirror(*runs: Run, skips: tuple[Skip, ...] = (), begin: tuple[int, int] = (0, 0)) -> Mirror:
    target = MirrorTarget("cluster", "shop", "id", 7, 0, *begin)
    return Mirror("shop", 0, 1, target, runs, skips)


FIRST, SECOND = Run(0, 0, 10), Run(10, 13, 5)


def test_runs_within_both_logs_are_compared_whole() -> None:
    found = layout(mirror(FIRST, SECOND), Edges(0, 17), Edges(0, 18))
    assert found.stretches == (Stretch(0, 0, 10), Stretch(10, 13, 5))
    assert (found.records, found.pending, found.skipped, found.wrong) == (15, 2, 0, ())


def test_what_retention_took_from_the_log_is_counted_and_not_compared() -> None:
    found = layout(mirror(FIRST, SECOND), Edges(4, 15), Edges(1, 18))
    assert found.stretches == (Stretch(4, 4, 6), Stretch(10, 13, 5))
    assert (found.not_comparable, found.wrong) == (3, ())


def test_what_retention_took_from_both_is_nothing() -> None:
    found = layout(mirror(FIRST, SECOND), Edges(12, 15), Edges(15, 18))
    assert found.stretches == (Stretch(12, 15, 3),)
    assert (found.not_comparable, found.wrong) == (0, ())


def test_skips_are_accounted_for_and_what_waits_behind_the_runs_is_pending() -> None:
    skips = (Skip(10, 2, SkipReason.TOO_LARGE), Skip(20, 1, SkipReason.TIME_REFUSED))
    found = layout(mirror(FIRST, Run(12, 10, 3), skips=skips), Edges(0, 30), Edges(0, 13))
    assert (found.pending, found.skipped, found.wrong) == (15, 3, ())


@pytest.mark.parametrize(
    ("runs", "log", "kafka", "finding", "offset"),
    [
        ((FIRST, Run(9, 13, 5)), Edges(0, 15), Edges(0, 18), Finding.RUNS_OVERLAP, 9),
        ((FIRST, Run(10, 9, 5)), Edges(0, 15), Edges(0, 14), Finding.RUNS_OVERLAP, 10),
        ((FIRST, SECOND), Edges(0, 15), Edges(0, 16), Finding.RUN_BEYOND_KAFKA, 13),
        ((FIRST, SECOND), Edges(0, 14), Edges(0, 18), Finding.RUN_BEYOND_LOG, 14),
        ((FIRST, Run(12, 13, 5)), Edges(0, 17), Edges(0, 18), Finding.NOT_ACCOUNTED_FOR, 10),
        ((Run(2, 0, 8),), Edges(0, 10), Edges(0, 8), Finding.NOT_ACCOUNTED_FOR, 0),
        ((FIRST, SECOND), Edges(0, 15), Edges(4, 18), Finding.MISSING_IN_KAFKA, 0),
        ((FIRST, SECOND), Edges(2, 15), Edges(4, 18), Finding.MISSING_IN_KAFKA, 2),
    ],
)
def test_what_is_wrong_with_runs(
    runs: tuple[Run, ...], log: Edges, kafka: Edges, finding: Finding, offset: int
) -> None:
    (wrong,) = layout(mirror(*runs), log, kafka).wrong
    assert (wrong.finding, wrong.log_offset) == (finding, offset)


@pytest.mark.parametrize(
    ("told", "kafka", "expected"),
    [
        (mirror(FIRST, SECOND), Edges(0, 18), [Edges(10, 13)]),
        (mirror(FIRST, SECOND), Edges(11, 20), [Edges(11, 13), Edges(18, 20)]),
        (mirror(FIRST, SECOND), Edges(14, 18), []),
        (mirror(Run(5, 30, 2), begin=(5, 28)), Edges(0, 32), [Edges(28, 30)]),
        (mirror(begin=(5, 28)), Edges(0, 28), []),
        (mirror(begin=(5, 28)), Edges(0, 30), [Edges(28, 30)]),
    ],
)
def test_holes_are_what_no_run_has_since_the_mirror_began(
    told: Mirror, kafka: Edges, expected: list[Edges]
) -> None:
    assert list(holes(told, kafka)) == expected


@given(
    counts=st.lists(st.integers(1, 1_000), max_size=5),
    records=st.integers(1, 3_000),
    seed=st.integers(0, 100),
)
def test_a_sample_is_a_part_with_both_ends(counts: list[int], records: int, seed: int) -> None:
    stretches = [Stretch(at * 10_000, at * 20_000, count) for at, count in enumerate(counts)]
    chosen = sampled(stretches, records, seed)
    offsets = [offset for each in chosen for offset in range(each.log_offset, each.next_log_offset)]
    whole = [o for each in stretches for o in range(each.log_offset, each.next_log_offset)]
    assert set(offsets) <= set(whole)
    assert offsets == sorted(set(offsets))
    assert all(each.kafka_offset - each.log_offset == each.log_offset // 10_000 * 10_000
               for each in chosen)  # fmt: skip
    if whole:
        assert (offsets[0], offsets[-1]) == (whole[0], whole[-1])
        assert len(offsets) <= max(records, SAMPLE_RECORDS) + 2 * SAMPLE_RECORDS


def test_a_sample_of_more_than_there_is_is_all_of_it() -> None:
    stretches = (Stretch(0, 0, 250), Stretch(300, 400, 20))
    chosen = sampled(stretches, 10_000)
    assert sum(each.count for each in chosen) == 270


@pytest.mark.parametrize(
    ("log_holes", "start", "missing_from"),
    [
        ([(10, 20)], 0, None),
        ([(15, 20), (10, 15)], 0, None),
        ([(0, 30)], 0, None),
        ([], 20, None),  # retention has taken the hole
        ([(15, 20)], 15, None),
        ([], 0, 10),
        ([(10, 15)], 0, 15),
        ([(11, 20)], 0, 10),
    ],
)
def test_what_is_passed_over_as_damaged_is_a_hole_of_the_log(
    log_holes: list[tuple[int, int]], start: int, missing_from: int | None
) -> None:
    told = mirror(FIRST, skips=(Skip(10, 10, SkipReason.DAMAGED), Skip(30, 1, SkipReason.GONE)))
    found = list(skips_without_holes(told, Edges(start, 40), log_holes))
    assert [each.log_offset for each in found] == ([] if missing_from is None else [missing_from])
    assert {each.finding for each in found} <= {Finding.NOT_ACCOUNTED_FOR}
