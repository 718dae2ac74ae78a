"""`duolog bench mirror` against a real Kafka."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from duolog.cli.program import app
from tests.support.kafka import DEADLINE_SECONDS, Kafka
from tests.support.mirror_runner import until


def test_the_mirror_is_measured_beside_a_producer_and_leaves_no_topic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kafka: Kafka
) -> None:
    monkeypatch.chdir(tmp_path)
    servers = ("--bootstrap-servers", kafka.bootstrap_servers)
    result = CliRunner().invoke(app, ["bench", "mirror", "--records", "5000", *servers, "--json"])
    assert result.exit_code == 0, result.output
    told = [json.loads(line) for line in result.stdout.splitlines()]
    assert [each["name"] for each in told] == ["the mirror, from the log", "librdkafka's producer"]
    assert all(each["value"] > 0 for each in told)
    admin = kafka.admin()

    def left() -> list[str]:
        return [n for n in admin.list_topics(timeout=DEADLINE_SECONDS).topics if "bench" in n]

    until(lambda: not left())  # a broker hears of it a moment later
    assert not list(tmp_path.iterdir())
