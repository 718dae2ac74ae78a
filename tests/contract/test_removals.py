"""Readers beside retention, CLEAR and DROP: what is gone is named as gone, never as damage."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from duolog.errors import DuologError, OffsetOutOfRange, UnknownTopic
from duolog.log.access import LogAccess
from duolog.log.model import AtOffset, AtTimestamp, Earliest, Record, Retention
from tests.contract.conftest import Form
from tests.support.records import STREAM, part_of

DEADLINE_SECONDS = 60
BATCHES, ROWS = 20, 10

REMOVALS: dict[str, Callable[[LogAccess], Any]] = {
    "retention": lambda log: log.enforce_retention("orders"),
    "clear": lambda log: log.clear_topic("orders"),
    "drop": lambda log: log.drop_topic("orders"),
}
POINTS = ("publish.written", "publish.synced", "removal.shown", "removal.written")


def fill(log: LogAccess, form: Form) -> int:
    """A topic that retention takes three quarters of; its id."""
    topic = log.create_topic("orders")
    for epoch in range(BATCHES):
        form.clock.advance(seconds=60)
        content = [b"%d" % (epoch * ROWS + n) for n in range(ROWS)]
        log.append(STREAM, epoch, [part_of(topic, {0: content}, ts_ms=form.clock.at_ms)])
    log.set_retention("orders", Retention(seconds=60 * BATCHES / 4))
    return topic.id


def reads(topic_id: int, from_ms: int) -> dict[str, Callable[[LogAccess], Any]]:
    """Every way to read, from where records go, and from where they stay."""
    found: dict[str, Callable[[LogAccess], Any]] = {
        "offsets": lambda log: log.offsets(topic_id),
        "earliest": lambda log: log.resolve(topic_id, 0, Earliest()),
        "wait": lambda log: log.wait_for_append({(topic_id, 0): 5}, 0),
    }
    for offset in (0, 5, 100, 139, 140, 199):
        found |= _reads_at(topic_id, offset, from_ms + offset // ROWS * 60_000)
    return found


def _reads_at(topic_id: int, offset: int, ts_ms: int) -> dict[str, Callable[[LogAccess], Any]]:
    return {
        f"fetch {offset}": lambda log: log.fetch(topic_id, 0, offset),
        f"few {offset}": lambda log: log.fetch(topic_id, 0, offset, max_records=3),
        f"encoded {offset}": lambda log: log.fetch_encoded(topic_id, 0, offset),
        f"offset {offset}": lambda log: log.resolve(topic_id, 0, AtOffset(offset)),
        f"time {offset}": lambda log: log.resolve(topic_id, 0, AtTimestamp(ts_ms)),
    }


def outcome(read: Callable[[LogAccess], Any], log: LogAccess) -> str:
    try:
        read(log)
    except DuologError as error:
        return type(error).__name__
    return "read"


@pytest.mark.parametrize("removal", REMOVALS)
def test_at_each_step_of_a_removal_every_read_is_answered_rightly(form: Form, removal: str) -> None:
    seen: dict[str, dict[str, str]] = {}
    armed = threading.Event()

    def at_point(point: str) -> None:
        if armed.is_set() and point in POINTS:
            with ThreadPoolExecutor(1) as readers:  # the committer itself stands still meanwhile
                for name, read in everything.items():
                    seen.setdefault(point, {})[name] = readers.submit(outcome, read, log).result(
                        DEADLINE_SECONDS
                    )

    form.configure(fault=at_point, cache_bytes=0)
    log = form.open()
    begin_ms = form.clock.at_ms + 60_000
    everything = reads(fill(log, form), begin_ms)
    armed.set()
    REMOVALS[removal](log)
    armed.clear()
    for point in ("publish.written", "publish.synced"):
        assert set(seen[point].values()) == {"read"}, point
    gone = {"retention": 140, "clear": 200, "drop": 0}[removal]
    for point in ("removal.shown", "removal.written"):
        for name, answer in seen[point].items():
            way, *at = name.split()
            is_gone = at and int(at[0]) < gone and way != "time"
            expected = (
                "UnknownTopic" if removal == "drop" else "OffsetOutOfRange" if is_gone else "read"
            )
            assert answer == expected, (point, name)


@pytest.mark.parametrize("removal", REMOVALS)
def test_readers_at_full_speed_never_hear_of_damage(form: Form, removal: str) -> None:
    form.configure(cache_bytes=64 << 10)
    log = form.open()
    begin_ms = form.clock.at_ms
    topic_id = fill(log, form)
    ended = threading.Event()
    wrong: list[BaseException] = []
    read_once = threading.Barrier(5)

    def read_on(nth: int) -> None:
        ways = list(reads(topic_id, begin_ms).values())
        at = nth
        while not ended.is_set() and not wrong:
            try:
                ways[at % len(ways)](log)
            except (OffsetOutOfRange, UnknownTopic):
                pass
            except BaseException as error:
                wrong.append(error)
            at += 1
            if at == nth + len(ways):
                read_once.wait(DEADLINE_SECONDS)

    readers = [threading.Thread(target=read_on, args=(nth,)) for nth in range(4)]
    for reader in readers:
        reader.start()
    try:
        read_once.wait(DEADLINE_SECONDS)
        for _ in range(1 if removal == "drop" else 30):
            REMOVALS[removal](log)
            if removal != "drop":
                form.clock.advance(seconds=60)
                log.publish("orders", [Record(b"more", ts_ms=form.clock.at_ms)])
    finally:
        ended.set()
        for reader in readers:
            reader.join(DEADLINE_SECONDS)
    assert not wrong, wrong


def test_a_wait_for_a_topic_that_is_dropped_ends(form: Form) -> None:
    log = form.open()
    log.create_topic("orders")
    began = threading.Event()

    def wait() -> str:
        began.set()
        return outcome(lambda it: it.wait_for_append({("orders", 0): 0}, DEADLINE_SECONDS), log)

    with ThreadPoolExecutor(1) as waiting:
        ended = waiting.submit(wait)
        assert began.wait(DEADLINE_SECONDS)
        log.drop_topic("orders")
        assert ended.result(DEADLINE_SECONDS / 2) == "UnknownTopic"
