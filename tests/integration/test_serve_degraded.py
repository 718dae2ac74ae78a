"""What `duolog serve` says when something is wrong: in its journal, and in /readyz."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from pathlib import Path
from uuid import uuid4

import psutil
import pytest

from duolog import open_log
from duolog.bridge.kafka.events import pause_seconds
from duolog.log.model import Record
from duolog.reach import reach
from tests.support.kafka import Kafka
from tests.support.poison import Poison, poison
from tests.support.served import ServedProcess, nobody_listens, until

UNREADY = "[serve]\nready_when_degraded = false\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "log"


def state_of(host: ServedProcess) -> object:
    return host.ready()[1]["workers"]["kafka"]["state"]


@pytest.mark.parametrize("ready_when_degraded", [True, False])
def test_a_damaged_partition_is_an_error_and_makes_the_host_degraded(
    folder: Path, ready_when_degraded: bool
) -> None:
    with open_log(folder) as log:
        log.create_topic("orders")
        log.publish("orders", [Record(b"%d" % n) for n in range(20)])
        poison(log, "orders", 0, 0, Poison.WRONG_SUM)
    if not ready_when_degraded:
        (folder.parent / "duolog.toml").write_text(UNREADY)
    with ServedProcess(folder) as host:
        assert host.ready() == (200, {"status": "ready", "writes": "ok"})  # nobody has met it yet
        asked = {"topic": "orders", "start": "Earliest", "timeout_seconds": 0}
        for _ in range(2):
            assert host.ask("/v1/api/topics/consume", asked)[0] == 500
        status, told = host.ready()
        assert status == (200 if ready_when_degraded else 503)
        assert told["status"] == "degraded"
        (why,) = told["degraded"]
        assert why.startswith("1 damaged batch in 1 partition")
        (line,) = host.journal("damage.found")
        assert (line["level"], line["topic"], line["first_offset"]) == ("error", "orders", 0)
        assert host.terminate() == 0


def test_waiting_for_kafka_is_a_warning_that_comes_ever_more_seldom(folder: Path) -> None:
    with open_log(folder) as log:
        log.create_topic("orders")
    with (
        nobody_listens() as address,
        ServedProcess(folder, "--bootstrap-servers", address, "--log-level", "warning") as host,
    ):
        until(lambda: len(host.journal("mirror.waits")) >= 4)
        status, told = host.ready()
        assert (status, told["status"]) == (200, "ready")
        assert told["workers"]["kafka"]["state"] == "running"
        lines = host.journal()
        assert {line["level"] for line in lines} == {"warning"}
        waits = [line for line in lines if line["event"] in {"mirror.waits", "groups.wait"}]
        assert {line["code"] for line in waits} == {"KafkaUnreachable"}
        times = [datetime.fromisoformat(line["time"]).timestamp() for line in waits]
        for number, (one, other) in enumerate(pairwise(times), 1):
            assert other - one > pause_seconds(number) - 0.01  # as times are written
        assert all(line["not_said_before"] > 0 for line in waits[2:])
        assert host.terminate() == 0


def test_the_worker_says_no_more_than_its_host(folder: Path) -> None:
    with open_log(folder) as log:
        log.create_topic("orders")
    with (
        nobody_listens() as address,
        ServedProcess(folder, "--bootstrap-servers", address, "--log-level", "error") as host,
    ):
        until(lambda: state_of(host) == "running")  # it has tried, and waits
        assert host.terminate() == 0
        assert host.journal() == []


@pytest.mark.parametrize("ready_when_degraded", [True, False])
def test_a_halted_mirror_is_an_error_and_makes_the_host_degraded(
    folder: Path, kafka: Kafka, ready_when_degraded: bool
) -> None:
    topic = f"halted-{uuid4().hex[:12]}"
    with open_log(folder) as log:
        log.create_topic(topic)
        log.publish(topic, [Record(b"1")])
    if not ready_when_degraded:
        (folder.parent / "duolog.toml").write_text(UNREADY)
    with ServedProcess(folder, "--bootstrap-servers", kafka.bootstrap_servers) as host:
        until(lambda: host.ready()[1]["workers"]["kafka"].get("partitions") == {"mirroring": 1})
        assert host.ready()[0] == 200
        admin = kafka.admin()
        admin.delete_topics([topic])[topic].result()
        with reach(folder) as log:
            log.publish(topic, [Record(b"2")])
        until(lambda: host.ready()[1]["status"] == "degraded")
        status, told = host.ready()
        assert status == (200 if ready_when_degraded else 503)
        assert told["degraded"] == [
            "the mirror of 1 partition is halted: see `duolog mirror status`"
        ]
        assert topic not in str(told)
        (line,) = host.journal("mirror.halted")
        assert (line["level"], line["topic"], line["code"]) == ("error", topic, "KafkaTopicMissing")
        assert host.terminate() == 0


def test_a_worker_that_ends_again_and_again_is_an_error(folder: Path) -> None:
    with open_log(folder) as log:
        log.create_topic("orders")
    with (
        nobody_listens() as address,
        ServedProcess(folder, "--bootstrap-servers", address) as host,
    ):
        for ends in (1, 2):
            worker = until(host.worker)
            worker.kill()
            until(lambda ends=ends: len(host.journal("worker.ended")) == ends)  # type: ignore[misc]
            assert psutil.wait_procs([worker], 60)[1] == []
        assert [line["level"] for line in host.journal("worker.ended")] == ["warning", "error"]
        told = host.ready()[1]
        assert told["degraded"] == [
            "the worker 'kafka' has ended 2 times in a row: see the host's log"
        ]
