"""Publishing without a thread that waits: told once, from the committer, when it is durable."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from duolog.errors import (
    DuologError,
    InvalidRequest,
    LogClosed,
    RecordTooLarge,
    SequenceContentMismatch,
    UnknownTopic,
)
from duolog.log import EmbeddedLog, LogOptions, open_log
from duolog.log.model import Placed, Record

DEADLINE_SECONDS = 30
ONE = [Record(b"v", key=b"k")]


class Told:
    """What callers were told, and from which thread."""

    def __init__(self) -> None:
        self._told: queue.Queue[tuple[Any, BaseException | None, str]] = queue.Queue()

    def __call__(self, result: Any, error: BaseException | None) -> None:
        self._told.put((result, error, threading.current_thread().name))

    def next(self) -> tuple[Any, BaseException | None, str]:
        return self._told.get(timeout=DEADLINE_SECONDS)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    with open_log(tmp_path / "log") as opened:
        opened.create_topic("orders")
        yield opened


def test_the_caller_is_told_where_it_lies_and_it_can_be_read(log: EmbeddedLog) -> None:
    told = Told()
    log.publish_then("orders", ONE, told)
    placed, error, thread = told.next()
    assert (placed, error, thread) == ((Placed("orders", 0, 0),), None, "duolog-committer")
    assert [record.value for record in log.fetch("orders", 0, 0)] == [b"v"]


def test_a_told_record_survives_whatever_comes_then(tmp_path: Path) -> None:
    told = Told()
    with open_log(tmp_path / "log") as log:
        log.create_topic("orders")
        log.publish_then("orders", ONE, told)
    assert told.next()[1] is None  # closing finishes what is waiting
    with open_log(tmp_path / "log") as log:
        assert log.offsets("orders")[0].next_offset == 1


def test_those_who_come_during_a_sync_share_the_next_one(tmp_path: Path) -> None:
    in_write, may_go = threading.Event(), threading.Event()

    def fault(point: str) -> None:
        if point == "publish.written":
            in_write.set()
            assert may_go.wait(DEADLINE_SECONDS)

    with open_log(tmp_path / "log", options=LogOptions(fault=fault)) as log:
        may_go.set()
        log.create_topic("orders")
        in_write.clear()
        may_go.clear()
        told = Told()
        log.publish_then("orders", ONE, told)
        assert in_write.wait(DEADLINE_SECONDS)
        before = log.stats().syncs
        for _ in range(50):
            log.publish_then("orders", ONE, told)
        may_go.set()
        offsets = [told.next()[0][0].offset for _ in range(51)]
        assert offsets == list(range(51))
        assert log.stats().syncs - before == 2


@pytest.mark.parametrize(
    ("publish", "error"),
    [
        (lambda log, told: log.publish_then("none", ONE, told), UnknownTopic),
        (
            lambda log, told: log.publish_then("orders", [Record(b"v" * (2 << 20))], told),
            RecordTooLarge,
        ),
        (lambda log, told: log.publish_then("orders", ONE, told, writer="w"), InvalidRequest),
    ],
)
def test_what_can_be_refused_at_once_is_raised(
    log: EmbeddedLog, publish: Callable[[EmbeddedLog, Told], None], error: type[DuologError]
) -> None:
    def tell(*_: object) -> None:
        raise AssertionError("it was raised already")

    with pytest.raises(error):
        publish(log, tell)  # type: ignore[arg-type]


def test_what_the_committer_refuses_is_told(log: EmbeddedLog) -> None:
    once, again, other = Told(), Told(), Told()
    log.publish_then("orders", ONE, once, writer="w", sequence=0)
    log.publish_then("orders", ONE, again, writer="w", sequence=0)
    log.publish_then("orders", [Record(b"other")], other, writer="w", sequence=0)
    assert once.next()[0] == again.next()[0]
    assert isinstance(other.next()[1], SequenceContentMismatch)
    assert log.offsets("orders")[0].next_offset == 1


def test_no_records_are_no_work(log: EmbeddedLog) -> None:
    told = Told()
    syncs = log.stats().syncs
    log.publish_then("orders", [], told)
    assert told.next()[:2] == ((), None)
    assert log.stats().syncs == syncs


def test_a_closed_log_takes_nothing(tmp_path: Path) -> None:
    with open_log(tmp_path / "log") as log:
        log.create_topic("orders")
    with pytest.raises(LogClosed):
        log.publish_then("orders", ONE, Told())


def test_the_committer_answers_without_writing(log: EmbeddedLog) -> None:
    told = Told()
    syncs = log.stats().syncs
    log.committer_answers(told)
    assert told.next() == (None, None, "duolog-committer")
    assert log.stats().syncs == syncs


def test_the_committer_does_not_answer_before_its_write_is_through(tmp_path: Path) -> None:
    told = Told()
    opened: list[EmbeddedLog] = []

    def ask(point: str) -> None:
        """In the middle of a write, in the committer's own thread."""
        if point == "publish.written" and opened:
            opened[0].committer_answers(told)

    with open_log(tmp_path / "log", options=LogOptions(fault=ask)) as log:
        log.create_topic("orders")
        opened.append(log)
        log.publish_then("orders", ONE, told)
        assert told.next()[0] == (Placed("orders", 0, 0),)
        assert told.next()[:2] == (None, None)
