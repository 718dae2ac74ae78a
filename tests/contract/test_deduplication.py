"""Repeats are left out within a topic's window: of what is still there, and for no longer."""

from __future__ import annotations

import random

import pytest

from duolog.log.access import LogAccess
from duolog.log.model import Op, Record, Retention, TopicSettings
from tests.contract.conftest import Form
from tests.contract.test_publishing import values
from tests.support.records import STREAM, part_of

DAY = 86_400


def change(log: LogAccess, value: bytes, key: bytes = b"k", ts_ms: int | None = None) -> int:
    record = Record(value, key, op=Op.UPDATE, table="shop.orders", ts_ms=ts_ms)
    return log.publish("orders", record)[0].offset


def made(form: Form, window_seconds: float = DAY) -> LogAccess:
    log = form.open()
    log.create_topic("orders", TopicSettings(dedup_window_seconds=window_seconds))
    return log


def test_a_change_that_clear_took_is_written_again(form: Form) -> None:
    log = made(form)
    assert [change(log, b"A"), change(log, b"A")] == [0, 0]
    log.clear_topic("orders")
    for opened in form.now_and_restarted(log):
        offset = change(opened, b"A")
        assert values(opened, "orders") == [b"A"]
        assert change(opened, b"A") == offset == 1


def test_a_change_that_clear_took_is_written_again_by_an_epoch(form: Form) -> None:
    log = made(form)
    topic = log.topic("orders")

    def append(epoch: int) -> int:
        part = part_of(
            topic, {0: [b"A"]}, keys=[b"k"], op=Op.UPDATE, table="t", ts_ms=form.clock.at_ms
        )
        return log.append(STREAM, epoch, [part]).duplicates_dropped

    assert [append(0), append(1)] == [0, 1]
    log.clear_topic("orders")
    assert [append(2), append(3)] == [0, 1]
    assert values(log, "orders") == [b"A"]


@pytest.mark.parametrize("restarted", [False, True])
def test_a_change_that_retention_took_is_written_again(form: Form, *, restarted: bool) -> None:
    log = made(form)
    for value in (b"A", b"A", b"B"):
        change(log, value)
    change(log, b"last", key=b"other")
    log.set_retention("orders", Retention(max_bytes=1))
    assert log.enforce_retention().total.messages_deleted == 3
    if restarted:
        log = form.restart()
    assert [change(log, b"B"), change(log, b"B")] == [3, 3]
    assert values(log, "orders") == [b"B"]


def test_a_topic_that_was_dropped_and_made_again_remembers_nothing(form: Form) -> None:
    log = made(form)
    assert change(log, b"A") == 0
    log.drop_topic("orders")
    log.create_topic("orders", TopicSettings(dedup_window_seconds=DAY))
    assert [change(log, b"A"), change(log, b"A")] == [0, 0]
    assert values(log, "orders") == [b"A"]


def test_a_timestamp_far_ahead_does_not_end_what_is_remembered(form: Form) -> None:
    log = made(form, window_seconds=60)
    for opened in form.now_and_restarted(log):
        first = change(opened, b"A")
        change(opened, b"ahead", key=b"other", ts_ms=form.clock.at_ms + 30 * 60_000)
        assert change(opened, b"A") == first
        form.clock.advance(seconds=61)
        assert change(opened, b"A") != first


def test_late_changes_are_compared_with_each_other(form: Form) -> None:
    log = made(form, window_seconds=60)
    late = form.clock.at_ms - DAY * 1000
    change(log, b"now", key=b"other")
    first = change(log, b"A", ts_ms=late)
    for opened in form.now_and_restarted(log):
        change(opened, b"now", key=b"other")
        assert change(opened, b"A", ts_ms=late + 1000) == first
        assert change(opened, b"A", ts_ms=late + 61_000) != first
        first = change(opened, b"A", ts_ms=late)


def test_whatever_comes_in_between_only_repeats_of_what_is_there_are_left_out(form: Form) -> None:
    # Against a model of one line: publishes, epochs, CLEAR, retention, restarts and time, mixed.
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    window_seconds = 60
    log = made(form, window_seconds)
    latest: dict[bytes, tuple[bytes, int, int]] = {}  # of each key: value, time, offset
    start, next_offset, epoch = 0, 0, 0

    def written(key: bytes, value: bytes) -> tuple[bool, int]:
        """Whether a change is written, and where it lies."""
        nonlocal next_offset
        now_ms = form.clock.at_ms
        seen = latest.get(key)
        if (
            seen is not None
            and seen[2] >= start
            and seen[0] == value
            and now_ms - seen[1] <= window_seconds * 1000
        ):
            return False, seen[2]
        latest[key] = (value, now_ms, next_offset)
        next_offset += 1
        return True, next_offset - 1

    def some() -> tuple[bytes, bytes]:
        return b"k%d" % rng.randrange(4), b"%d" % rng.randrange(2)

    for _ in range(200):
        match rng.choice(["publish"] * 6 + ["append"] * 3 + ["time"] * 2 + ["clear", "retention"]):
            case "publish":
                key, value = some()
                assert change(log, value, key) == written(key, value)[1]
            case "append":
                changes = [some() for _ in range(rng.randrange(1, 6))]
                part = part_of(
                    log.topic("orders"),
                    {0: [value for _, value in changes]},
                    keys=[key for key, _ in changes],
                    op=Op.UPDATE,
                    table="shop.orders",
                    ts_ms=form.clock.at_ms,
                )
                news = sum([written(*each)[0] for each in changes])
                dropped = log.append(STREAM, epoch, [part]).duplicates_dropped
                assert dropped == len(changes) - news
                epoch += 1
            case "time":
                form.clock.advance(seconds=rng.choice([1, 20, 61]))
            case "clear":
                log.clear_topic("orders")
                start = next_offset
            case "retention":
                log.set_retention("orders", Retention(max_bytes=rng.choice([1, 500])))
                log.enforce_retention()
                (head,) = log.offsets("orders")
                assert start <= head.start
                assert head.next_offset == next_offset
                start = head.start
        if rng.random() < 0.03:
            log = form.restart()


def test_changes_that_look_alike_are_told_apart(form: Form) -> None:
    log = made(form)
    for value, table in (
        (b"a", "b\x0020\x00c"),
        (b"a\x0020\x00b", "c"),
        (b"v", None),
        (b"v", ""),
        (b"", "v"),
        (None, "v"),
    ):
        log.publish("orders", Record(value, b"k", op=Op.UPDATE, table=table))
    assert log.offsets("orders")[0].next_offset == 6
