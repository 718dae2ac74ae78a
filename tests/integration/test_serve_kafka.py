"""`duolog serve --bootstrap-servers`: what is published is in Kafka, whatever ends the worker."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from duolog import open_log
from duolog.log.mirrored import mirrored_partitions
from duolog.log.model import Record, TopicSettings
from duolog.reach import reach
from tests.integration.serve_host import until
from tests.support.kafka import DEADLINE_SECONDS, Kafka
from tests.support.mirror_runner import read_all

DUOLOG = [sys.executable, "-m", "duolog.cli"]
COUNT = 500


class Serving:
    """A host with its worker, as processes."""

    def __init__(self, folder: Path, kafka: Kafka, *options: str) -> None:
        self.folder = folder
        variables = {n: text for n, text in os.environ.items() if not n.startswith("DUOLOG_")}
        self.process = subprocess.Popen(
            [
                *(*DUOLOG, "serve", "--log", str(folder), "--listen", "127.0.0.1:0"),
                *("--bootstrap-servers", kafka.bootstrap_servers, *options),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder.parent,
            env=variables,
        )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().decode().strip()

    def worker(self) -> psutil.Process | None:
        """The process that mirrors, once it runs."""
        for child in psutil.Process(self.process.pid).children():
            with suppress(psutil.NoSuchProcess):  # it has ended meanwhile
                if "duolog.bridge.kafka.worker" in child.cmdline():
                    return child
        return None

    def ready(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.url}/readyz", timeout=DEADLINE_SECONDS) as answer:
            told: dict[str, Any] = json.loads(answer.read())
        return told

    def metric(self, name: str) -> float | None:
        """The sum over its labels; None where it is not shown."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=DEADLINE_SECONDS) as answer:
            lines = answer.read().decode().splitlines()
        found = [line for line in lines if re.split(r"[{ ]", line)[0] == name]
        return sum(float(line.rpartition(" ")[2]) for line in found) if found else None

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(DEADLINE_SECONDS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def topic(kafka: Kafka, folder: Path) -> str:
    """A topic of the log, whose name no other test's topic in Kafka has."""
    name = kafka.new_group().replace("group", "served")
    with open_log(folder) as log:
        log.create_topic(name, TopicSettings(partitions=2))
    return name


@pytest.fixture
def serving(folder: Path, kafka: Kafka, topic: str) -> Iterator[Serving]:
    started = Serving(folder, kafka)
    yield started
    if started.process.poll() is None:
        started.process.kill()
    started.process.wait(DEADLINE_SECONDS)
    assert started.process.stdout is not None
    started.process.stdout.close()


def publish(folder: Path, topic: str, first: int) -> None:
    with reach(folder) as log:
        for begin in range(first, first + COUNT, 100):
            log.publish(
                topic,
                [
                    Record(b"value-%d" % n, key=b"%d" % n, partition=n % 2)
                    for n in range(begin, begin + 100)
                ],
            )


def duolog(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*DUOLOG, *arguments],
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )


def behind(folder: Path) -> Callable[[], bool]:
    """Whether Kafka has everything, as `duolog mirror status` tells it."""

    def nothing_left() -> bool:
        told = duolog("mirror", "status", "--log", str(folder), "--json")
        assert told.returncode == 0, told.stderr
        lines = [json.loads(line) for line in told.stdout.splitlines()]
        return len(lines) == 2 and all(line["behind"] == 0 for line in lines)

    return nothing_left


def test_what_is_published_is_in_kafka_once_also_when_the_worker_is_killed(
    serving: Serving, folder: Path, kafka: Kafka, topic: str
) -> None:
    until(lambda: serving.worker() is not None)
    publish(folder, topic, 0)
    first = serving.worker()
    assert first is not None
    first.kill()
    publish(folder, topic, COUNT)
    until(lambda: serving.worker() not in {None, first})
    until(behind(folder))
    assert serving.ready()["workers"]["kafka"]["state"] == "running"
    until(lambda: serving.metric("duolog_mirror_partitions") == 2)
    until(lambda: serving.metric("duolog_mirror_records_behind") == 0)
    until(lambda: serving.metric("duolog_mirror_seconds_since_progress") == 0)
    assert serving.metric("duolog_mirror_skipped_total") == 0
    assert serving.metric("duolog_mirror_foreign_total") == 0

    audited = duolog(
        *("audit", "--log", str(folder), "--bootstrap-servers", kafka.bootstrap_servers),
        *("--groups", "nobody", "--json"),
    )
    assert audited.returncode == 0, audited.stdout + audited.stderr
    told = json.loads(audited.stdout)
    assert (told["equal"], told["compared"]) == (True, 2 * COUNT)
    assert all(each["foreign"] == each["pending"] == 0 for each in told["partitions"])


def test_the_worker_ends_with_its_host(serving: Serving) -> None:
    until(lambda: serving.worker() is not None)
    worker = serving.worker()
    assert worker is not None
    assert serving.end() == 0
    assert psutil.wait_procs([worker], DEADLINE_SECONDS)[1] == []


def test_status_says_how_far_it_is(serving: Serving, folder: Path, topic: str) -> None:
    publish(folder, topic, 0)
    until(behind(folder))
    shown = duolog("mirror", "status", topic, "--log", str(folder)).stdout
    assert topic in shown
    assert f"{COUNT // 2}" in shown


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("-X", "acks=0"), "acks"),
        (("-X", "compresion.type=zstd"), "compression.type"),
        (("-X", "linger"), "name=value"),
        (("-X", "sasl.password=hush"), "DUOLOG_KAFKA"),
    ],
)
def test_settings_that_would_break_the_mirror_are_refused_at_once(
    folder: Path, topic: str, options: tuple[str, ...], said: str
) -> None:
    refused = duolog(
        *("serve", "--log", str(folder), "--bootstrap-servers", "127.0.0.1:9", *options)
    )
    assert refused.returncode in {1, 2}
    assert said in refused.stderr
    assert "hush" not in refused.stderr + refused.stdout


def test_settings_without_a_broker_are_refused(folder: Path, topic: str) -> None:
    refused = duolog("serve", "--log", str(folder), "-X", "client.id=shop")
    assert refused.returncode == 2
    assert "--bootstrap-servers" in refused.stderr


def test_a_log_without_a_mirror_is_told_so(folder: Path, topic: str) -> None:
    told = duolog("mirror", "status", "--log", str(folder))
    assert told.returncode == 0
    assert "Nothing is mirrored" in told.stderr


def shown(folder: Path) -> list[tuple[str, int]]:
    """Each partition's phase, and how many records it is behind."""
    with reach(folder) as log:
        return [(each.phase, each.behind) for each in mirrored_partitions(log)]


def test_what_is_paused_stays_so_when_the_worker_is_killed_and_the_host_restarted(
    serving: Serving, folder: Path, kafka: Kafka, topic: str
) -> None:
    publish(folder, topic, 0)
    until(lambda: shown(folder) == [("mirroring", 0)] * 2)
    paused = duolog("mirror", "pause", topic, "--log", str(folder))
    assert (paused.returncode, paused.stderr) == (0, f"The mirror of {topic} is paused.\n")
    until(lambda: serving.ready()["workers"]["kafka"].get("partitions") == {"paused": 2})
    publish(folder, topic, COUNT)
    assert shown(folder) == [("paused", COUNT // 2)] * 2

    first = serving.worker()
    assert first is not None
    first.kill()
    until(lambda: serving.worker() not in {None, first})
    until(lambda: serving.ready()["workers"]["kafka"].get("partitions") == {"paused": 2})
    assert shown(folder) == [("paused", COUNT // 2)] * 2
    until(lambda: serving.metric("duolog_mirror_records_behind") == COUNT)
    assert serving.metric("duolog_mirror_seconds_since_progress") == 0
    told = duolog("mirror", "status", "--log", str(folder), "--json").stdout.splitlines()
    assert [json.loads(line)["phase"] for line in told] == ["paused"] * 2
    assert serving.end() == 0
    assert shown(folder) == [("paused", COUNT // 2)] * 2  # also when nobody mirrors

    again = Serving(folder, kafka)
    try:
        until(lambda: again.ready()["workers"]["kafka"].get("partitions") == {"paused": 2})
        assert shown(folder) == [("paused", COUNT // 2)] * 2
        asked = duolog(
            *("sql", "--log", str(folder), "--json"),
            'SELECT "partition", phase, behind FROM system.mirror ORDER BY 1',
        )
        assert [json.loads(line)["phase"] for line in asked.stdout.splitlines()] == ["paused"] * 2
        assert duolog("mirror", "resume", "--log", str(folder)).returncode == 0
        until(lambda: shown(folder) == [("mirroring", 0)] * 2)
        audited = duolog(
            *("audit", "--log", str(folder), "--bootstrap-servers", kafka.bootstrap_servers),
            *("--groups", "nobody", "--json"),
        )
        assert audited.returncode == 0, audited.stdout + audited.stderr
        assert json.loads(audited.stdout)["compared"] == 2 * COUNT
        assert duolog("mirror", "detach", topic, "--log", str(folder)).returncode == 0
        until(lambda: again.ready()["workers"]["kafka"].get("partitions") == {})
        assert shown(folder) == [("detached", 0)] * 2
    finally:
        again.end()
        assert again.process.stdout is not None
        again.process.stdout.close()


def test_the_offset_header_is_a_setting(folder: Path, kafka: Kafka, topic: str) -> None:
    settings = folder.parent / "duolog.toml"
    settings.write_text('[mirror]\noffset_header = "at"\n')
    serving = Serving(folder, kafka)
    try:
        publish(folder, topic, 0)
        until(lambda: shown(folder) == [("mirroring", 0)] * 2)
        found = read_all(kafka.bootstrap_servers, topic, 1)
        assert [read.headers for read in found] == [
            (("at", b"%d" % offset),) for offset in range(COUNT // 2)
        ]
        audited = duolog(
            *("audit", "--log", str(folder), "--bootstrap-servers", kafka.bootstrap_servers),
            *("--groups", "nobody"),
        )
        assert audited.returncode == 0, audited.stdout + audited.stderr
    finally:
        serving.end()
        assert serving.process.stdout is not None
        serving.process.stdout.close()
