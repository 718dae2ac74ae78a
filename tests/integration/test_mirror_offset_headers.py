"""Records that carry their log offset as a header, on a real broker, and the audit of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka.cimpl import NewTopic

import duolog
from duolog.bridge.kafka.audit import AuditReport, audit
from duolog.bridge.kafka.audit.report import Finding
from duolog.bridge.kafka.feed.filters import GroupFilter
from duolog.log.embedded import EmbeddedLog
from duolog.log.mirror_model import MirrorChange, OffsetHeader
from duolog.log.model import Record
from tests.support.kafka import Kafka
from tests.support.mirror_runner import QUICK, Read, RunningMirror, read_all, read_log

WITH_OFFSETS = replace(QUICK, offset_header="log-offset")


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    with duolog.open_log(tmp_path / "log") as log:
        yield log


@pytest.fixture
def topic() -> str:
    return f"orders-{uuid4().hex[:12]}"


def audited(log: EmbeddedLog, kafka: Kafka, topic: str) -> AuditReport:
    settings = {"bootstrap.servers": kafka.bootstrap_servers}
    return audit(log, settings, topics=(topic,), groups=GroupFilter.of("nobody"))


def with_offset(read: Read) -> Read:
    return read._replace(headers=(*read.headers, ("log-offset", b"%d" % read.offset)))


def test_each_record_has_its_offset_and_the_audit_knows(
    log: EmbeddedLog, topic: str, kafka: Kafka
) -> None:
    log.create_topic(topic)
    own = (("trace", b"1"), ("none", None))
    log.publish(topic, [Record(b"%d" % n, b"k", own if n % 3 else ()) for n in range(1_000)])
    with RunningMirror(log, kafka.bootstrap_servers, options=WITH_OFFSETS) as mirror:
        mirror.caught_up(topic)
    found = read_all(kafka.bootstrap_servers, topic)
    assert found == [with_offset(read) for read in read_log(log, topic)]
    report = audited(log, kafka, topic)
    assert (report.is_equal, report.compared) == (True, 1_000)


def test_the_header_may_come_and_go_with_the_setting(
    log: EmbeddedLog, topic: str, kafka: Kafka
) -> None:
    log.create_topic(topic)
    for options in (QUICK, WITH_OFFSETS, WITH_OFFSETS, QUICK):
        log.publish(topic, [Record(b"v")] * 10)
        with RunningMirror(log, kafka.bootstrap_servers, options=options) as mirror:
            mirror.caught_up(topic)
    (mirrored,) = log.mirrors(topic)
    assert mirrored.offset_headers == (OffsetHeader(10, "log-offset"), OffsetHeader(30, None))
    expected = [
        with_offset(read) if 10 <= read.offset < 30 else read for read in read_log(log, topic)
    ]
    assert read_all(kafka.bootstrap_servers, topic) == expected
    assert audited(log, kafka, topic).is_equal
    # It is not believed: what the log says of headers that are not there is a difference.
    wrong = MirrorChange(mirrored.version, 1, 0, offset_headers=(OffsetHeader(5, "log-offset"),))
    log.change_mirror(topic, 0, wrong)
    (report,) = audited(log, kafka, topic).partitions
    assert set(report.counts) == {Finding.OFFSET_HEADER_DIFFERS}
    assert report.counts[Finding.OFFSET_HEADER_DIFFERS] == 15


def test_what_is_set_aside_has_no_header_of_the_mirror(
    log: EmbeddedLog, topic: str, kafka: Kafka
) -> None:
    admin = kafka.admin()
    made = NewTopic(topic, 1, 1, config={"max.message.bytes": "2000"})
    admin.create_topics([made])[topic].result()
    log.create_topic(topic)
    own = (("own", b"h"),)
    log.publish(topic, [Record(b"a"), Record(b"x" * 3_000, None, own), Record(b"b")])
    with RunningMirror(log, kafka.bootstrap_servers, options=WITH_OFFSETS) as mirror:
        mirror.caught_up(topic)
    (aside,) = log.fetch(f"{topic}.kafka-refused", 0, 0)
    assert aside.headers[0] == ("own", b"h")
    assert "log-offset" not in dict(aside.headers)
    headers = [read.headers for read in read_all(kafka.bootstrap_servers, topic)]
    assert headers == [(("log-offset", b"0"),), (("log-offset", b"2"),)]
    assert audited(log, kafka, topic).is_equal
