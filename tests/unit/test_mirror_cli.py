"""`duolog mirror restart`"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from duolog import open_log
from duolog.cli.program import app
from duolog.log.mirror_model import MirrorTarget
from duolog.log.model import TopicSettings

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
