"""A second mirror of the same log, and others who write into the same Kafka topic."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Producer

import duolog
from duolog.bridge.kafka.mirror.restarting import restart
from duolog.log.embedded import EmbeddedLog
from duolog.log.mirror_modes import MirrorMode
from duolog.log.model import Mode, Record, Writer
from tests.support.kafka import DEADLINE_SECONDS, Kafka
from tests.support.mirror_runner import RunningMirror, read_all, read_log
from tests.support.records import part_of

NOW_MS = int(time.time() * 1000)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    with duolog.open_log(tmp_path / "log") as log:
        yield log


@pytest.fixture
def topic() -> str:
    return f"orders-{uuid4().hex[:12]}"


def records(first: int, count: int) -> list[Record]:
    return [
        Record(b"value-%d" % n, b"key-%d" % (n % 7), (("n", b"%d" % n),), ts_ms=NOW_MS + n // 5)
        for n in range(first, first + count)
    ]


def write(kafka: Kafka, topic: str, copied: Iterable[Record], **settings: Any) -> None:
    """Write records as another program does that keeps their times."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, **settings})
    for record in copied:
        headers: Any = list(record.headers)
        producer.produce(
            topic,
            record.value,
            record.key,
            partition=0,
            timestamp=record.ts_ms or 0,
            headers=headers,
        )
    assert producer.flush(DEADLINE_SECONDS) == 0


def test_a_second_mirror_does_not_begin_behind_the_first(
    log: EmbeddedLog, topic: str, kafka: Kafka, tmp_path: Path
) -> None:
    log.create_topic(topic)
    log.publish(topic, records(0, 100))
    log.close()
    shutil.copytree(log.folder, tmp_path / "copy")
    with (
        duolog.open_log(log.folder) as ours,
        duolog.open_log(tmp_path / "copy") as copy,
        RunningMirror(copy, kafka.bootstrap_servers) as first,
    ):
        first.caught_up(topic)
        with RunningMirror(ours, kafka.bootstrap_servers) as second:
            halted = second.halted(topic)
            assert halted.trouble_code == "CopiesInKafka"
            assert "delete the Kafka topic" in str(halted.trouble)
        assert read_all(kafka.bootstrap_servers, topic) == read_log(copy, topic)


def test_two_mirrors_that_began_together_notice_each_other(
    log: EmbeddedLog, topic: str, kafka: Kafka, tmp_path: Path
) -> None:
    log.create_topic(topic)
    log.close()
    shutil.copytree(log.folder, tmp_path / "copy")
    with (
        duolog.open_log(log.folder) as ours,
        duolog.open_log(tmp_path / "copy") as copy,
        RunningMirror(ours, kafka.bootstrap_servers) as first,
        RunningMirror(copy, kafka.bootstrap_servers) as second,
    ):
        first.wait(lambda: first.status(topic).phase == "mirroring", "it has begun")
        second.wait(lambda: second.status(topic).phase == "mirroring", "it has begun too")

        numbers = count(0, 10)

        def more() -> bool:
            """What is written to both logs, as by one program with two places to write to."""
            first_number = next(numbers)
            for each in (ours, copy):
                each.publish(topic, records(first_number, 10))
            return "CopiesInKafka" in {
                mirror.status(topic).trouble_code for mirror in (first, second)
            }

        first.wait(more, "one of them halts")


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_a_program_that_copies_halts_the_mirror_until_it_is_settled(
    log: EmbeddedLog, topic: str, kafka: Kafka, compression: str
) -> None:
    log.create_topic(topic)
    log.publish(topic, records(0, 50))
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        mirror.caught_up(topic)
        write(kafka, topic, records(20, 25), **{"compression.type": compression})
        log.publish(topic, records(50, 10))
        halted = mirror.halted(topic)
        assert halted.trouble_code == "CopiesInKafka"
        assert f"duolog mirror resume {topic}" in str(halted.trouble)
        assert "from offset 50 on" in str(halted.trouble)
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:  # it does not go on by itself
        log.publish(topic, records(60, 10))
        assert mirror.halted(topic).trouble_code == "CopiesInKafka"
        write(kafka, topic, records(45, 3))  # up to when it is resumed
        log.set_mirror_mode(topic, MirrorMode.ON)
        mirror.caught_up(topic)
        log.publish(topic, records(70, 10))
        mirror.caught_up(topic)
        (mirrored,) = log.mirrors(topic)
        assert mirrored.copied_at is None
        write(kafka, topic, records(0, 5))
        log.publish(topic, records(80, 10))
        assert mirror.halted(topic).trouble_code == "CopiesInKafka"


def test_copies_that_came_while_it_was_away_are_found_before_it_goes_on(
    log: EmbeddedLog, topic: str, kafka: Kafka
) -> None:
    log.create_topic(topic)
    log.publish(topic, records(0, 20))
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        mirror.caught_up(topic)
    write(kafka, topic, records(0, 20))
    log.publish(topic, records(20, 20))
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        assert mirror.halted(topic).trouble_code == "CopiesInKafka"
    assert len(read_all(kafka.bootstrap_servers, topic)) == 40


def test_copies_of_records_far_back_that_have_one_time_are_found(
    log: EmbeddedLog, topic: str, kafka: Kafka
) -> None:
    """As rows have that come in one epoch: who copies them begins with the first."""
    made = log.create_topic(topic)
    values = [b"row-%d" % n for n in range(60_000)]
    part = part_of(made, {0: values}, ts_ms=NOW_MS)
    log.append(Writer(Mode.STREAM, "query", topic), 0, [part])
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        mirror.caught_up(topic)
        found = read_log(log, topic)[:50]
        write(kafka, topic, [Record(r.value, r.key, r.headers, ts_ms=r.ts_ms) for r in found])
        log.publish(topic, Record(b"next"))
        assert mirror.halted(topic).trouble_code == "CopiesInKafka"


@pytest.mark.parametrize("idempotent", [False, True])
def test_an_ordinary_writer_is_passed_over_however_alike(
    log: EmbeddedLog, topic: str, kafka: Kafka, idempotent: bool
) -> None:
    """It writes equal values, with its own times or some of ours, alone or in another order."""
    log.create_topic(topic)
    n = 0
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        for _ in range(2):
            log.publish(topic, records(n, 40))
            mirror.caught_up(topic)
            later = [
                Record(r.value, r.key, r.headers, ts_ms=NOW_MS + 1_000_000) for r in records(n, 40)
            ]
            backwards, alone = records(n, 10)[::-1], records(n + 20, 1)
            alike = [Record(b"alive", b"key", ts_ms=NOW_MS)] * 20
            log.publish(topic, alike)
            mirror.caught_up(topic)
            for written in (later, backwards, alone, alike):
                write(kafka, topic, written, **{"enable.idempotence": idempotent})
            n += 40
        log.publish(topic, records(n, 1))
        mirror.caught_up(topic)
        looked = mirror.status(topic).foreign
        mirror.wait(lambda: mirror.status(topic).phase == "mirroring", "it goes on")
    assert looked == 2 * (40 + 10 + 1 + 20)
    # What was not looked at while it ran is looked at when it starts.
    for written in (later, backwards, alone, alike):
        write(kafka, topic, written, **{"enable.idempotence": idempotent})
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        log.publish(topic, records(n + 1, 1))
        mirror.caught_up(topic)


def test_a_mirror_that_begins_behind_its_own_records_is_refused(
    log: EmbeddedLog, topic: str, kafka: Kafka
) -> None:
    log.create_topic(topic)
    log.publish(topic, records(0, 1_000))
    write(kafka, topic, records(100, 700))
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        assert mirror.halted(topic).trouble_code == "CopiesInKafka"
        admin = kafka.admin()
        admin.delete_topics([topic])[topic].result(DEADLINE_SECONDS)
        mirror.caught_up(topic)
    assert read_all(kafka.bootstrap_servers, topic) == read_log(log, topic)
    assert restart(log, topic) == 1
