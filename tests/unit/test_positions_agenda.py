"""When a group is looked at again."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from duolog.bridge.kafka.feed.records import MembersChanged, OffsetCommitted
from duolog.bridge.kafka.positions.agenda import REST_SECONDS, Agenda
from duolog.bridge.kafka.positions.native_moves import NativeMoves
from duolog.bridge.kafka.positions.stored_watch import StoredWatch
from duolog.errors import LogClosed
from duolog.log.embedded import open_log
from duolog.log.groups_seen import KafkaSeen
from duolog.log.model import Record


class Seconds:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


def test_what_is_added_is_due_once() -> None:
    agenda = Agenda(Seconds())
    agenda.add("billing", "orders")
    agenda.add("billing")
    assert agenda.has_due()
    assert agenda.due(10) == ["billing", "orders"]
    assert not agenda.has_due()
    assert agenda.due(10) == []


def test_a_commit_is_looked_at_and_members_only_where_somebody_waits() -> None:
    clock = Seconds()
    agenda = Agenda(clock, again_seconds=5)
    agenda.hear(OffsetCommitted("billing", "orders", 0, 7))
    agenda.hear(MembersChanged("orders"))
    assert agenda.due(10) == ["billing"]
    agenda.keep("billing", at_once=False, waits=True)
    assert not agenda.has_due()
    agenda.hear(MembersChanged("billing"))
    assert agenda.due(10) == ["billing"]


def test_who_waits_comes_up_again_later_and_who_did_something_at_once() -> None:
    clock = Seconds()
    agenda = Agenda(clock, again_seconds=5)
    agenda.keep("waits", at_once=False, waits=True)
    agenda.keep("moved", at_once=True, waits=False)
    agenda.keep("rests", at_once=False, waits=False)
    assert agenda.due(10) == ["moved"]
    clock.at += 5
    assert agenda.due(10) == ["waits"]


def test_who_has_moved_on_both_sides_has_time_until_its_members_change() -> None:
    clock = Seconds()
    agenda = Agenda(clock)
    agenda.rest("billing")
    clock.at += REST_SECONDS / 2
    agenda.rest("billing")
    assert not agenda.has_due()
    clock.at += REST_SECONDS / 2
    assert agenda.due(10) == ["billing"], "half a second after the first move"
    agenda.rest("billing")
    agenda.hear(MembersChanged("billing"))
    assert agenda.due(10) == ["billing"], "others go on there"
    agenda.rest("billing")
    agenda.hear(OffsetCommitted("billing", "orders", 0, 7))
    assert agenda.due(10) == ["billing"]
    agenda.add("billing")
    agenda.rest("billing")
    assert agenda.has_due(), "an earlier time stays"


def test_what_has_changed_goes_before_what_may_have() -> None:
    agenda = Agenda(Seconds())
    agenda.add_all(["a", "b", "c"])
    agenda.add("changed")
    agenda.hear(OffsetCommitted("b", "orders", 0, 7))
    assert set(agenda.due(2)) == {"changed", "b"}
    assert agenda.due(1) == ["a"]
    assert agenda.due(5) == ["c"]


def test_a_later_time_does_not_put_off_an_earlier_one() -> None:
    agenda = Agenda(Seconds(), again_seconds=5)
    agenda.add("billing")
    agenda.keep("billing", at_once=False, waits=True)
    assert agenda.due(10) == ["billing"]


def test_native_moves_are_found_and_memories_are_none(tmp_path: Path) -> None:
    with open_log(tmp_path / "log") as log:
        log.create_topic("orders")
        log.publish("orders", [Record(b"x")] * 10)
        log.ack("billing", "orders", 1)
        moves = NativeMoves(log, lambda: log.stats().positions_stored, Seconds(), share=0.05)
        assert groups(moves) == ["billing"]
        assert groups(moves) == []
        log.ack("billing", "orders", 2)
        log.ack("audit", "orders", 2)
        assert groups(moves) == ["audit", "billing"]
        log.remember_kafka("billing", "orders", 0, KafkaSeen(foreign=1), expected_version=2)
        assert groups(moves) == []
        log.seek("billing", "orders", 0, 0)
        assert groups(moves) == ["billing"]


def test_native_moves_are_looked_for_rarely_when_looking_takes_long(tmp_path: Path) -> None:
    class Slow(Seconds):
        def __call__(self) -> float:
            self.at += 1
            return self.at

    clock = Slow()
    with open_log(tmp_path / "log") as log:
        log.create_topic("orders")
        log.publish("orders", [Record(b"x")] * 10)
        moves = NativeMoves(log, lambda: log.stats().positions_stored, clock, share=0.05)
        log.ack("billing", "orders", 1)
        assert groups(moves) == ["billing"], "took a second"
        log.ack("billing", "orders", 2)
        began = clock.at
        while not moves.moved():
            assert clock.at < began + 30
        assert clock.at > began + 15, "a twentieth of the time"


def test_a_watch_knows_what_is_stored(tmp_path: Path) -> None:
    with open_log(tmp_path / "log") as log:
        log.create_topic("orders")
        log.publish("orders", [Record(b"x")] * 10)
        with closing(StoredWatch(log, rest_seconds=0.01)) as watch:
            assert watch.stored() == 0
            log.ack("billing", "orders", 1)
            until(lambda: watch.stored() == 1)
            log.ack("billing", "orders", 2)
            until(lambda: watch.stored() == 2)


def test_a_watch_tells_why_it_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object) -> int:
        raise LogClosed("The log has been closed.")

    with open_log(tmp_path / "log") as log:
        monkeypatch.setattr(log, "wait_for_positions", gone)
        with closing(StoredWatch(log, rest_seconds=0.01)) as watch, pytest.raises(LogClosed):
            until(lambda: watch.stored() == 1)


def test_what_waits_for_members_to_change_is_looked_at_then_and_not_before() -> None:
    now = Seconds()
    agenda = Agenda(now)
    agenda.keep("begun", at_once=False, waits=False, until_members_change=True)
    now.at += 1000
    assert not agenda.has_due()
    agenda.hear(MembersChanged("begun"))
    assert agenda.due(9) == ["begun"]
    agenda.keep("begun", at_once=False, waits=False)
    agenda.hear(MembersChanged("begun"))
    assert not agenda.has_due()


def groups(moves: NativeMoves) -> list[str]:
    return sorted(each.group for each in moves.moved())


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)
