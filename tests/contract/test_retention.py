"""Retention by age and by bytes, on every form of a log."""

from __future__ import annotations

import pytest

from duolog.log.access import LogAccess
from duolog.log.mirror_model import MirrorChange, MirrorTarget, Run
from duolog.log.mirror_modes import MirrorMode
from duolog.log.model import Record, Retention, Swept, TopicSettings
from tests.contract.conftest import Form
from tests.contract.test_publishing import values
from tests.support.records import STREAM, part_of

TARGET = MirrorTarget("cluster", "orders", "a-topic-id", 7, 0, 0, 0)


@pytest.fixture
def filled(form: Form) -> LogAccess:
    """Ten batches of ten records, a minute apart, the last one now."""
    log = form.open()
    topic = log.create_topic("orders")
    for epoch in range(10):
        form.clock.advance(seconds=60)
        content = [b"%d" % (epoch * 10 + n) for n in range(10)]
        log.append(STREAM, epoch, [part_of(topic, {0: content}, ts_ms=form.clock.at_ms)])
    return log


def test_nothing_is_removed_without_a_limit(filled: LogAccess) -> None:
    run = filled.enforce_retention()
    assert (run.by_topic, run.total, run.cancelled) == ({}, Swept(), False)
    assert len(values(filled, "orders")) == 100


@pytest.mark.parametrize(
    ("seconds", "kept"), [(10_000, 100), (540, 100), (539, 90), (61, 20), (1, 10)]
)
def test_by_age(filled: LogAccess, form: Form, seconds: float, kept: int) -> None:
    filled.set_retention("orders", Retention(seconds=seconds))
    (before,) = filled.offsets("orders")
    run = filled.enforce_retention("orders")
    (after,) = filled.offsets("orders")
    assert run.total.messages_deleted == 100 - kept == after.start
    assert run.total.bytes_freed == before.bytes - after.bytes
    assert after.next_offset == 100
    assert values(filled, "orders") == [b"%d" % n for n in range(100 - kept, 100)]
    assert form.restart().offsets("orders") == (after,)


def test_by_bytes(filled: LogAccess) -> None:
    (before,) = filled.offsets("orders")
    for limit, deleted in ((before.bytes, 0), (before.bytes - 1, 10), (before.bytes // 3, 60)):
        filled.set_retention("orders", Retention(max_bytes=limit))
        assert filled.enforce_retention().total.messages_deleted == deleted
        (after,) = filled.offsets("orders")
        assert after.bytes <= limit
    filled.set_retention("orders", Retention(max_bytes=1))
    assert filled.enforce_retention().total.messages_deleted == 30


def test_what_came_late_is_as_old_as_it_says_only_behind_older_ones(
    form: Form, filled: LogAccess
) -> None:
    # A late record with an old timestamp does not go before the young ones it lies behind.
    filled.publish("orders", Record(b"late", ts_ms=0))
    filled.set_retention("orders", Retention(seconds=61))
    filled.enforce_retention()
    assert values(filled, "orders")[-1] == b"late"


def test_a_partition_emptied_by_retention_counts_on(form: Form, filled: LogAccess) -> None:
    filled.ack("billing", "orders", 55)
    filled.set_retention("orders", Retention(seconds=1))
    form.clock.advance(seconds=3600)
    assert filled.enforce_retention().by_topic["orders"].messages_deleted == 100
    log = form.restart()
    (offsets,) = log.offsets("orders")
    assert (offsets.start, offsets.next_offset, offsets.bytes, offsets.last_offset) == (
        100, 100, 0, None,
    )  # fmt: skip
    position = log.group_position("billing", "orders", 0)
    assert position is not None
    assert position.position == 56
    assert log.publish("orders", Record(b"next"))[0].offset == 100


def test_it_can_be_cancelled(log: LogAccess, form: Form) -> None:
    for name in ("orders", "other"):
        log.create_topic(name, TopicSettings(partitions=50, retention=Retention(seconds=1)))
        log.publish(name, [Record(b"v", partition=n) for n in range(50)])
    form.clock.advance(seconds=60)

    def gone() -> int:
        return sum(o.start for name in ("orders", "other") for o in log.offsets(name))

    assert log.enforce_retention(cancelled=lambda: True).cancelled
    assert gone() == 0
    run = log.enforce_retention(cancelled=lambda: gone() > 0)
    assert run.cancelled
    assert 0 < run.total.messages_deleted == gone() < 100
    assert log.enforce_retention().total.messages_deleted == 100 - run.total.messages_deleted


def test_limits_apply_to_their_topic_alone(filled: LogAccess, form: Form) -> None:
    filled.create_topic("other", TopicSettings(retention=Retention(seconds=1)))
    filled.publish("other", Record(b"old"))
    form.clock.advance(seconds=60)
    assert filled.enforce_retention().by_topic["other"].messages_deleted == 1
    assert len(values(filled, "orders")) == 100
    assert filled.set_retention("other", Retention()).retention == Retention()


# -- what a mirror has still to copy


def _mirrored(log: LogAccess, upto: int) -> None:
    """Begin a mirror that has come so far, or bring the one that there is so far."""
    mirror = log.mirror("orders", 0) or log.begin_mirror("orders", 0, TARGET)
    log.change_mirror("orders", 0, MirrorChange(mirror.version, 0, 0, (Run(0, 0, upto),)))


def test_what_is_not_mirrored_yet_is_kept_and_shown(filled: LogAccess, form: Form) -> None:
    filled.set_retention("orders", Retention(seconds=61))
    _mirrored(filled, 35)
    run = filled.enforce_retention()
    (after,) = filled.offsets("orders")
    assert run.total.messages_deleted == 30 == after.start
    held = run.held_back["orders"]
    assert held.records == 50
    assert held.bytes > 0
    assert form.restart().enforce_retention("orders").held_back == run.held_back


def test_what_was_kept_for_the_mirror_goes_once_it_is_mirrored(filled: LogAccess) -> None:
    filled.set_retention("orders", Retention(max_bytes=1))
    _mirrored(filled, 1)
    assert filled.enforce_retention().total == Swept()
    _mirrored(filled, 100)
    run = filled.enforce_retention()
    assert (run.total.messages_deleted, run.held_back) == (100, {})


def test_a_topic_may_say_that_it_does_not_wait(filled: LogAccess, form: Form) -> None:
    filled.set_retention("orders", Retention(seconds=61, waits_for_mirror=False))
    _mirrored(filled, 35)
    for opened in form.now_and_restarted(filled):
        assert not opened.topic("orders").retention.waits_for_mirror
    run = form.restart().enforce_retention()
    assert (run.total.messages_deleted, run.held_back) == (80, {})


def test_a_mirror_that_is_detached_holds_nothing_back(filled: LogAccess) -> None:
    filled.set_retention("orders", Retention(seconds=61))
    _mirrored(filled, 1)
    filled.set_mirror_mode("orders", MirrorMode.PAUSED)
    assert filled.enforce_retention().held_back["orders"].records == 80
    filled.set_mirror_mode("orders", MirrorMode.DETACHED)
    run = filled.enforce_retention()
    assert (run.total.messages_deleted, run.held_back) == (80, {})


def test_a_partition_whose_mirror_has_still_to_begin_waits_too(log: LogAccess, form: Form) -> None:
    log.create_topic("orders", TopicSettings(partitions=2, retention=Retention(seconds=1)))
    log.publish("orders", [Record(b"v", partition=n) for n in range(2)])
    form.clock.advance(seconds=60)
    _mirrored(log, 1)
    run = log.enforce_retention()
    assert [head.start for head in log.offsets("orders")] == [1, 0]
    assert run.held_back["orders"].records == 1
