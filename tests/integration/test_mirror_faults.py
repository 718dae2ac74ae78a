"""What can go wrong with a mirror, on a real broker."""

from __future__ import annotations

import asyncio
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from confluent_kafka.cimpl import NewPartitions, NewTopic

import duolog
from duolog.bridge.kafka.local import LocalKafka
from duolog.bridge.kafka.mirror.pieces import Fuse
from duolog.bridge.kafka.mirror.port import KafkaPort
from duolog.bridge.kafka.mirror.restarting import restart
from duolog.bridge.kafka.mirror.shared import WhenRefused
from duolog.bridge.kafka.settings import KafkaSettings
from duolog.bridge.kafka.wire.requests import Place
from duolog.bridge.kafka.wire.stored import stored_batches
from duolog.log.embedded import EmbeddedLog
from duolog.log.mirror_model import MirrorTarget, Run, Skip, SkipReason
from duolog.log.model import Record, TopicSettings
from duolog.log.options import LogOptions
from tests.support.kafka import DEADLINE_SECONDS, Kafka, OwnKafka
from tests.support.mirror_runner import QUICK, RunningMirror, read_all, read_log

NOW_MS = int(time.time() * 1000)
FORGETFUL = {
    "producer.id.expiration.ms": "3000",
    "producer.id.expiration.check.interval.ms": "500",
}
HALTING = replace(QUICK, when_refused=WhenRefused.HALT)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    with duolog.open_log(tmp_path / "log") as log:
        yield log


@pytest.fixture
def topic() -> str:
    return f"orders-{uuid4().hex[:12]}"


def make(kafka: Kafka, topic: str, **settings: str) -> None:
    """Make a Kafka topic by hand."""
    config = {name.replace("_", "."): value for name, value in settings.items()}
    admin = kafka.admin()  # kept: what it was asked ends with it
    admin.create_topics([NewTopic(topic, 1, 1, config=config)])[topic].result()


def delete(kafka: Kafka, topic: str) -> None:
    admin = kafka.admin()
    admin.delete_topics([topic])[topic].result(DEADLINE_SECONDS)


def write_by_hand(bootstrap_servers: str, topic: str, *values: bytes) -> None:
    """Records of somebody else in our topic."""
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(DEADLINE_SECONDS) == 0


def values(kafka: Kafka, topic: str) -> list[bytes | None]:
    return [read.value for read in read_all(kafka.bootstrap_servers, topic)]


# -- the Kafka topic


def test_a_deleted_topic_halts_by_name(log: EmbeddedLog, topic: str, kafka: Kafka) -> None:
    log.create_topic(topic)
    log.publish(topic, Record(b"a"))
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        mirror.caught_up(topic)
        delete(kafka, topic)
        log.publish(topic, Record(b"b"))
        halted = mirror.halted(topic)
    assert halted.trouble_code == "KafkaTopicMissing"
    assert f"duolog mirror restart {topic}" in str(halted.trouble)
    assert halted.behind == 1


def test_a_topic_that_is_made_anew_under_load_gets_nothing(
    log: EmbeddedLog, topic: str, kafka: Kafka
) -> None:
    log.create_topic(topic)
    log.publish(topic, [Record(b"before")] * 10)
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        mirror.caught_up(topic)
        (before,) = log.mirrors(topic)
        delete(kafka, topic)
        made_again = False
        while mirror.status(topic).trouble_code != "KafkaTopicRecreated":
            log.publish(topic, [Record(b"while")] * 10)
            if not made_again:
                make(kafka, topic)
                made_again = True
        status = mirror.status(topic)
    assert before.target.kafka_topic_id in str(status.trouble)
    assert read_all(kafka.bootstrap_servers, topic) == []


def test_a_halted_mirror_stays_halted_when_it_is_started_again(
    log: EmbeddedLog, topic: str, kafka: Kafka
) -> None:
    log.create_topic(topic)
    log.publish(topic, Record(b"a"))
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        mirror.caught_up(topic)
    delete(kafka, topic)
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        assert mirror.halted(topic).trouble_code == "KafkaTopicMissing"
    make(kafka, topic)
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        assert mirror.halted(topic).trouble_code == "KafkaTopicRecreated"
    assert values(kafka, topic) == []


@pytest.mark.parametrize("made_again", [False, True])
def test_a_restart_copies_what_the_log_keeps(
    log: EmbeddedLog, topic: str, kafka: Kafka, made_again: bool
) -> None:
    log.create_topic(topic)
    log.publish(topic, [Record(b"a"), Record(b"b")])
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        mirror.caught_up(topic)
        delete(kafka, topic)
        if made_again:
            make(kafka, topic)
        log.publish(topic, Record(b"c"))
        mirror.halted(topic)
        assert restart(log, topic) == 1
        mirror.wait(lambda: log.mirrors(topic), "it has begun anew")
        mirror.caught_up(topic)
    assert values(kafka, topic) == [b"a", b"b", b"c"]


def test_a_restart_into_what_is_still_there_is_refused(
    log: EmbeddedLog, topic: str, kafka: Kafka
) -> None:
    log.create_topic(topic)
    log.publish(topic, Record(b"a"))
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        mirror.caught_up(topic)
    restart(log, topic)
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        halted = mirror.halted(topic)
        assert halted.trouble_code == "MirrorDiverged"
        assert "Delete the Kafka topic" in str(halted.trouble)
        delete(kafka, topic)
        mirror.caught_up(topic)
    assert values(kafka, topic) == [b"a"]


def test_partitions_grow_with_the_log(log: EmbeddedLog, topic: str, kafka: Kafka) -> None:
    log.create_topic(topic)
    log.publish(topic, Record(b"one"))
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        mirror.caught_up(topic)
        log.set_partitions(topic, 3)
        log.publish(topic, [Record(b"p%d" % p, partition=p) for p in range(3)])
        mirror.wait(lambda: mirror.status(topic, 2), "the third partition")
        mirror.caught_up(topic)
    for partition in range(3):
        assert read_all(kafka.bootstrap_servers, topic, partition) == read_log(
            log, topic, partition
        )


def test_more_partitions_in_kafka_halt_until_the_log_has_them(
    log: EmbeddedLog, topic: str, kafka: Kafka
) -> None:
    log.create_topic(topic)
    make(kafka, topic)
    admin = kafka.admin()
    admin.create_partitions([NewPartitions(topic, 2)])[topic].result(DEADLINE_SECONDS)
    log.publish(topic, Record(b"a"))
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        halted = mirror.halted(topic)
        assert halted.trouble_code == "KafkaTopicUnfit"
        assert "SET PARTITIONS 2" in str(halted.trouble)
        log.set_partitions(topic, 2)
        mirror.caught_up(topic)
    assert values(kafka, topic) == [b"a"]


@pytest.mark.parametrize(
    ("setting", "value"),
    [("cleanup_policy", "compact"), ("message_timestamp_type", "LogAppendTime")],
)
def test_a_topic_that_changes_records_gets_none(
    log: EmbeddedLog, topic: str, kafka: Kafka, setting: str, value: str
) -> None:
    log.create_topic(topic)
    make(kafka, topic, **{setting: value})
    log.publish(topic, Record(b"a", b"k"))
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        assert mirror.halted(topic).trouble_code == "KafkaTopicUnfit"
    assert values(kafka, topic) == []


def test_a_topic_that_deletes_by_itself_is_warned_of(
    log: EmbeddedLog, topic: str, kafka: Kafka
) -> None:
    log.create_topic(topic)
    make(kafka, topic, retention_ms="86400000")
    log.publish(topic, Record(b"a"))
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        mirror.caught_up(topic)
        (warned,) = mirror.said("mirror.warning")
    assert "retention.ms=86400000" in warned["said"]


def test_two_topics_do_not_share_a_kafka_topic(log: EmbeddedLog, topic: str, kafka: Kafka) -> None:
    log.create_topic(topic)
    log.create_topic(f"{topic}-too", TopicSettings(kafka_topic=topic))
    log.publish(topic, Record(b"a"))
    log.publish(f"{topic}-too", Record(b"b"))
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        mirror.caught_up(topic)
        halted = mirror.halted(f"{topic}-too")
        assert halted.trouble_code == "KafkaTopicUnfit"
        log.publish(topic, Record(b"c"))
        mirror.caught_up(topic)
    assert values(kafka, topic) == [b"a", b"c"]


def test_a_topic_of_the_same_name_does_not_continue_another_one(
    log: EmbeddedLog, topic: str, kafka: Kafka
) -> None:
    log.create_topic(topic)
    log.publish(topic, Record(b"a"))
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        mirror.caught_up(topic)
        log.drop_topic(topic)
        log.create_topic(topic)
        log.publish(topic, Record(b"b"))
        halted = mirror.halted(topic)
        assert halted.trouble_code == "MirrorDiverged"
        assert "Delete the Kafka topic" in str(halted.trouble)
        delete(kafka, topic)
        mirror.caught_up(topic)
    assert values(kafka, topic) == [b"b"]


# -- others in it


def test_records_of_others_are_passed_over(log: EmbeddedLog, topic: str, kafka: Kafka) -> None:
    log.create_topic(topic)
    log.publish(topic, [Record(b"a")] * 3)
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        mirror.caught_up(topic)
        write_by_hand(kafka.bootstrap_servers, topic, b"foreign", b"foreign")
        log.publish(topic, [Record(b"b")] * 2)
        mirror.caught_up(topic)
        assert mirror.status(topic).foreign == 2
    write_by_hand(kafka.bootstrap_servers, topic, b"while it was away")
    log.publish(topic, Record(b"c"))
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        mirror.caught_up(topic)
    (mirrored,) = log.mirrors(topic)
    assert mirrored.runs == (Run(0, 0, 3), Run(3, 5, 2), Run(5, 8, 1))
    expected = [b"a"] * 3 + [b"foreign"] * 2 + [b"b"] * 2 + [b"while it was away", b"c"]
    assert values(kafka, topic) == expected


def test_a_topic_that_has_records_already_is_written_behind_them(
    log: EmbeddedLog, topic: str, kafka: Kafka
) -> None:
    make(kafka, topic)
    write_by_hand(kafka.bootstrap_servers, topic, b"older", b"older")
    log.create_topic(topic)
    log.publish(topic, Record(b"a"))
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        mirror.caught_up(topic)
    (mirrored,) = log.mirrors(topic)
    assert mirrored.runs == (Run(0, 2, 1),)


def test_a_copy_of_the_log_does_not_write(
    log: EmbeddedLog, topic: str, kafka: Kafka, tmp_path: Path
) -> None:
    log.create_topic(topic)
    log.publish(topic, Record(b"a"))
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        mirror.caught_up(topic)
    log.close()
    shutil.copytree(log.folder, tmp_path / "copy")
    with duolog.open_log(tmp_path / "copy") as copy:
        assert copy.log_id != log.log_id
        copy.publish(topic, Record(b"another life"))
        with RunningMirror(copy, kafka.bootstrap_servers) as mirror:
            assert mirror.halted(topic).trouble_code == "MirrorOfCopy"
    assert values(kafka, topic) == [b"a"]


def test_a_copy_does_not_write_into_partitions_that_were_added_since_either(
    log: EmbeddedLog, topic: str, kafka: Kafka, tmp_path: Path
) -> None:
    log.create_topic(topic)
    log.publish(topic, Record(b"a"))
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        mirror.caught_up(topic)
        log.backup(tmp_path / "copy")
        log.set_partitions(topic, 2)
        log.publish(topic, Record(b"b", partition=1))
        mirror.wait(lambda: mirror.status(topic, 1), "the second partition")
        mirror.caught_up(topic)
    with duolog.open_log(tmp_path / "copy") as copy:
        copy.set_partitions(topic, 2)
        copy.publish(topic, Record(b"another life", partition=1))
        with RunningMirror(copy, kafka.bootstrap_servers) as mirror:
            assert mirror.halted(topic, 1).trouble_code == "MirrorOfCopy"
    assert [read.value for read in read_all(kafka.bootstrap_servers, topic, 1)] == [b"b"]


# -- records that Kafka does not take


def test_an_oversized_record_is_set_aside_and_the_rest_goes_on(
    log: EmbeddedLog, topic: str, kafka: Kafka
) -> None:
    make(kafka, topic, max_message_bytes="2000")
    log.create_topic(topic)
    log.publish(
        topic,
        [Record(b"a"), Record(b"x" * 3000, b"key", (("own", b"h"),)), Record(b"b"), Record(b"c")],
    )
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        mirror.caught_up(topic)
    assert values(kafka, topic) == [b"a", b"b", b"c"]
    (mirrored,) = log.mirrors(topic)
    assert mirrored.runs == (Run(0, 0, 1), Run(2, 1, 2, skipped_before=1))
    assert mirrored.skips == (Skip(1, 1, SkipReason.TOO_LARGE),)
    (aside,) = log.fetch(f"{topic}.kafka-refused", 0, 0)
    assert (aside.value, aside.key) == (b"x" * 3000, b"key")
    headers = dict(aside.headers)
    assert headers["own"] == b"h"
    assert headers["__connect.errors.topic"] == topic.encode()
    assert headers["__connect.errors.offset"] == b"1"
    assert b"max.message.bytes=2000" in (headers["__connect.errors.exception.message"] or b"")


def test_what_was_set_aside_once_is_not_again(log: EmbeddedLog, topic: str, kafka: Kafka) -> None:
    make(kafka, topic, max_message_bytes="2000")
    log.create_topic(topic)
    log.publish(topic, [Record(b"a"), Record(b"x" * 3000)])
    for more in (b"b", b"c"):
        with RunningMirror(log, kafka.bootstrap_servers) as mirror:
            log.publish(topic, Record(more))
            mirror.caught_up(topic)
    assert values(kafka, topic) == [b"a", b"b", b"c"]
    assert log.offsets(f"{topic}.kafka-refused")[0].next_offset == 1


def test_a_mirror_may_halt_at_a_refused_record(log: EmbeddedLog, topic: str, kafka: Kafka) -> None:
    from confluent_kafka.admin import (  # type: ignore[attr-defined] # they are, untold
        AlterConfigOpType,
        ConfigEntry,
        ConfigResource,
        ResourceType,
    )

    make(kafka, topic, max_message_bytes="2000")
    log.create_topic(topic)
    log.publish(topic, [Record(b"a"), Record(b"x" * 3000), Record(b"b")])
    with RunningMirror(log, kafka.bootstrap_servers, options=HALTING) as mirror:
        halted = mirror.halted(topic)
        assert halted.trouble_code == "RecordsRefused"
        assert "offset 1" in str(halted.trouble)
        assert values(kafka, topic) == []
        larger = ConfigEntry(
            "max.message.bytes", "9000", incremental_operation=AlterConfigOpType.SET
        )
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[larger])
        admin = kafka.admin()
        admin.incremental_alter_configs([resource])[resource].result(DEADLINE_SECONDS)
        mirror.caught_up(topic)
    assert values(kafka, topic) == [b"a", b"x" * 3000, b"b"]


@contextmanager
def old_log(folder: Path, topic: str, *times: int) -> Iterator[EmbeddedLog]:
    """One from before times far ahead were refused, with records of such times."""
    with duolog.open_log(folder, options=LogOptions(max_timestamp_ahead_seconds=1e9)) as log:
        log.create_topic(topic)
        log.publish(topic, [Record(b"%d" % n, ts_ms=ts_ms) for n, ts_ms in enumerate(times)])
    with duolog.open_log(folder) as log:
        yield log


def test_times_that_kafka_refuses_are_set_aside(tmp_path: Path, topic: str, kafka: Kafka) -> None:
    make(kafka, topic, message_timestamp_after_max_ms="3600000")
    times = [NOW_MS, NOW_MS + 7_200_000, NOW_MS, NOW_MS + 9_000_000]
    with old_log(tmp_path / "log", topic, *times) as log:
        with RunningMirror(log, kafka.bootstrap_servers) as mirror:
            mirror.caught_up(topic)
        assert values(kafka, topic) == [b"0", b"2"]
        (mirrored,) = log.mirrors(topic)
        assert mirrored.skips == (
            Skip(1, 1, SkipReason.TIME_REFUSED),
            Skip(3, 1, SkipReason.TIME_REFUSED),
        )
        aside = list(log.fetch(f"{topic}.kafka-refused", 0, 0))
        assert [record.value for record in aside] == [b"1", b"3"]
        told = [dict(record.headers)["__connect.errors.timestamp"] for record in aside]
        assert told == [b"%d" % times[1], b"%d" % times[3]]


def test_a_clock_that_goes_wrong_is_overruled_by_the_broker(
    tmp_path: Path, topic: str, kafka: Kafka
) -> None:
    """The mirror's clock is two hours ahead, so what the broker refuses looks fine to it."""
    make(kafka, topic, message_timestamp_after_max_ms="3600000")
    with old_log(tmp_path / "log", topic, NOW_MS, NOW_MS + 7_200_000) as log:
        with RunningMirror(log, kafka.bootstrap_servers, clock_ahead_ms=7_200_000) as mirror:
            mirror.caught_up(topic)
        assert values(kafka, topic) == [b"0"]
        (mirrored,) = log.mirrors(topic)
        assert mirrored.skips == (Skip(1, 1, SkipReason.TIME_REFUSED),)


def test_when_all_is_refused_the_fuse_burns(log: EmbeddedLog, topic: str, kafka: Kafka) -> None:
    make(kafka, topic, max_message_bytes="2000")
    log.create_topic(topic)
    log.publish(topic, [Record(b"x" * 3000, b"%d" % n) for n in range(50)])
    options = replace(QUICK, fuse=Fuse(records=10))
    with RunningMirror(log, kafka.bootstrap_servers, options=options) as mirror:
        halted = mirror.halted(topic)
    assert halted.trouble_code == "RecordsRefused"
    assert "more than 10 of 10000" in str(halted.trouble)
    assert halted.skipped == 0


# -- the cluster


def test_a_cluster_that_is_not_there_is_waited_for(log: EmbeddedLog, topic: str) -> None:
    log.create_topic(topic)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with RunningMirror(log, f"127.0.0.1:{port}") as mirror:
        mirror.wait(lambda: len(mirror.said("mirror.waits")) > 2, "it asks again and again")
    said = mirror.said("mirror.waits")[0]
    assert said["code"] == "KafkaUnreachable"
    assert f"127.0.0.1:{port}" in said["error"]


def test_outages_lose_and_double_nothing(log: EmbeddedLog, topic: str, own_kafka: OwnKafka) -> None:
    broker = own_kafka(properties=FORGETFUL, java_options=["-XX:TieredStopAtLevel=1"])
    log.create_topic(topic)
    with RunningMirror(log, broker.bootstrap_servers) as mirror:
        log.publish(topic, [Record(b"before %d" % n) for n in range(20_000)])
        mirror.wait(lambda: mirror.status(topic).next_log_offset > 0, "it has begun")
        broker.kill()
        log.publish(topic, [Record(b"meanwhile %d" % n) for n in range(5000)])
        broker.start()
        mirror.caught_up(topic)
        assert mirror.said("mirror.waits")
        assert mirror.said("mirror.goes_on")
    assert read_all(broker.bootstrap_servers, topic) == read_log(log, topic)
    _and_after_kafka_has_lost_its_end(log, topic, broker)
    _and_after_the_broker_has_forgotten_us(log, topic, broker)


def _and_after_kafka_has_lost_its_end(log: EmbeddedLog, topic: str, broker: LocalKafka) -> None:
    """As when a replica that is behind becomes the leader."""
    broker.stop()
    (folder,) = broker.folder.rglob(f"{topic}-0")
    (segment,) = folder.glob("*.log")
    batches = list(stored_batches(segment.read_bytes()))
    lost = batches[len(batches) // 2].base_offset
    kept = [batch for batch in batches if batch.base_offset < lost]
    segment.write_bytes(segment.read_bytes()[: sum(batch.size for batch in kept)])
    for derived in (*folder.glob("*index"), *folder.glob("*.snapshot")):
        derived.unlink()
    (folder.parent / ".kafka_cleanshutdown").unlink()
    broker.start()
    log.publish(topic, Record(b"after the loss"))
    with RunningMirror(log, broker.bootstrap_servers) as mirror:
        mirror.caught_up(topic)
        (cut,) = mirror.said("mirror.cut_back")
    assert cut["kafka_offset"] == lost
    assert read_all(broker.bootstrap_servers, topic) == read_log(log, topic)


def _and_after_the_broker_has_forgotten_us(
    log: EmbeddedLog, topic: str, broker: LocalKafka
) -> None:
    """What is there tells where we were."""
    (mirrored,) = log.mirrors(topic)
    asyncio.run(_until_forgotten(broker.bootstrap_servers, mirrored.target))
    log.publish(topic, Record(b"after it was forgotten"))
    with RunningMirror(log, broker.bootstrap_servers) as mirror:
        mirror.caught_up(topic)
    assert read_all(broker.bootstrap_servers, topic) == read_log(log, topic)


async def _until_forgotten(bootstrap_servers: str, target: MirrorTarget) -> None:
    port = KafkaPort(KafkaSettings.of(bootstrap_servers))
    try:
        seen = (await port.look((target.kafka_topic,))).topics[target.kafka_topic]
        place = Place(target.kafka_topic, seen.topic_id, 0)
        give_up = time.monotonic() + DEADLINE_SECONDS
        while (await port.evidence(place, target.producer_id)).last_sequence is not None:
            assert time.monotonic() < give_up, "the broker does not forget"
            await asyncio.sleep(0.05)
    finally:
        await port.close()
