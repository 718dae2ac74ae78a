"""Metrics of the mirror: from what the worker says, over its restarts, and from its silence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from duolog.bridge.kafka.mirror.partition import Phase
from duolog.bridge.metrics import names
from duolog.bridge.metrics.mirrored import (
    PHASES,
    SILENT_AFTER_SECONDS,
    Mirrored,
    MirrorState,
    after,
    samples_of,
)
from duolog.bridge.metrics.names import Metric
from tests.support.clock import ManualClock


class _StandingClock(ManualClock):
    """Nothing waits for it here, so that its deadlines need not be real."""

    def monotonic(self) -> float:
        return self.at_ms / 1000


BEGIN = MirrorState(heard_at=100.0)
CONNECTING = {"state": "connecting", "partitions": {}, "topics": {}, "behind": 0}
ALL_THERE = {
    "state": "mirroring",
    "partitions": {"mirroring": 2},
    "topics": {"orders": 0},
    "behind": 0,
    "skipped": 0,
    "foreign": 0,
    "stands_seconds": 0.0,
    "has_got_on": True,
}
Said = tuple[int, float, Mapping[str, Any]]  # run, when, what


def behind(count: int, stands_seconds: float, *, has_got_on: bool = True) -> Mapping[str, Any]:
    told = {"topics": {"orders": count}, "behind": count, "has_got_on": has_got_on}
    return {**ALL_THERE, **told, "stands_seconds": stands_seconds}


def told(*said: Said) -> MirrorState:
    state = BEGIN
    for run, when, status in said:
        state = after(state, run, status, when)
    return state


def number(state: MirrorState, metric: Metric, now: float, *labels: str) -> float:
    return dict(samples_of(state, now)[metric])[labels]


def test_phases_are_those_of_the_mirror() -> None:
    assert set(PHASES) == {each.value for each in Phase}


def test_figures_are_what_the_worker_said_last() -> None:
    status = {
        **behind(7, 2.0),
        "partitions": {"mirroring": 3, "halted": 1},
        "topics": {"orders": 5},
        "behind_elsewhere": 2,
        "all_topics": False,
        "skipped": 4,
        "foreign": 6,
        "groups": {"watching": True, "pending": 8, "refused_groups": 9},
    }
    found = samples_of(told((1, 101.0, ALL_THERE), (1, 102.0, status)), 102.0)
    assert found == {
        names.MIRROR_PARTITIONS: [
            *((("mirroring",), 3), (("recovering",), 0), (("halted",), 1), (("paused",), 0))
        ],
        names.MIRROR_BEHIND: [(("orders",), 5), (("",), 2)],
        names.MIRROR_STANDS: [((), 2.0)],
        names.MIRROR_SKIPPED: [((), 4)],
        names.MIRROR_FOREIGN: [((), 6)],
        names.MIRROR_GROUPS: [(("pending",), 8), (("refused",), 9)],
        names.MIRROR_WATCHING: [((), 1.0)],
    }
    assert set(found) == {each for each in names.METRICS if each.only_when_told}


def test_what_is_behind_stays_while_a_new_worker_connects() -> None:
    state = told((1, 101.0, behind(7, 2.0)), (2, 110.0, CONNECTING))
    assert number(state, names.MIRROR_BEHIND, 110.0, "orders") == 7
    assert number(state, names.MIRROR_PARTITIONS, 110.0, "mirroring") == 0


@pytest.mark.parametrize(
    ("said", "now", "stands"),
    [
        pytest.param([], 101.0, 0, id="waited for"),
        pytest.param([], 130.0, 30, id="never heard of"),
        pytest.param([(1, 101.0, ALL_THERE)], 105.0, 0, id="nothing behind"),
        pytest.param([(1, 101.0, ALL_THERE)], 161.0, 60, id="nothing behind, then silent"),
        pytest.param([(1, 101.0, behind(9, 0.0))], 101.5, 0.5, id="gets on"),
        pytest.param([(1, 101.0, behind(9, 7.0))], 104.0, 10, id="stands"),
        pytest.param(
            [(1, 101.0, behind(9, 7.0)), (1, 105.0, behind(9, 0.5))], 105.0, 0.5, id="got on again"
        ),
        pytest.param([(1, 101.0, {**behind(9, 0.0), "behind_paused": 9})], 105.0, 0, id="paused"),
        pytest.param(
            [(1, 101.0, {**behind(9, 7.0), "behind_paused": 8})], 104.0, 10, id="some paused"
        ),
        pytest.param([(1, 110.0, CONNECTING)], 130.0, 30, id="never connected"),
        pytest.param(
            [(1, 101.0, ALL_THERE), (2, 150.0, CONNECTING), (2, 160.0, CONNECTING)],
            160.0,
            59,
            id="does not connect any more",
        ),
        pytest.param(
            [
                (1, 110.0, behind(9, 2.0)),
                (2, 150.0, behind(9, 1.0, has_got_on=False)),
                (3, 190.0, behind(9, 1.0, has_got_on=False)),
            ],
            190.0,
            82,
            id="a worker that starts again and again does not get on",
        ),
        pytest.param(
            [(1, 110.0, ALL_THERE), (2, 150.0, behind(9, 1.0, has_got_on=False))],
            150.0,
            40,
            id="a worker that was away",
        ),
        pytest.param(
            [(1, 110.0, behind(9, 2.0)), (2, 150.0, behind(9, 1.0))], 150.0, 1, id="and gets on"
        ),
        pytest.param(
            [
                (1, 110.0, behind(9, 2.0)),
                (2, 150.0, {**ALL_THERE, "partitions": {"recovering": 1, "mirroring": 1}}),
            ],
            150.0,
            42,
            id="not known yet whether something is behind",
        ),
        pytest.param(
            [(1, 101.0, CONNECTING), (1, 102.0, {**CONNECTING, "state": "mirroring"})],
            110.0,
            0,
            id="an empty log",
        ),
        pytest.param(
            [(1, 110.0, ALL_THERE), (1, 111.0, {"state": "failed", "error": "…"})],
            112.0,
            2,
            id="ended",
        ),
    ],
)
def test_a_stall_is_never_flat(said: list[Said], now: float, stands: float) -> None:
    assert number(told(*said), names.MIRROR_STANDS, now) == stands


@pytest.mark.parametrize(
    ("said", "foreign", "skipped"),
    [
        pytest.param([(1, 5, 3)], 5, 3, id="one run"),
        pytest.param([(1, 5, 3), (2, 0, 0)], 5, 3, id="a run that knows nothing yet"),
        pytest.param([(1, 5, 3), (2, 0, 0), (2, 2, 3)], 7, 3, id="skips are found again"),
        pytest.param([(1, 5, 3), (2, 2, 3), (2, 2, 4)], 7, 4, id="a new skip"),
        pytest.param([(1, 5, 3), (2, 2, 3), (3, 1, 3)], 8, 3, id="three runs"),
        pytest.param([(1, 5, 3), (3, 1, 3)], 6, 3, id="a run that said nothing"),
    ],
)
def test_counters_never_go_down(
    said: list[tuple[int, int, int]], foreign: int, skipped: int
) -> None:
    state, before = BEGIN, (0.0, 0.0)
    for run, foreign_said, skipped_said in said:
        status = {**ALL_THERE, "foreign": foreign_said, "skipped": skipped_said}
        state = after(state, run, status, 101.0)
        counted = (
            number(state, names.MIRROR_FOREIGN, 101.0),
            number(state, names.MIRROR_SKIPPED, 101.0),
        )
        assert all(now >= then for now, then in zip(counted, before, strict=True))
        before = counted
    assert before == (foreign, skipped)


@pytest.mark.parametrize(
    "status",
    [
        {"state": "failed", "code": "KafkaRefused", "error": "…"},
        {"partitions": 3},
        {"partitions": ["mirroring"], "topics": {"orders": "many"}},
        {},
    ],
)
def test_what_is_no_status_changes_no_figure(status: Mapping[str, Any]) -> None:
    before = told((1, 101.0, {**behind(7, 2.0), "skipped": 1, "foreign": 2}))
    state = after(before, 1, status, 101.0)
    assert samples_of(state, 101.0) == samples_of(before, 101.0)


def test_wrong_figures_count_as_none() -> None:
    status = {**ALL_THERE, "topics": {"orders": "many"}, "skipped": -1, "foreign": None}
    found = samples_of(after(BEGIN, 1, {**status, "groups": 3}, 101.0), 101.0)
    assert found[names.MIRROR_BEHIND] == [(("orders",), 0)]
    assert found[names.MIRROR_SKIPPED] == found[names.MIRROR_FOREIGN] == [((), 0)]


def test_silence_counts_from_when_the_host_started() -> None:
    clock = _StandingClock()
    mirrored = Mirrored(clock)
    clock.advance(seconds=SILENT_AFTER_SECONDS)
    assert mirrored.samples()[names.MIRROR_STANDS] == [((), 0)]
    clock.advance(seconds=1)
    assert mirrored.samples()[names.MIRROR_STANDS] == [((), SILENT_AFTER_SECONDS + 1)]
    mirrored.hear(1, ALL_THERE)
    assert mirrored.samples()[names.MIRROR_STANDS] == [((), 0)]
