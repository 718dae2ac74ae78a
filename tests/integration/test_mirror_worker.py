"""The Kafka worker as a process: its settings over stdin, its status over stdout, its end."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, TopicPartition

from duolog.bridge.kafka import worker
from duolog.log.model import Record
from tests.support.children import Child
from tests.support.host_server import Host
from tests.support.kafka import DEADLINE_SECONDS, Kafka
from tests.support.mirror_runner import read_all, read_log, until


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with Host(tmp_path / "log") as host:
        yield host


def settings(folder: Path, kafka: Kafka, **more: Any) -> dict[str, Any]:
    return {"folder": str(folder), "bootstrap_servers": kafka.bootstrap_servers, **more}


def test_records_and_positions_go_over_and_the_end_is_in_order(
    host: Host, tmp_path: Path, kafka: Kafka
) -> None:
    topic, group = f"orders-{uuid4().hex[:12]}", kafka.new_group()
    host.log.create_topic(topic)
    host.log.publish(topic, [Record(b"%d" % n) for n in range(10)])
    with Child(worker.__name__, {}) as child:
        child.tell(settings(tmp_path / "log", kafka))
        while child.said().get("partitions") != {"mirroring": 1}:
            pass
        host.log.ack(group, topic, 2)
        consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": group})
        place = TopicPartition(topic, 0)
        until(lambda: consumer.committed([place], DEADLINE_SECONDS)[0].offset == 3)
        consumer.commit(offsets=[TopicPartition(topic, 0, 7)], asynchronous=False)
        consumer.close()
        until(lambda: (at := host.log.group_position(group, topic, 0)) and at.position == 7)
        child._process.send_signal(signal.SIGTERM)
        *_, last = child.rest()
        assert last == {"state": "stopped"}
        assert child.wait() == 0
    assert read_all(kafka.bootstrap_servers, topic) == read_log(host.log, topic)


def test_it_ends_with_its_host(host: Host, tmp_path: Path, kafka: Kafka) -> None:
    with Child(worker.__name__, {}) as child:
        child.tell(settings(tmp_path / "log", kafka))
        child.said()
        assert child._process.stdin is not None
        child._process.stdin.close()
        assert child.wait() == 75


def test_settings_that_cannot_be_are_not_tried_again(tmp_path: Path, kafka: Kafka) -> None:
    with Child(worker.__name__, {}) as child:
        child.tell(settings(tmp_path / "log", kafka, settings={"acks": "0"}))
        said = child.said()
        assert (said["state"], said["code"]) == ("failed", "InvalidSetting")
        assert child.wait() == 78
