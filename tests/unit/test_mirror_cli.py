"""`duolog mirror …` on a log that nobody mirrors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from duolog import open_log
from duolog.cli.program import app
from duolog.log.mirror_model import MirrorTarget
from duolog.log.mirror_modes import MirrorReport
from duolog.log.model import TopicSettings
from tests.support.host_server import Host

TARGET = MirrorTarget("cluster", "orders", "a-topic-id", 7, 0, 0, 0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A log with a topic of two partitions, both mirrored, and one that is not."""
    with open_log(tmp_path / "log") as log:
        log.create_topic("orders", TopicSettings(partitions=2))
        log.create_topic("bills")
        for partition in range(2):
            log.begin_mirror("orders", partition, TARGET)
    return tmp_path / "log"


def test_a_restart_forgets_the_mirror_of_one_topic(folder: Path) -> None:
    done = CliRunner().invoke(app, ["mirror", "restart", "orders", "--log", str(folder), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == {"topic": "orders", "partitions": 2}
    with open_log(folder) as log:
        assert log.mirrors() == ()


def test_there_may_be_nothing_to_restart(folder: Path) -> None:
    done = CliRunner().invoke(app, ["mirror", "restart", "bills", "--log", str(folder)])
    assert done.exit_code == 0
    assert "has no mirror" in done.stderr
    done = CliRunner().invoke(app, ["mirror", "restart", "nope", "--log", str(folder)])
    assert done.exit_code == 1
    assert "no topic" in done.stderr


def run(folder: Path, *arguments: str) -> list[dict[str, Any]]:
    done = CliRunner().invoke(app, ["mirror", *arguments, "--log", str(folder), "--json"])
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


def phases(folder: Path) -> dict[tuple[str, int], str]:
    return {(each["topic"], each["partition"]): each["phase"] for each in run(folder, "status")}


def test_pause_and_resume_one_topic_or_all(folder: Path) -> None:
    assert run(folder, "pause", "orders") == [{"mode": "paused", "changed": ["orders"]}]
    assert phases(folder) == {("orders", 0): "paused", ("orders", 1): "paused"}
    assert run(folder, "pause") == [{"mode": "paused", "changed": ["bills"]}]
    assert phases(folder)["bills", 0] == "paused"
    assert run(folder, "resume") == [{"mode": "on", "changed": ["bills", "orders"]}]
    assert phases(folder) == {("orders", 0): "unknown", ("orders", 1): "unknown"}


def test_detach_forgets_and_a_restart_begins_again(folder: Path) -> None:
    assert run(folder, "detach", "orders") == [{"mode": "detached", "changed": ["orders"]}]
    assert phases(folder) == {("orders", 0): "detached", ("orders", 1): "detached"}
    (first, _) = run(folder, "status", "orders")
    assert (first["kafka_topic"], first["behind"]) == (None, 0)
    assert run(folder, "restart", "orders") == [{"topic": "orders", "partitions": 2}]
    assert phases(folder) == {}


def test_it_says_what_it_did(folder: Path) -> None:
    done = CliRunner().invoke(app, ["mirror", "pause", "--log", str(folder)])
    assert done.stderr == "The mirror of bills is paused.\nThe mirror of orders is paused.\n"
    done = CliRunner().invoke(app, ["mirror", "pause", "orders", "--log", str(folder)])
    assert "nothing is to be done" in done.stderr
    done = CliRunner().invoke(app, ["mirror", "detach", "nope", "--log", str(folder)])
    assert done.exit_code == 1
    assert "no topic" in done.stderr


def test_status_shows_what_a_worker_has_said(folder: Path) -> None:
    with Host(folder) as host:
        halted = MirrorReport("orders", 1, "halted", "KafkaTopicMissing", "It was deleted. Do.")
        told = (MirrorReport("orders", 0, "mirroring"), halted)
        host.log.tell_mirror(told, anew=True)
        first, second = run(folder, "status")
        assert (first["phase"], first["code"], first["trouble"]) == ("mirroring", None, None)
        assert (second["phase"], second["code"]) == ("halted", "KafkaTopicMissing")
        done = CliRunner().invoke(app, ["mirror", "status", "--log", str(folder)])
        assert "halted" in done.stdout
        assert done.stderr == "It was deleted. Do.\n"
