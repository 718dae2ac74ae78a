"""A lost log comes back from its mirror in Kafka, and is mirrored on without a duplicate."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from typer.testing import CliRunner

from duolog import open_log
from duolog.bridge.kafka.audit import AuditReport, audit
from duolog.bridge.kafka.audit.kafka_reader import KafkaReader
from duolog.bridge.kafka.feed.filters import GroupFilter
from duolog.bridge.kafka.restore import Offsets, RestoredLog, restore_from_kafka
from duolog.bridge.kafka.settings import KafkaSettings
from duolog.cli.program import app
from duolog.errors import (
    FolderNotEmpty,
    KafkaOffsetsHaveGaps,
    KafkaTopicUnfit,
    KafkaUnreachable,
    NotFound,
    RestoreUnfinished,
)
from duolog.log.access import LogAccess
from duolog.log.model import Record, TopicSettings
from tests.support import restoring
from tests.support.audited import records
from tests.support.children import Child
from tests.support.kafka import DEADLINE_SECONDS, Kafka
from tests.support.mirror_runner import RunningMirror, read_all, read_log

COUNT = 500


class Shop:
    """A topic of its own, a group of its own, and a log that will be lost."""

    def __init__(self, folder: Path, kafka: Kafka) -> None:
        self.folder, self.kafka = folder, kafka
        self.topic = f"shop-{uuid4().hex[:10]}"
        self.group = kafka.new_group()
        self.settings = KafkaSettings.of(kafka.bootstrap_servers)
        self.groups = GroupFilter.of(self.group)

    def mirror(self, log: LogAccess) -> None:
        """Until Kafka has all of it."""
        with RunningMirror(log, self.kafka.bootstrap_servers) as mirror:
            mirror.caught_up(self.topic)

    def commit(self, partition: int, offset: int) -> None:
        """As a Kafka consumer."""
        servers = {"bootstrap.servers": self.kafka.bootstrap_servers, "group.id": self.group}
        consumer = Consumer(servers)
        place = TopicPartition(self.topic, partition, offset)
        consumer.commit(offsets=[place], asynchronous=False)
        consumer.close()

    def produce(self, count: int, *, transactional: str | None = None, abort: bool = False) -> None:
        """As somebody else, into partition 0."""
        producer = Producer(
            {"bootstrap.servers": self.kafka.bootstrap_servers}
            | ({"transactional.id": transactional} if transactional else {})
        )
        if transactional:
            producer.init_transactions(DEADLINE_SECONDS)
            producer.begin_transaction()
        for number in range(count):
            producer.produce(self.topic, b"foreign-%d" % number, partition=0)
        assert producer.flush(DEADLINE_SECONDS) == 0
        if transactional:
            (producer.abort_transaction if abort else producer.commit_transaction)(DEADLINE_SECONDS)

    def restore(self, **more: Any) -> RestoredLog:
        given: dict[str, Any] = {"topics": [self.topic], "groups": self.groups} | more
        return restore_from_kafka(self.folder, self.settings, **given)

    def audited(self, log: LogAccess) -> AuditReport:
        return audit(log, self.settings.for_confluent(), groups=self.groups)


@pytest.fixture
def shop(tmp_path: Path, kafka: Kafka) -> Shop:
    """Two mirrored partitions, two positions; and then the log is gone."""
    shop = Shop(tmp_path / "log", kafka)
    with open_log(shop.folder) as log:
        log.create_topic(shop.topic, TopicSettings(partitions=2))
        for partition in (0, 1):
            log.publish(shop.topic, records(COUNT, partition))
        shop.mirror(log)
    shop.commit(0, 123)
    shop.commit(1, COUNT)
    return shop


def lose(shop: Shop) -> Any:
    """The log is gone; what it had."""
    with open_log(shop.folder) as log:
        had = [read_log(log, shop.topic, partition) for partition in (0, 1)]
        log_id = log.log_id
    shutil.rmtree(shop.folder)
    return had, log_id


def test_records_positions_and_the_way_on_are_as_before(shop: Shop) -> None:
    had, log_id = lose(shop)
    restored = shop.restore()
    assert (restored.records, restored.groups.positions) == (2 * COUNT, 2)
    with open_log(shop.folder, create=False) as log:
        assert log.log_id == restored.log_id != log_id
        assert [read_log(log, shop.topic, partition) for partition in (0, 1)] == had
        position = log.group_position(shop.group, shop.topic, 0)
        assert position is not None
        assert position.position == 123
        assert shop.audited(log).is_equal
        assert log.check_whole().records == 2 * COUNT
        more = [Record(b"more-%d" % n, partition=n % 2) for n in range(40)]
        log.publish(shop.topic, more)
        shop.mirror(log)
        report = shop.audited(log)
        assert report.is_equal
        assert report.compared == 2 * COUNT + 40
        for partition in (0, 1):
            there = read_all(shop.kafka.bootstrap_servers, shop.topic, partition)
            assert there == read_log(log, shop.topic, partition)
            assert [each.offset for each in there] == list(range(COUNT + 20))
    with open_log(shop.folder) as log:  # a worker that comes later finds its own records
        log.publish(shop.topic, [Record(b"last", partition=0)])
        shop.mirror(log)
        assert shop.audited(log).is_equal


def test_the_command_says_what_it_made_and_audit_says_equal(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose(shop)
    monkeypatch.chdir(shop.folder.parent)
    servers = ("--log", "log", "--bootstrap-servers", shop.kafka.bootstrap_servers)
    only = ("--topic", shop.topic, "--groups", shop.group)
    result = CliRunner().invoke(app, ["restore", "--from-kafka", *servers, *only, "--json"])
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert (told["records"], told["positions"]) == (2 * COUNT, 2)
    assert {each["renumbered"] for each in told["partitions"]} == {0}
    equal = CliRunner().invoke(app, ["audit", *servers, "--groups", shop.group])
    assert equal.exit_code == 0, equal.output
    shutil.rmtree(shop.folder)
    shown = CliRunner().invoke(app, ["restore", "--from-kafka", *servers, *only])
    assert shown.exit_code == 0
    assert "1,000 records, and positions of 1 group" in shown.stderr


def test_a_topic_may_get_its_old_name_back(shop: Shop) -> None:
    lose(shop)
    shop.restore(topics=[f"{shop.topic}=orders"])
    with open_log(shop.folder, create=False) as log:
        assert log.topic("orders").settings.kafka_topic == shop.topic
        assert len(read_log(log, "orders")) == COUNT
        log.publish("orders", [Record(b"more", partition=0)])
        with RunningMirror(log, shop.kafka.bootstrap_servers) as mirror:
            mirror.caught_up("orders")
        assert len(read_all(shop.kafka.bootstrap_servers, shop.topic)) == COUNT + 1


def test_what_retention_took_leaves_offsets_as_they_were(shop: Shop) -> None:
    (had, _) = lose(shop)
    place = TopicPartition(shop.topic, 0, 200)
    admin = shop.kafka.admin()  # kept: what it was asked ends with it
    (deleted,) = admin.delete_records([place]).values()
    deleted.result(DEADLINE_SECONDS)
    shop.restore()
    with open_log(shop.folder, create=False) as log:
        assert log.offsets(shop.topic)[0].start == 200
        assert read_log(log, shop.topic, 0) == had[0][200:]
        assert shop.audited(log).is_equal
        shop.mirror(log)


def test_gaps_in_kafka_are_refused_and_numbered_anew_when_told(shop: Shop) -> None:
    lose(shop)
    shop.produce(5, transactional=f"t-{shop.topic}")
    shop.produce(3, transactional=f"t-{shop.topic}", abort=True)
    shop.produce(4)
    shop.commit(0, COUNT + 12)  # behind two of the last four
    with pytest.raises(KafkaOffsetsHaveGaps, match="--offsets renumber"):
        shop.restore()
    assert not shop.folder.exists()
    restored = shop.restore(offsets=Offsets.RENUMBER)
    assert restored.partitions[0].renumbered == 5  # two ends, and three that were taken back
    with open_log(shop.folder, create=False) as log:
        there = read_log(log, shop.topic, 0)
        assert [each.offset for each in there] == list(range(COUNT + 9))
        assert [each.value for each in there[COUNT:]] == [
            *(b"foreign-%d" % n for n in range(5)),
            *(b"foreign-%d" % n for n in range(4)),
        ]
        position = log.group_position(shop.group, shop.topic, 0)
        assert position is not None
        assert position.position == COUNT + 7
        log.publish(shop.topic, [Record(b"more", partition=0)])
        shop.mirror(log)
        report = shop.audited(log)
        assert report.is_equal, report
    assert read_all(shop.kafka.bootstrap_servers, shop.topic)[-1].value == b"more"


@pytest.mark.parametrize(
    ("point", "time"), [("store.sync", 6), ("restore.made", 1), ("restore.moved", 1)]
)
def test_a_restore_that_is_killed_begins_anew(shop: Shop, point: str, time: int) -> None:
    had, _ = lose(shop)
    asked = {
        "folder": str(shop.folder),
        "bootstrap_servers": shop.kafka.bootstrap_servers,
        "topics": [shop.topic],
        "groups": shop.group,
        "point": point,
        "time": time,
    }
    with Child(restoring.__name__, asked) as child:
        assert child.says() is None
        assert child.wait() == -9, child.errors()
    with pytest.raises(RestoreUnfinished):
        open_log(shop.folder)
    shop.restore()
    with open_log(shop.folder, create=False) as log:
        assert [read_log(log, shop.topic, partition) for partition in (0, 1)] == had
        assert shop.audited(log).is_equal


def test_what_cannot_be_restored_is_named_and_leaves_nothing(
    shop: Shop, tmp_path: Path, kafka: Kafka
) -> None:
    with pytest.raises(FolderNotEmpty):
        shop.restore()
    lose(shop)
    with pytest.raises(NotFound, match="no-such-topic"):
        shop.restore(topics=["no-such-topic"])
    compacted = kafka.new_topic(settings={"cleanup.policy": "compact"})
    with pytest.raises(KafkaTopicUnfit, match="compacted"):
        shop.restore(topics=[compacted])
    nobody = KafkaSettings.of("127.0.0.1:1", {"request.timeout.ms": "1000"})
    with pytest.raises(KafkaUnreachable):
        restore_from_kafka(shop.folder, nobody)
    assert not shop.folder.exists()


def test_a_mirror_is_read_by_columns_and_others_records_by_a_client_from_there_on(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    had, _ = lose(shop)
    by_client: list[tuple[int, int]] = []
    read = KafkaReader.read

    def counted(self: KafkaReader, topic: str, partition: int, first: int, upto: int) -> Any:
        by_client.append((partition, first))
        return read(self, topic, partition, first, upto)

    monkeypatch.setattr(KafkaReader, "read", counted)
    shop.restore()
    assert not by_client
    shutil.rmtree(shop.folder)
    packed = Producer(
        {"bootstrap.servers": shop.kafka.bootstrap_servers, "compression.type": "lz4"}
    )
    for number in range(50):
        packed.produce(shop.topic, b"packed-%d" % number * 20, partition=0)
    assert packed.flush(DEADLINE_SECONDS) == 0
    shop.restore()
    assert by_client[0] == (0, COUNT)
    with open_log(shop.folder, create=False) as log:
        assert read_log(log, shop.topic, 0)[:COUNT] == had[0]
        assert read_log(log, shop.topic, 0) == read_all(shop.kafka.bootstrap_servers, shop.topic)
        assert read_log(log, shop.topic, 1) == had[1]
