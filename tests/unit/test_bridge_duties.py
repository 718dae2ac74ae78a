"""What a host does by itself."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from duolog import open_log
from duolog.bridge.journal import Journal
from duolog.bridge.metrics.looked_up import LookedUp
from duolog.bridge.metrics.names import (
    GROUP_LAG,
    GROUP_LAG_SECONDS,
    GROUP_POSITION,
    GROUP_STALLED,
    RETENTION_HELD,
    RETENTION_LAST,
    RETENTION_RECORDS,
    RETENTION_RUNS,
    STAGED_SWEPT,
    TOPIC_NEXT,
    TOPIC_START,
    WRITERS_EXPIRED,
    WRITERS_REMEMBERED,
    Metric,
)
from duolog.bridge.metrics.tally import Tally
from duolog.bridge.serve.duties import Duties
from duolog.errors import NotWritten
from duolog.log import EmbeddedLog, LogOptions, record_files
from duolog.log.mirror_model import MirrorTarget
from duolog.log.mirror_modes import MirrorMode
from duolog.log.model import Record, Retention, TopicSettings
from tests.support.clock import ManualClock
from tests.support.records import BATCH, STREAM, part_of

DEADLINE_SECONDS = 30


class Minding:
    """A log, and what minds it."""

    def __init__(self, log: EmbeddedLog, clock: ManualClock) -> None:
        self.log = log
        self.clock = clock
        self.tally = Tally()
        self.said = io.StringIO()
        self.duties = Duties(
            log, clock, self.tally, Journal(self.said), retention_every_seconds=3600
        )


@pytest.fixture
def minding(tmp_path: Path) -> Iterator[Minding]:
    clock = ManualClock()
    with open_log(tmp_path / "log", options=LogOptions(clock=clock)) as log:
        log.create_topic("orders", TopicSettings(retention=Retention(seconds=60)))
        yield Minding(log, clock)


def test_a_run_of_retention_is_counted_and_told(minding: Minding) -> None:
    minding.log.publish("orders", [Record(b"old"), Record(b"old too")])
    minding.clock.advance(seconds=120)
    minding.log.publish("orders", [Record(b"new")])
    minding.duties.enforce_retention()
    assert minding.log.offsets("orders")[0].start == 2
    assert minding.tally.number(RETENTION_RECORDS, "orders") == 2
    assert minding.tally.number(RETENTION_RUNS, "done") == 1
    assert minding.tally.number(RETENTION_LAST) == minding.clock.now_ms() / 1000
    assert "retention.deleted topic=orders records=2" in minding.said.getvalue()
    minding.duties.enforce_retention()
    assert minding.said.getvalue().count("\n") == 1


def test_what_a_mirror_holds_back_is_shown_once_and_counted(minding: Minding) -> None:
    log = minding.log
    log.publish("orders", [Record(b"old"), Record(b"old too")])
    log.begin_mirror("orders", 0, MirrorTarget("c", "orders", "id", 7, 0, 0, 0))
    minding.clock.advance(seconds=120)
    for _ in range(2):
        minding.duties.enforce_retention()
        assert minding.tally.number(RETENTION_HELD, "orders") == 2
    assert minding.said.getvalue().count("retention.held topic=orders records=2") == 1
    assert "duolog mirror detach" in minding.said.getvalue()
    log.set_mirror_mode("orders", MirrorMode.DETACHED)
    minding.duties.enforce_retention()
    assert minding.tally.number(RETENTION_HELD, "orders") == 0
    assert minding.tally.number(RETENTION_RECORDS, "orders") == 2
    assert "retention.let_go topic=orders" in minding.said.getvalue()


def test_the_first_run_comes_at_once_and_stopping_does_not_wait_for_the_next(
    minding: Minding,
) -> None:
    minding.log.publish("orders", [Record(b"old")])
    minding.clock.advance(seconds=120)
    gone = threading.Event()
    stop_listening = minding.log.listen(lambda _: gone.set())
    with minding.duties:
        assert gone.wait(DEADLINE_SECONDS)
    stop_listening()
    assert minding.log.offsets("orders")[0].start == 1


def test_a_run_is_cancelled_by_stopping(minding: Minding, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = threading.Event()
    enforce = minding.log.enforce_retention

    def slowly(*, cancelled: Callable[[], bool]) -> Any:
        begun.set()
        while not cancelled():
            threading.Event().wait(0.001)
        return enforce(cancelled=cancelled)

    monkeypatch.setattr(minding.log, "enforce_retention", slowly)
    minding.duties.start()
    assert begun.wait(DEADLINE_SECONDS)
    minding.duties.stop()
    assert minding.tally.number(RETENTION_RUNS, "cancelled") == 1
    assert minding.tally.number(RETENTION_LAST) == 0


@pytest.mark.parametrize("error", [NotWritten("The disk failed."), RuntimeError("a bug")])
def test_a_run_that_fails_is_told_and_the_next_one_comes(
    minding: Minding, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    came_again = threading.Event()
    runs: list[int] = []

    def fail(**_: Any) -> None:
        runs.append(1)
        if len(runs) > 2:
            came_again.set()
        raise error

    monkeypatch.setattr(minding.log, "enforce_retention", fail)
    duties = Duties(
        minding.log,
        minding.clock,
        minding.tally,
        Journal(minding.said),
        retention_every_seconds=0.001,
    )
    with duties:
        assert came_again.wait(DEADLINE_SECONDS)
    assert minding.tally.number(RETENTION_RUNS, "failed") >= 3
    assert f"{type(error).__name__}: {error}" in minding.said.getvalue()


def test_writers_that_are_forgotten_are_counted_and_told(minding: Minding) -> None:
    log, clock = minding.log, minding.clock
    log.publish("orders", Record(b"v"), writer="idle", sequence=0)
    log.append(BATCH, 0, [])
    clock.advance(seconds=8 * 24 * 3600)
    log.publish("orders", Record(b"v"), writer="alive", sequence=0)
    log.append(STREAM, 0, [])
    minding.duties.enforce_retention()
    clock.advance(seconds=3600)
    minding.duties.enforce_retention()
    assert "writers.expired publishers=1 batch_writers=1" in minding.said.getvalue()
    samples = LookedUp(log, clock).samples()
    assert samples[WRITERS_REMEMBERED] == [(("publisher",), 1), (("batch",), 0), (("stream",), 1)]
    assert samples[WRITERS_EXPIRED] == [(("publisher",), 1), (("batch",), 1)]


def test_staged_parts_that_nobody_needs_are_swept(
    minding: Minding, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(minding.log, "sweep_staged", lambda: 3)
    minding.duties.sweep()
    assert minding.tally.number(STAGED_SWEPT) == 3
    assert "staging.swept folders=3" in minding.said.getvalue()


def test_lag_in_records_and_seconds(minding: Minding) -> None:
    log, clock = minding.log, minding.clock
    looked_up = LookedUp(log, clock)
    labels = ("g", "orders", "0", "native")

    def of_group() -> dict[Metric, float]:
        found = looked_up.samples()
        return {
            metric: dict(found[metric])[labels]
            for metric in (GROUP_POSITION, GROUP_LAG, GROUP_LAG_SECONDS, GROUP_STALLED)
        }

    log.publish("orders", [Record(b"a")])
    log.ack("g", "orders", 0)
    clock.advance(seconds=5)
    assert list(of_group().values()) == [1, 0, 0, 0]
    log.publish("orders", [Record(b"b"), Record(b"c")])
    clock.advance(seconds=10)
    assert list(of_group().values()) == [1, 2, 10, 15]
    clock.advance(seconds=10)
    assert list(of_group().values()) == [1, 2, 20, 25]  # a stall is never flat
    log.ack("g", "orders", 1)
    assert list(of_group().values()) == [2, 1, 20, 0]
    log.ack("g", "orders", 2)
    clock.advance(seconds=100)
    assert list(of_group().values()) == [3, 0, 0, 0]


def test_lag_counts_only_what_is_kept(minding: Minding) -> None:
    log, clock = minding.log, minding.clock
    log.publish("orders", [Record(b"a")])
    log.ack("g", "orders", 0)
    log.seek("g", "orders", 0, 0)
    clock.advance(seconds=120)
    log.publish("orders", [Record(b"b")])
    log.enforce_retention()
    found = LookedUp(log, clock).samples()
    assert found[GROUP_LAG] == [(("g", "orders", "0", "native"), 1)]
    assert found[TOPIC_START] == [(("orders", "0"), 1)]
    assert found[TOPIC_NEXT] == [(("orders", "0"), 2)]


def test_a_clock_that_goes_back_makes_no_negative_lag(minding: Minding) -> None:
    log, clock = minding.log, minding.clock
    log.publish("orders", [Record(b"a"), Record(b"b")])
    log.ack("g", "orders", 0)
    clock.advance(seconds=-1000)
    found = LookedUp(log, clock).samples()
    assert [each[0][1] for each in (found[GROUP_LAG_SECONDS], found[GROUP_STALLED])] == [0, 0]


def test_small_tables_are_joined(minding: Minding, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_files, "SHARE_BYTES", 100)
    topic = minding.log.topic("orders")
    for epoch in range(6):
        minding.log.append(STREAM, epoch, [part_of(topic, {0: [b"%d" % epoch + bytes(500)] * 20})])
    minding.duties.join_small_tables()
    assert "tables.joined tables=6" in minding.said.getvalue()
    minding.duties.join_small_tables()
    assert minding.said.getvalue().count("tables.joined") == 1
    assert minding.log.check_whole().records == 120
