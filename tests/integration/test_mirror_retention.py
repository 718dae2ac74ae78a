"""Retention that waits for the mirror, and what is forgotten of it, on a real broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType

import duolog
from duolog.log.embedded import EmbeddedLog
from duolog.log.mirror_modes import MirrorMode
from duolog.log.model import Record, Retention, TopicSettings
from duolog.log.options import LogOptions
from tests.support.clock import ManualClock
from tests.support.kafka import DEADLINE_SECONDS, Kafka
from tests.support.mirror_runner import RunningMirror, read_all, read_log

KEPT = TopicSettings(retention=Retention(seconds=60))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def log(tmp_path: Path, clock: ManualClock) -> Iterator[EmbeddedLog]:
    with duolog.open_log(tmp_path / "log", options=LogOptions(clock=clock)) as log:
        yield log


@pytest.fixture
def topic() -> str:
    return f"orders-{uuid4().hex[:12]}"


def swept(log: EmbeddedLog, topic: str) -> int:
    """What retention takes away now."""
    return log.enforce_retention(topic).total.messages_deleted


def stored(log: EmbeddedLog, topic: str) -> int:
    """How far the log knows it to be mirrored."""
    return sum(mirror.next_log_offset for mirror in log.mirrors(topic))


def test_a_paused_mirror_holds_retention_back_and_lets_it_go(
    log: EmbeddedLog, topic: str, kafka: Kafka, clock: ManualClock
) -> None:
    log.create_topic(topic, KEPT)
    log.publish(topic, [Record(b"first")] * 10)
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        mirror.wait(lambda: stored(log, topic) == 10, "the first ten are stored as mirrored")
        log.set_mirror_mode(topic, MirrorMode.PAUSED)
        mirror.wait(lambda: mirror.status(topic).phase == "paused", "paused")
        log.publish(topic, [Record(b"waiting")] * 20)
        clock.advance(seconds=100)
        run = log.enforce_retention()
        assert run.by_topic[topic].messages_deleted == 10
        assert run.held_back[topic].records == 20
        log.set_mirror_mode(topic, MirrorMode.ON)
        mirror.wait(lambda: stored(log, topic) == 30, "all is mirrored")
        assert not mirror.said("mirror.gone")
        run = log.enforce_retention()
        assert (run.by_topic[topic].messages_deleted, run.held_back) == (20, {})
    (mirrored,) = log.mirrors(topic)
    assert mirrored.skipped == 0


def test_a_halted_mirror_holds_it_back_until_it_is_detached(
    log: EmbeddedLog, topic: str, kafka: Kafka, clock: ManualClock
) -> None:
    log.create_topic(topic, KEPT)
    log.publish(topic, [Record(b"first")] * 10)
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        mirror.wait(lambda: stored(log, topic) == 10, "the first ten are stored as mirrored")
        admin = kafka.admin()
        admin.delete_topics([topic])[topic].result(DEADLINE_SECONDS)
        log.publish(topic, [Record(b"waiting")] * 20)
        assert mirror.halted(topic).trouble_code == "KafkaTopicMissing"
        clock.advance(seconds=100)
        assert swept(log, topic) == 10
        assert log.enforce_retention().held_back[topic].records == 20
        log.set_mirror_mode(topic, MirrorMode.DETACHED)
        assert swept(log, topic) == 20


def test_many_runs_are_forgotten_when_both_sides_have_let_them_go(
    log: EmbeddedLog, topic: str, kafka: Kafka, clock: ManualClock
) -> None:
    log.create_topic(topic, KEPT)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    group, most = kafka.new_group(), 0
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        for round_ in range(4):
            for _ in range(15):
                log.publish(topic, [Record(b"%d" % round_)] * 2)
                mirror.caught_up(topic)
                producer.produce(topic, b"foreign", partition=0)
                assert producer.flush(DEADLINE_SECONDS) == 0
            if round_ == 0:
                log.ack(group, topic, 3, 0)
            upto = log.offsets(topic)[0].next_offset
            mirror.wait(lambda: stored(log, topic) == upto, "stored")  # noqa: B023
            most = max(most, len(log.mirrors(topic)[0].runs))
            clock.advance(seconds=100)
            log.publish(topic, Record(b"young"))
            mirror.wait(lambda: stored(log, topic) == upto + 1, "stored")  # noqa: B023
            swept(log, topic)
            mirror.wait(lambda: len(log.mirrors(topic)[0].runs) <= 2, "they are forgotten")
    assert 15 <= most <= 17
    (mirrored,) = log.mirrors(topic)
    assert mirrored.pruned.next_log_offset > 90
    # It goes on from there as from anywhere, and the records are the same.
    log.publish(topic, [Record(b"last")] * 3)
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        mirror.caught_up(topic)
    left = [read for read in read_all(kafka.bootstrap_servers, topic) if read.value != b"foreign"]
    assert [read.value for read in left] == [read.value for read in read_log(log, topic)]


def test_runs_that_kafka_still_needs_are_kept(
    log: EmbeddedLog, topic: str, kafka: Kafka, clock: ManualClock
) -> None:
    log.create_topic(topic, KEPT)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        for _ in range(5):
            log.publish(topic, Record(b"old"))
            mirror.caught_up(topic)
            producer.produce(topic, b"foreign", partition=0)
            assert producer.flush(DEADLINE_SECONDS) == 0
        clock.advance(seconds=100)
        log.publish(topic, Record(b"young"))
        mirror.wait(lambda: stored(log, topic) == 6, "stored")
        set_policy(kafka, topic, "compact")  # where Kafka deletes no records
        assert swept(log, topic) == 5
        mirror.wait(lambda: mirror.said("mirror.not_deleted"), "Kafka does not delete")
        assert len(log.mirrors(topic)[0].runs) == 6
        set_policy(kafka, topic, "delete")
        mirror.wait(lambda: len(log.mirrors(topic)[0].runs) == 1, "they are forgotten")


def set_policy(kafka: Kafka, topic: str, policy: str) -> None:
    entry = ConfigEntry("cleanup.policy", policy, incremental_operation=AlterConfigOpType.SET)
    wanted = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = kafka.admin()
    admin.incremental_alter_configs([wanted])[wanted].result(DEADLINE_SECONDS)
