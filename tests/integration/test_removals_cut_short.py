"""A removal that a crash or a failing disk cuts short: done when the log is opened again."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from duolog.errors import NotWritten, OffsetOutOfRange, UnknownTopic
from duolog.log import EmbeddedLog, LogOptions, open_log
from duolog.log.keys import LAST_OFFSET, record_key, time_key
from duolog.log.model import Record, Retention, TopicPartition, TopicSettings
from duolog.log.removals import load_removals
from tests.support.clock import ManualClock

RECORDS, KEPT_FROM = 20, 15
REMOVALS: dict[str, Callable[[EmbeddedLog], Any]] = {
    "retention": lambda log: log.enforce_retention("orders"),
    "clear": lambda log: log.clear_topic("orders"),
    "drop": lambda log: log.drop_topic("orders"),
}
STARTS = {"retention": KEPT_FROM, "clear": RECORDS, "drop": LAST_OFFSET}
NOT_DURABLE, DURABLE = ("publish.written",), ("publish.synced", "removal.shown", "removal.written")


class Faults:
    """Does something once at a point."""

    def __init__(self) -> None:
        self.at: str | None = None
        self.do: Callable[[], object] = lambda: None

    def __call__(self, point: str) -> None:
        if point == self.at:
            self.at = None
            self.do()

    def arm(self, point: str, do: Callable[[], object]) -> None:
        self.at, self.do = point, do


def filled(folder: Path, faults: Faults) -> EmbeddedLog:
    """A log in which retention takes the first 15 of 20 batches."""
    clock = ManualClock()
    log = open_log(folder, options=LogOptions(clock=clock, fault=faults))
    log.create_topic("other")
    log.create_topic("orders", TopicSettings(retention=Retention(seconds=4.5)))
    for name in ("other", "orders"):
        for n in range(RECORDS):
            clock.advance(seconds=1)
            log.publish(name, Record(b"%d" % n))
    return log


def held(log: EmbeddedLog, topic_id: int) -> tuple[int, int]:
    """How many batches, and how many entries of times, lie on the disk."""
    store, where = log._state.store, TopicPartition(topic_id, 0)
    records = store.scan_keys("records", record_key(where, 0), record_key(where, LAST_OFFSET))
    first, last = time_key(where, 0, 0), time_key(where, LAST_OFFSET, LAST_OFFSET)
    return len(records), len(store.scan_keys("times", first, last))


def is_whole(log: EmbeddedLog, topic_id: int, start: int) -> None:
    """The removal is complete, and nothing else went."""
    assert load_removals(log._state.store) == []
    left = max(0, RECORDS - start)
    assert held(log, topic_id) == (left, left)
    if start == LAST_OFFSET:
        with pytest.raises(UnknownTopic):
            log.fetch("orders", 0, 0)
    else:
        assert log.offsets("orders")[0].start == start
        assert log.fetch("orders", 0, start).count == left
        with pytest.raises(OffsetOutOfRange):
            log.fetch("orders", 0, start - 1)
        assert log.publish("orders", Record(b"next"))[0].offset == RECORDS
        assert log.fetch("orders", 0, RECORDS).count == 1
    assert log.fetch("other", 0, 0).count == RECORDS
    log.check_whole()


@pytest.mark.parametrize("point", NOT_DURABLE + DURABLE)
@pytest.mark.parametrize("removal", REMOVALS)
def test_a_crash_in_a_removal(tmp_path: Path, removal: str, point: str) -> None:
    faults = Faults()
    with filled(tmp_path / "log", faults) as log:
        topic_id = log.topic("orders").id
        faults.arm(point, lambda: shutil.copytree(tmp_path / "log", tmp_path / "crashed"))
        REMOVALS[removal](log)
        is_whole(log, topic_id, STARTS[removal])
    (tmp_path / "crashed" / "owner.lock").unlink()
    with open_log(tmp_path / "crashed") as log:
        # What was written without a sync is there after a crash of the process; it may go with
        # the machine's. A reader was told of neither.
        is_whole(log, topic_id, STARTS[removal])


@pytest.mark.parametrize("removal", REMOVALS)
def test_a_removal_whose_last_write_fails_is_done_by_the_next_write(
    tmp_path: Path, removal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = Faults()
    with filled(tmp_path / "log", faults) as log:
        topic_id, store = log.topic("orders").id, log._state.store

        def fail_writes() -> None:
            def write(handle: Any) -> None:
                monkeypatch.undo()
                raise OSError(5, "Input/output error")

            class Failing:
                """The database, but for one write."""

                def __getattr__(self, name: str) -> Any:
                    return write if name == "write" else getattr(database, name)

            database = store._database
            monkeypatch.setattr(store, "_database", Failing())

        faults.arm("removal.shown", fail_writes)
        REMOVALS[removal](log)  # it is durable: nobody is told of a failure
        assert store.in_doubt
        log.publish("other", Record(b"a write"))
        assert held(log, topic_id)[0] == max(0, RECORDS - STARTS[removal])
        assert load_removals(store) == []


@pytest.mark.parametrize("removal", REMOVALS)
def test_a_removal_whose_sync_fails_leaves_all_or_nothing(tmp_path: Path, removal: str) -> None:
    faults = Faults()
    with filled(tmp_path / "log", faults) as log:
        topic_id = log.topic("orders").id

        def fail() -> None:
            raise OSError(5, "Input/output error")

        faults.arm("store.sync", fail)
        try:
            REMOVALS[removal](log)
        except NotWritten:
            assert log.fetch("orders", 0, 0).count == RECORDS
            REMOVALS[removal](log)
        is_whole(log, topic_id, STARTS[removal])
