"""Pausing, resuming and detaching a mirror, and what is shown of it, on every form of a log."""

from __future__ import annotations

import pytest

from duolog.errors import MirrorDetached, PositionChanged, UnknownTopic
from duolog.log.access import LogAccess
from duolog.log.groups_seen import KafkaSeen
from duolog.log.mirror_model import ALL_THAT_IS_THERE, MirrorChange, MirrorTarget, Run
from duolog.log.mirror_modes import MirrorMode, MirrorModes, MirrorReport
from duolog.log.mirrored import mirrored_partitions
from duolog.log.mirroring import REPORTS_HOLD_SECONDS
from duolog.log.model import Record, TopicSettings
from tests.contract.conftest import Form

TARGET = MirrorTarget("cluster", "orders", "a-topic-id", 7, 0, 0, 0)
ON, PAUSED, DETACHED = MirrorMode.ON, MirrorMode.PAUSED, MirrorMode.DETACHED


@pytest.fixture
def log(form: Form) -> LogAccess:
    log = form.open()
    log.create_topic("orders", TopicSettings(partitions=2))
    log.create_topic("bills")
    return log


def test_a_topic_is_paused_until_it_is_resumed(form: Form, log: LogAccess) -> None:
    assert log.mirror_modes() == MirrorModes()
    assert log.set_mirror_mode("orders", PAUSED) == ("orders",)
    assert log.set_mirror_mode("orders", PAUSED) == ()
    for opened in form.now_and_restarted(log):
        assert opened.mirror_modes() == MirrorModes(ON, {"orders": PAUSED})
    log = form.restart()
    assert log.set_mirror_mode("orders", ON) == ("orders",)
    for opened in form.now_and_restarted(log):
        assert opened.mirror_modes() == MirrorModes()


def test_all_are_paused_also_those_that_come_later(form: Form, log: LogAccess) -> None:
    assert log.set_mirror_mode(None, PAUSED) == ("bills", "orders")
    log.create_topic("later")
    assert log.mirror_modes().of("later") is PAUSED
    assert log.set_mirror_mode("orders", ON) == ("orders",)
    for opened in form.now_and_restarted(log):
        assert opened.mirror_modes() == MirrorModes(PAUSED, {"orders": ON})
    assert form.restart().set_mirror_mode(None, ON) == ("bills", "later")


def test_what_is_detached_stays_so_when_all_are_paused_and_resumed(
    form: Form, log: LogAccess
) -> None:
    log.set_mirror_mode("orders", DETACHED)
    log.set_mirror_mode(None, PAUSED)
    log.set_mirror_mode(None, ON)
    for opened in form.now_and_restarted(log):
        assert opened.mirror_modes() == MirrorModes(ON, {"orders": DETACHED})
    log = form.restart()
    assert log.set_mirror_mode(None, DETACHED) == ("bills",)
    log.create_topic("later")
    assert log.mirror_modes().of("later") is ON


def test_detaching_forgets_the_mirror_and_what_kafka_held(form: Form, log: LogAccess) -> None:
    log.publish("orders", [Record(b"v", partition=0)] * 5)
    version = log.begin_mirror("orders", 0, TARGET).version
    log.change_mirror("orders", 0, MirrorChange(version, 0, 0, (Run(0, 0, 5),)))
    log.begin_mirror("bills", 0, TARGET)
    at = log.ack("billing", "orders", 2, 0)
    seen = KafkaSeen(foreign=3)
    log.remember_kafka("billing", "orders", 0, seen, expected_version=at.version)
    log.set_mirror_mode("orders", DETACHED)
    for opened in form.now_and_restarted(log):
        assert [mirror.topic for mirror in opened.mirrors()] == ["bills"]
        position = opened.group_position("billing", "orders", 0)
        assert position is not None
        assert (position.position, position.version, position.kafka) == (3, at.version, None)
    log = form.restart()
    with pytest.raises(MirrorDetached, match="mirror resume orders"):
        log.begin_mirror("orders", 0, TARGET)
    with pytest.raises(PositionChanged, match="detached"):
        log.remember_kafka("billing", "orders", 0, seen, expected_version=at.version)
    log.set_mirror_mode("orders", ON)
    assert log.begin_mirror("orders", 0, TARGET).version == 1


def test_a_topic_that_is_dropped_leaves_no_mode(form: Form, log: LogAccess) -> None:
    log.set_mirror_mode("orders", DETACHED)
    log.drop_topic("orders")
    log.create_topic("orders")
    for opened in form.now_and_restarted(log):
        assert opened.mirror_modes() == MirrorModes()
    with pytest.raises(UnknownTopic):
        form.restart().set_mirror_mode("nope", PAUSED)


def test_resuming_settles_copies_that_were_found(form: Form, log: LogAccess) -> None:
    version = log.begin_mirror("orders", 0, TARGET).version
    log.change_mirror("orders", 0, MirrorChange(version, 0, 0, copied_at=12))
    for opened in form.now_and_restarted(log):
        mirror = opened.mirror("orders", 0)
        assert mirror is not None
        assert mirror.copied_at == 12
    log = form.restart()
    assert log.set_mirror_mode("orders", ON) == ("orders",)
    mirror = log.mirror("orders", 0)
    assert mirror is not None
    assert (mirror.copied_at, mirror.version) == (None, version + 2)
    assert mirror.settled_upto == ALL_THAT_IS_THERE


def test_what_a_worker_says_holds_while_it_says_anything(form: Form, log: LogAccess) -> None:
    assert log.mirror_reports() == ()
    halted = MirrorReport("orders", 1, "halted", "KafkaTopicMissing", "it is gone")
    log.tell_mirror((MirrorReport("orders", 0, "mirroring"), halted), anew=True)
    log.tell_mirror((MirrorReport("bills", 0, "recovering"),))
    assert log.mirror_reports("bills") == (MirrorReport("bills", 0, "recovering"),)
    form.clock.advance(seconds=REPORTS_HOLD_SECONDS)
    log.tell_mirror(())
    form.clock.advance(seconds=REPORTS_HOLD_SECONDS)
    assert len(log.mirror_reports()) == 3
    form.clock.advance(seconds=0.1)
    assert log.mirror_reports() == ()
    log.tell_mirror((halted,), anew=True)
    assert log.mirror_reports() == (halted,)


def test_the_phase_that_is_shown(log: LogAccess) -> None:
    for partition in range(2):
        log.begin_mirror("orders", partition, TARGET)
    log.publish("orders", [Record(b"v", partition=0)] * 3)
    log.publish("bills", [Record(b"v")] * 4)

    def shown() -> list[tuple[str, int, str, int]]:
        found = mirrored_partitions(log)
        return [(each.topic, each.partition, each.phase, each.behind) for each in found]

    assert shown() == [("orders", 0, "unknown", 3), ("orders", 1, "unknown", 0)]
    told = (MirrorReport("orders", 0, "mirroring"), MirrorReport("bills", 0, "halted", "X", "why"))
    log.tell_mirror(told, anew=True)
    assert shown()[0] == ("bills", 0, "halted", 4)
    assert next(mirrored_partitions(log)).trouble == "why"
    log.set_mirror_mode("bills", DETACHED)
    log.set_mirror_mode("orders", PAUSED)
    expected = [("orders", 0, "paused", 3), ("orders", 1, "paused", 0)]
    assert shown() == [("bills", 0, "detached", 0), *expected]
    assert [each.partition for each in mirrored_partitions(log, "orders")] == [0, 1]
