"""`duolog doctor` before a real Kafka."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from duolog import open_log
from duolog.cli.program import app
from duolog.log.model import TopicSettings
from tests.support.kafka import Kafka


def asked(*arguments: str) -> tuple[int, list[dict[str, Any]]]:
    result = CliRunner().invoke(app, ["doctor", "--json", *arguments])
    return result.exit_code, [json.loads(line) for line in result.stdout.splitlines()]


def test_a_cluster_that_can_be_mirrored_into_is_said_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kafka: Kafka
) -> None:
    monkeypatch.chdir(tmp_path)
    code, findings = asked("--bootstrap-servers", kafka.bootstrap_servers)
    told = {each["check"]: each for each in findings}
    assert code == 0
    assert told["kafka"]["status"] == "ok"
    assert "1 broker" in told["kafka"]["found"]
    assert told["rights"]["status"] == "ok"


def test_a_kafka_topic_that_cannot_hold_a_topic_of_the_log_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kafka: Kafka
) -> None:
    monkeypatch.chdir(tmp_path)
    compacted = kafka.new_topic(settings={"cleanup.policy": "compact"})
    with open_log(tmp_path / "log") as log:
        log.create_topic("orders", TopicSettings(kafka_topic=compacted))
    code, findings = asked("--log", "log", "--bootstrap-servers", kafka.bootstrap_servers)
    assert code == 1
    (topic,) = [each for each in findings if each["check"] == "topic" and each["status"] == "error"]
    assert "compacted" in topic["found"]


def test_a_cluster_that_nobody_is_at_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, findings = asked("--bootstrap-servers", "127.0.0.1:1")
    assert code == 1
    assert findings[-1]["check"] == "kafka"
    assert "127.0.0.1:1" in findings[-1]["found"]
