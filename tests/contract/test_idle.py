"""What changes nothing costs no sync."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from duolog.errors import UnknownGroup
from duolog.log.access import LogAccess
from duolog.log.groups_seen import KafkaSeen
from duolog.log.mirror_model import MirrorChange, MirrorTarget, Run
from duolog.log.mirror_modes import MirrorMode
from duolog.log.model import Mode, Op, Record, Retention, TopicSettings, Writer
from tests.contract.conftest import Form

HOUR = 3600.0
TARGET = MirrorTarget("cluster", "orders", "a-topic-id", 7, 0, 0, 0)


def syncs(log: LogAccess, call: Callable[[], Any]) -> int:
    """How many syncs a call costs."""
    before = log.stats().syncs
    call()
    return log.stats().syncs - before


def test_retention_that_finds_nothing_to_remove(form: Form) -> None:
    log = form.open()
    limits = Retention(seconds=HOUR, max_bytes=1 << 20)
    for name in ("orders", "lines", "empty"):
        log.create_topic(name, TopicSettings(partitions=50, retention=limits))
    for name in ("orders", "lines"):
        log.publish(name, [Record(b"v", partition=n) for n in range(50)])
    for opened in form.now_and_restarted(log):
        assert syncs(opened, opened.enforce_retention) == 0
        form.clock.advance(seconds=60)
        assert syncs(opened, opened.enforce_retention) == 0


def test_retention_of_many_partitions_shares_its_syncs(form: Form) -> None:
    log = form.open()
    for n in range(4):
        settings = TopicSettings(partitions=40, retention=Retention(seconds=HOUR))
        log.create_topic(f"t{n}", settings)
        log.publish(f"t{n}", [Record(b"v", partition=n) for n in range(40)])
    form.clock.advance(seconds=2 * HOUR)
    before = log.stats().syncs
    assert log.enforce_retention().total.messages_deleted == 160
    assert log.stats().syncs - before <= 4  # for 64 partitions each, or a topic


def test_retention_looks_again_when_the_oldest_batch_has_gone(form: Form) -> None:
    log = form.open()
    log.create_topic("orders", TopicSettings(retention=Retention(seconds=HOUR)))
    for n in range(4):
        log.publish("orders", Record(b"%d" % n))
        form.clock.advance(seconds=HOUR / 2)
    deleted = []
    for _ in range(5):
        deleted.append(log.enforce_retention().total.messages_deleted)
        form.clock.advance(seconds=HOUR / 2)
    assert deleted == [2, 1, 1, 0, 0]


def test_acknowledgements_that_move_nothing(log: LogAccess) -> None:
    log.create_topic("orders")
    log.publish("orders", [Record(b"v")] * 20)
    moved = log.ack("billing", "orders", 9)

    def again() -> None:
        for upto_offset in range(10):
            assert log.ack("billing", "orders", upto_offset) == moved

    assert syncs(log, again) == 0
    assert syncs(log, lambda: log.ack("billing", "orders", 10)) == 1


def test_settings_that_are_as_they_are_wanted(log: LogAccess) -> None:
    topic = log.create_topic("orders", TopicSettings(retention=Retention(seconds=HOUR)))

    def again() -> None:
        assert log.set_retention("orders", Retention(seconds=HOUR)) == topic
        assert log.set_partitions("orders", 1) == topic
        assert log.create_topic("orders", topic.settings, if_not_exists=True) == topic
        assert log.clear_topic("orders").messages_deleted == 0
        log.drop_topic("another", if_exists=True)
        for reference in ("orders", None):
            assert log.set_mirror_mode(reference, MirrorMode.ON) == ()

    assert syncs(log, again) == 0
    assert syncs(log, lambda: log.set_retention("orders", Retention())) == 1


def test_repeats_that_are_left_out_or_were_sent_before(log: LogAccess) -> None:
    log.create_topic("orders", TopicSettings(dedup_window_seconds=HOUR))
    change = Record(b"v", b"k", op=Op.UPDATE, table="t")
    log.publish("orders", change)
    log.publish("orders", Record(b"other"), writer="w", sequence=0)

    def again() -> None:
        assert log.publish("orders", change)[0].offset == 0
        assert log.publish("orders", Record(b"other"), writer="w", sequence=0)[0].offset == 1

    assert syncs(log, again) == 0
    assert log.stats().duplicates_dropped == 1


def test_forgetting_what_is_not_known(log: LogAccess) -> None:
    log.create_topic("orders")

    def forget() -> None:
        assert not log.forget_writer(Writer(Mode.STREAM, "w", "t"))
        assert not log.forget_mirror("orders", 0)
        assert log.last_sequence("w") is None
        with pytest.raises(UnknownGroup):
            log.delete_group("billing")

    assert syncs(log, forget) == 0


def test_what_is_remembered_of_kafka_already(log: LogAccess) -> None:
    log.create_topic("orders")
    log.publish("orders", [Record(b"v")] * 20)
    log.ack("billing", "orders", 9)
    seen = KafkaSeen(3, 10)
    stored = log.remember_kafka("billing", "orders", 0, seen, expected_version=1)
    mirror = log.begin_mirror("orders", 0, TARGET)
    version = log.change_mirror("orders", 0, MirrorChange(mirror.version, 0, 0, (Run(0, 0, 5),)))

    def again() -> None:
        for _ in range(3):
            assert log.remember_kafka("billing", "orders", 0, seen, expected_version=1) == stored
            assert log.change_mirror("orders", 0, MirrorChange(version, 1, 0)) == version

    assert syncs(log, again) == 0
