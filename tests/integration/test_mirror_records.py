"""What is mirrored into a real Kafka, read by an independent consumer."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from uuid import uuid4

import pytest

import duolog
from duolog.log.embedded import EmbeddedLog
from duolog.log.mirror_model import Run
from duolog.log.model import Mode, Record, Retention, TopicSettings, Writer
from duolog.log.options import LogOptions
from tests.support.clock import ManualClock
from tests.support.kafka import Kafka
from tests.support.mirror_runner import RunningMirror, read_all, read_log
from tests.support.records import part_of


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def log(tmp_path: Path, clock: ManualClock) -> Iterator[EmbeddedLog]:
    # Times of all kinds, also those that only a log from before they were refused holds.
    options = LogOptions(clock=clock, max_timestamp_ahead_seconds=1e12)
    with duolog.open_log(tmp_path / "log", options=options) as log:
        yield log


@pytest.fixture
def topic() -> str:
    return f"orders-{uuid4().hex[:12]}"


def mixed(count: int, seed: int) -> list[Record]:
    """Records of all kinds."""
    chance = random.Random(seed)
    return [
        Record(
            None if chance.random() < 0.1 else chance.randbytes(chance.choice([0, 9, 90, 4000])),
            None if chance.random() < 0.3 else chance.randbytes(chance.choice([0, 4, 40])),
            tuple(
                (f"name-{n}", None if chance.random() < 0.3 else chance.randbytes(n * 50))
                for n in range(chance.choice([0, 0, 1, 3]))
            ),
            partition=chance.randrange(3),
            ts_ms=chance.choice([0, 1, 1_700_000_000_000, 4_000_000_000_000]),
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_every_record_is_the_same_in_the_same_order(
    log: EmbeddedLog, topic: str, kafka: Kafka, compression: str
) -> None:
    log.create_topic(topic, TopicSettings(partitions=3))
    records = mixed(2000, seed=1)
    for start in range(0, 1000, 100):
        log.publish(topic, records[start : start + 100])
    with RunningMirror(log, kafka.bootstrap_servers, {"compression.type": compression}) as mirror:
        for record in records[1000:1050]:
            log.publish(topic, record)
        log.publish(topic, records[1050:])
        mirror.caught_up(topic)
    for partition in range(3):
        assert read_all(kafka.bootstrap_servers, topic, partition) == read_log(
            log, topic, partition
        )
    for mirrored in log.mirrors():
        count = log.offsets(topic)[mirrored.partition].next_offset
        assert mirrored.runs == (Run(0, 0, count),)


def test_a_mirror_that_is_started_again_goes_on_where_it_was(
    log: EmbeddedLog, topic: str, kafka: Kafka
) -> None:
    log.create_topic(topic)
    for start in range(3):
        log.publish(topic, [Record(b"%d" % n) for n in range(start * 500, start * 500 + 500)])
        with RunningMirror(log, kafka.bootstrap_servers) as mirror:
            mirror.caught_up(topic)
        values = [read.value for read in read_all(kafka.bootstrap_servers, topic)]
        assert values == [b"%d" % n for n in range(start * 500 + 500)]


def test_large_appends_are_cut_into_batches(log: EmbeddedLog, topic: str, kafka: Kafka) -> None:
    log.create_topic(topic)
    log.publish(topic, [Record(bytes([n]) * 700_000) for n in range(12)])
    with RunningMirror(log, kafka.bootstrap_servers, {"compression.type": "none"}) as mirror:
        mirror.caught_up(topic)
    assert read_all(kafka.bootstrap_servers, topic) == read_log(log, topic)


def test_a_mirror_that_begins_late_begins_with_what_is_kept(
    log: EmbeddedLog, topic: str, kafka: Kafka, clock: ManualClock
) -> None:
    log.create_topic(topic, TopicSettings(retention=Retention(seconds=60)))
    log.publish(topic, [Record(b"old")] * 10)
    clock.advance(seconds=100)
    log.publish(topic, [Record(b"new")] * 5)
    log.enforce_retention(topic)
    assert log.offsets(topic)[0].start == 10
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        mirror.caught_up(topic)
    assert [read.value for read in read_all(kafka.bootstrap_servers, topic)] == [b"new"] * 5
    (mirrored,) = log.mirrors(topic)
    assert mirrored.runs == (Run(10, 0, 5),)


def test_retention_moves_both_ends(
    log: EmbeddedLog, topic: str, kafka: Kafka, clock: ManualClock
) -> None:
    log.create_topic(topic, TopicSettings(retention=Retention(seconds=60)))
    log.publish(topic, [Record(b"old")] * 10)
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        mirror.caught_up(topic)
        clock.advance(seconds=100)
        log.publish(topic, [Record(b"new")] * 5)
        mirror.wait(
            lambda: log.enforce_retention(topic).total.messages_deleted, "what is mirrored goes"
        )
        mirror.caught_up(topic)
        left = mirror.wait(
            lambda: (read := read_all(kafka.bootstrap_servers, topic)) and len(read) == 5 and read,
            "Kafka has deleted what the log has",
        )
    assert left == read_log(log, topic)
    assert left[0].offset == 10


def test_what_went_before_it_was_sent_is_counted_and_passed_over(
    log: EmbeddedLog, topic: str, kafka: Kafka, clock: ManualClock
) -> None:
    log.create_topic(topic, TopicSettings(retention=Retention(60, waits_for_mirror=False)))
    log.publish(topic, [Record(b"first")] * 10)
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        mirror.caught_up(topic)
    log.publish(topic, [Record(b"lost")] * 20)
    clock.advance(seconds=100)
    log.publish(topic, [Record(b"last")] * 5)
    log.enforce_retention(topic)
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        mirror.caught_up(topic)
        (gone,) = mirror.said("mirror.gone")
    assert (gone["offset"], gone["records"]) == (10, 20)
    (mirrored,) = log.mirrors(topic)
    assert mirrored.runs == (Run(0, 0, 10), Run(30, 10, 5, skipped_before=20))


def test_epochs_of_a_writer_are_mirrored_whole(log: EmbeddedLog, topic: str, kafka: Kafka) -> None:
    made = log.create_topic(topic, TopicSettings(partitions=2))
    writer = Writer(Mode.STREAM, "query", topic)
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        for epoch in range(5):
            values: dict[int, Sequence[bytes | None]] = {
                p: [b"%d-%d-%d" % (epoch, p, n) for n in range(3000)] for p in range(2)
            }
            log.append(writer, epoch, [part_of(made, values)])
        mirror.caught_up(topic)
    for partition in range(2):
        assert read_all(kafka.bootstrap_servers, topic, partition) == read_log(
            log, topic, partition
        )


def test_topics_come_and_go_while_it_runs(log: EmbeddedLog, topic: str, kafka: Kafka) -> None:
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        for name in (f"{topic}-a", f"{topic}-b"):
            log.create_topic(name, TopicSettings(kafka_topic=f"{name}-in-kafka"))
            log.publish(name, Record(name.encode()))
            mirror.caught_up(name)
        log.drop_topic(f"{topic}-a")
        log.publish(f"{topic}-b", Record(b"more"))
        mirror.caught_up(f"{topic}-b")
        mirror.wait(lambda: len(mirror.topics()) == 1, "the dropped topic is left")
    found = read_all(kafka.bootstrap_servers, f"{topic}-b-in-kafka")
    assert [read.value for read in found] == [f"{topic}-b".encode(), b"more"]


def test_two_mirrors_at_once_double_nothing(log: EmbeddedLog, topic: str, kafka: Kafka) -> None:
    """As when a frozen worker wakes up after another took over: Kafka refuses one of them."""
    log.create_topic(topic)
    with (
        RunningMirror(log, kafka.bootstrap_servers) as one,
        RunningMirror(log, kafka.bootstrap_servers) as other,
    ):
        for start in range(0, 20_000, 500):
            log.publish(topic, [Record(b"%d" % n) for n in range(start, start + 500)])
        one.caught_up(topic)
        other.caught_up(topic)
    assert read_all(kafka.bootstrap_servers, topic) == read_log(log, topic)
    (mirrored,) = log.mirrors(topic)
    assert mirrored.runs == (Run(0, 0, 20_000),)
