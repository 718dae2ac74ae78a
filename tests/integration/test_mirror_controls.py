"""Pausing, resuming and detaching a mirror, on a real broker."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, TopicPartition

import duolog
from duolog.bridge.kafka.mirror.restarting import restart
from duolog.bridge.kafka.positions.settling import GroupSettling
from duolog.bridge.kafka.settings import KafkaSettings
from duolog.log.embedded import EmbeddedLog
from duolog.log.mirror_model import Run
from duolog.log.mirror_modes import MirrorMode
from duolog.log.mirrored import mirrored_partitions
from duolog.log.model import Record, TopicSettings
from tests.support.kafka import DEADLINE_SECONDS, Kafka
from tests.support.mirror_runner import RunningMirror, read_all, read_log, until

ON, PAUSED, DETACHED = MirrorMode.ON, MirrorMode.PAUSED, MirrorMode.DETACHED


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    with duolog.open_log(tmp_path / "log") as log:
        yield log


@pytest.fixture
def topic() -> str:
    return f"orders-{uuid4().hex[:12]}"


def delete(kafka: Kafka, topic: str) -> None:
    admin = kafka.admin()
    admin.delete_topics([topic])[topic].result(DEADLINE_SECONDS)


def paused(mirror: RunningMirror, topic: str) -> None:
    mirror.wait(lambda: mirror.status(topic).phase == "paused", f"{topic} paused")


def _is_beyond(mirror: RunningMirror, topic: str, offset: int) -> bool:
    return mirror.status(topic).next_log_offset > offset


def end_in_kafka(kafka: Kafka, topic: str) -> int:
    return len(read_all(kafka.bootstrap_servers, topic))


def test_a_pause_while_batches_are_in_flight_loses_and_doubles_nothing(
    log: EmbeddedLog, topic: str, kafka: Kafka
) -> None:
    log.create_topic(topic)
    stop = threading.Event()

    def write() -> None:
        n = 0
        while not stop.is_set():
            log.publish(topic, [Record(b"%d" % each) for each in range(n, n + 200)])
            n += 200

    writer = threading.Thread(target=write)
    with RunningMirror(log, kafka.bootstrap_servers, {"compression.type": "none"}) as mirror:
        writer.start()
        try:
            for pause in range(3):
                mirror.wait(lambda: mirror.status(topic).next_log_offset, "something is mirrored")
                log.set_mirror_mode(topic, PAUSED)
                paused(mirror, topic)
                (stored,) = log.mirrors(topic)
                assert end_in_kafka(kafka, topic) == stored.next_log_offset, pause
                assert mirror.status(topic).behind > 0
                log.set_mirror_mode(topic, ON)
                further = partial(_is_beyond, mirror, topic, stored.next_log_offset)
                mirror.wait(further, "it goes on")
        finally:
            stop.set()
            writer.join()
        mirror.caught_up(topic)
        assert len(mirror.said("mirror.paused")) == len(mirror.said("mirror.resumed")) == 3
    assert read_all(kafka.bootstrap_servers, topic) == read_log(log, topic)
    (mirrored,) = log.mirrors(topic)
    assert mirrored.runs == (Run(0, 0, log.offsets(topic)[0].next_offset),)


def test_one_topic_is_paused_and_others_go_on(log: EmbeddedLog, topic: str, kafka: Kafka) -> None:
    other = f"{topic}-other"
    for name in (topic, other):
        log.create_topic(name)
        log.publish(name, Record(b"before"))
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        mirror.caught_up(topic)
        mirror.caught_up(other)
        log.set_mirror_mode(topic, PAUSED)
        paused(mirror, topic)
        for name in (topic, other):
            log.publish(name, Record(b"while"))
        mirror.caught_up(other)
        assert (mirror.status(topic).behind, end_in_kafka(kafka, topic)) == (1, 1)
        shown = {each.topic: each.phase for each in mirrored_partitions(log)}
        assert shown == {topic: "paused", other: "mirroring"}


def test_what_was_paused_stays_so_in_a_mirror_that_is_started_anew(
    log: EmbeddedLog, topic: str, kafka: Kafka
) -> None:
    log.create_topic(topic)
    log.publish(topic, Record(b"before"))
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        mirror.caught_up(topic)
        log.set_mirror_mode(None, PAUSED)
        paused(mirror, topic)
    log.publish(topic, Record(b"after"))
    log.create_topic(f"{topic}-new")
    log.publish(f"{topic}-new", Record(b"new"))
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        paused(mirror, topic)
        paused(mirror, f"{topic}-new")
        assert f"{topic}-new" not in kafka.admin().list_topics(timeout=DEADLINE_SECONDS).topics
        assert end_in_kafka(kafka, topic) == 1
        log.set_mirror_mode(None, ON)
        mirror.caught_up(topic)
        mirror.caught_up(f"{topic}-new")
    assert read_all(kafka.bootstrap_servers, topic) == read_log(log, topic)


def test_groups_of_a_paused_topic_go_on_as_far_as_it_is_mirrored(
    log: EmbeddedLog, topic: str, kafka: Kafka
) -> None:
    group = kafka.new_group()
    log.create_topic(topic)
    log.publish(topic, [Record(b"%d" % n) for n in range(10)])
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        mirror.caught_up(topic)
        log.set_mirror_mode(topic, PAUSED)
        paused(mirror, topic)
    log.publish(topic, [Record(b"%d" % n) for n in range(10, 15)])
    # A worker that begins while it is paused has to find out first how far it is.
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        paused(mirror, topic)
        settling = GroupSettling(
            log, KafkaSettings.of(kafka.bootstrap_servers), mirrors=mirror._mirror.mirrors
        )
        settling.start()
        consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": group})
        try:
            log.ack(group, topic, 3, 0)
            place = TopicPartition(topic, 0)
            until(lambda: consumer.committed([place], DEADLINE_SECONDS)[0].offset == 4)
            consumer.commit(offsets=[TopicPartition(topic, 0, 8)], asynchronous=False)
            until(lambda: (at := log.group_position(group, topic, 0)) and at.position == 8)
            log.ack(group, topic, 12, 0)
            until(lambda: consumer.committed([place], DEADLINE_SECONDS)[0].offset == 10)
            log.set_mirror_mode(topic, ON)
            until(lambda: consumer.committed([place], DEADLINE_SECONDS)[0].offset == 13)
        finally:
            consumer.close()
            settling.close()


def test_a_detached_mirror_ends_and_leaves_the_kafka_topic(
    log: EmbeddedLog, topic: str, kafka: Kafka
) -> None:
    log.create_topic(topic, TopicSettings(partitions=1))
    log.publish(topic, Record(b"a"))
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        mirror.caught_up(topic)
        log.set_mirror_mode(topic, DETACHED)
        mirror.wait(lambda: topic not in mirror.topics(), "it is left")
        log.publish(topic, Record(b"b"))
    assert log.mirrors(topic) == ()
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        other = f"{topic}-other"
        log.create_topic(other)
        log.publish(other, Record(b"mirrored"))
        mirror.caught_up(other)
        assert mirror.topics() == {other}
    assert [read.value for read in read_all(kafka.bootstrap_servers, topic)] == [b"a"]
    (shown,) = mirrored_partitions(log, topic)
    assert (shown.phase, shown.behind, shown.kafka_topic) == ("detached", 0, None)


@pytest.mark.parametrize("by", ["resume", "restart"])
def test_a_detached_mirror_begins_again_when_it_is_told_to(
    log: EmbeddedLog, topic: str, kafka: Kafka, by: str
) -> None:
    log.create_topic(topic)
    log.publish(topic, Record(b"a"))
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        mirror.caught_up(topic)
        log.set_mirror_mode(topic, DETACHED)
        mirror.wait(lambda: topic not in mirror.topics(), "it is left")
        log.publish(topic, Record(b"b"))
        if by == "resume":
            log.set_mirror_mode(topic, ON)
        else:
            assert restart(log, topic) == 1
        halted = mirror.halted(topic)  # the old records would be there twice
        assert "Delete the Kafka topic" in str(halted.trouble)
        until(lambda: next(mirrored_partitions(log, topic)).code == "MirrorDiverged")
        delete(kafka, topic)
        mirror.caught_up(topic)
    assert [read.value for read in read_all(kafka.bootstrap_servers, topic)] == [b"a", b"b"]


def test_a_detach_in_the_middle_of_everything_is_final(
    log: EmbeddedLog, topic: str, kafka: Kafka
) -> None:
    log.create_topic(topic)
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            log.publish(topic, [Record(b"v" * 100)] * 200)

    writer = threading.Thread(target=write)
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        writer.start()
        try:
            mirror.wait(lambda: mirror.status(topic).next_log_offset > 2_000, "it mirrors")
            log.set_mirror_mode(topic, DETACHED)
            mirror.wait(lambda: topic not in mirror.topics(), "it is left")
            assert log.mirrors(topic) == ()
            end = end_in_kafka(kafka, topic)
        finally:
            stop.set()
            writer.join()
    assert log.mirrors(topic) == ()
    assert end_in_kafka(kafka, topic) == end
