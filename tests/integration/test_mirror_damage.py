"""A damaged batch under a mirror: it halts with that name and passes over the hole, on a broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

import duolog
from duolog.bridge.kafka.audit import Finding, audit
from duolog.log.embedded import EmbeddedLog
from duolog.log.mirror_model import SkipReason
from duolog.log.model import TopicSettings
from duolog.log.offset_map import OffsetMap
from tests.support.kafka import Kafka
from tests.support.mirror_runner import RunningMirror, read_all, read_log
from tests.support.poison import Poison, poison
from tests.support.records import STREAM, part_of


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    with duolog.open_log(tmp_path / "log") as log:
        yield log


@pytest.fixture
def topic() -> str:
    return f"orders-{uuid4().hex[:12]}"


def write(log: EmbeddedLog, topic: str, epochs: range) -> None:
    """An epoch is a batch of ten records."""
    known = log.topic(topic)
    for epoch in epochs:
        values = [b"%d" % number for number in range(10 * epoch, 10 * epoch + 10)]
        log.append(STREAM, epoch, [part_of(known, {0: values})])


def stored(log: EmbeddedLog, topic: str) -> int:
    """How far the log knows it to be mirrored."""
    return sum(mirror.next_log_offset for mirror in log.mirrors(topic))


def values_in_kafka(kafka: Kafka, topic: str) -> list[bytes | None]:
    return [record.value for record in read_all(kafka.bootstrap_servers, topic)]


@pytest.mark.parametrize("kind", list(Poison))
@pytest.mark.parametrize("damaged", [0, 2, 4])  # the first of five, one within, the last
def test_a_damaged_batch_halts_the_mirror_until_it_is_skipped(
    log: EmbeddedLog, topic: str, kafka: Kafka, kind: Poison, damaged: int
) -> None:
    log.create_topic(topic, TopicSettings())
    write(log, topic, range(5))
    first, stop = 10 * damaged, 10 * damaged + 10
    poison(log, topic, 0, first, kind)
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        status = mirror.halted(topic)
        assert status.trouble_code == "MirrorMeetsDamage"
        assert f"damaged batch at offsets {first}-{stop - 1}" in (status.trouble or "")
        assert status.next_log_offset == first  # all that is before it is there
        assert [each.first_offset for each in log.damage(topic)] == [first]
        log.skip_to(topic, 0, stop, by="ann")
        mirror.caught_up(topic)
        write(log, topic, range(5, 6))
        mirror.caught_up(topic)
        mirror.wait(lambda: mirror.status(topic).trouble is None, "the trouble is over")
        assert len(mirror.said("mirror.halted")) == 1
    expected = [record.value for record in read_log(log, topic)]
    assert len(expected) == 50
    assert values_in_kafka(kafka, topic) == expected
    (mirrored,) = log.mirrors(topic)
    assert [(s.first_log_offset, s.count, s.reason) for s in mirrored.skips] == [
        (first, 10, SkipReason.DAMAGED)
    ]
    report = audit(log, {"bootstrap.servers": kafka.bootstrap_servers}, topics=[topic])
    assert report.is_equal, report
    (partition,) = report.partitions
    assert (partition.compared, partition.skipped, partition.pending) == (50, 10, 0)
    places = OffsetMap.of_mirror(mirrored)
    assert places.to_kafka(first + 5) == first  # the first record behind the hole lies there
    assert places.to_kafka(stop) == first
    assert places.is_same_place(first + 5, first)
    assert places.is_same_place(stop, first)


def test_a_mirror_that_stood_goes_on_after_a_restart(
    log: EmbeddedLog, topic: str, kafka: Kafka
) -> None:
    log.create_topic(topic, TopicSettings())
    write(log, topic, range(4))
    for offset in (10, 20):
        poison(log, topic, 0, offset, Poison.WRONG_INSIDES)
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        mirror.halted(topic)
    log.skip_to(topic, 0, 30)
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        mirror.caught_up(topic)
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        write(log, topic, range(4, 5))
        mirror.caught_up(topic)
    assert values_in_kafka(kafka, topic) == [r.value for r in read_log(log, topic)]
    assert audit(log, {"bootstrap.servers": kafka.bootstrap_servers}, topics=[topic]).is_equal


def test_what_was_copied_before_it_was_damaged_stays_in_kafka(
    log: EmbeddedLog, topic: str, kafka: Kafka
) -> None:
    log.create_topic(topic, TopicSettings())
    write(log, topic, range(3))
    with RunningMirror(log, kafka.bootstrap_servers) as mirror:
        mirror.wait(lambda: stored(log, topic) == 30, "stored as mirrored")
        poison(log, topic, 0, 10, Poison.WRONG_SUM)
        damaged = audit(log, {"bootstrap.servers": kafka.bootstrap_servers}, topics=[topic])
        assert not damaged.is_equal
        assert damaged.partitions[0].counts == {Finding.DAMAGED_IN_LOG: 1}
        log.skip_to(topic, 0, 20)
        write(log, topic, range(3, 4))
        mirror.caught_up(topic)
    assert values_in_kafka(kafka, topic) == [b"%d" % number for number in range(40)]
    (mirrored,) = log.mirrors(topic)
    assert mirrored.skips == ()
    report = audit(log, {"bootstrap.servers": kafka.bootstrap_servers}, topics=[topic])
    assert report.is_equal, report
    assert (report.partitions[0].compared, report.partitions[0].not_comparable) == (30, 10)
