"""What the command line says of a damaged batch, and how it skips one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from duolog import open_log
from duolog.cli.program import app
from duolog.log.model import TopicSettings
from tests.support.poison import Poison, poison
from tests.support.records import STREAM, part_of

Duolog = Callable[..., Result]


@pytest.fixture
def duolog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Duolog:
    """Run a command on a log of three batches of ten records, of which the second is damaged."""
    with open_log(tmp_path / "log") as log:
        topic = log.create_topic("orders", TopicSettings())
        for epoch in range(3):
            values = [b"%d" % number for number in range(10 * epoch, 10 * epoch + 10)]
            log.append(STREAM, epoch, [part_of(topic, {0: values})])
        poison(log, "orders", 0, 10, Poison.WRONG_SUM)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DUOLOG_LOG", str(tmp_path / "log"))

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(app, arguments)

    return run


def offsets(result: Result) -> list[int]:
    return [json.loads(line)["offset"] for line in result.stdout.splitlines()]


def test_a_reader_says_what_to_do(duolog: Duolog) -> None:
    stopped = duolog("consume", "orders", "--json")
    assert stopped.exit_code == 1
    assert offsets(stopped) == list(range(10))
    said = json.loads(stopped.stderr)
    assert said["code"] == "DamagedBatch"
    assert "`duolog topic skip orders --partition 0 --to 20`" in said["error"]
    assert said["error"].count("estore the log") == 1
    skipped = duolog("consume", "orders", "--skip-damaged")
    assert offsets(skipped) == [*range(10), *range(20, 30)]
    assert "Offsets 10-19 of topic 'orders' partition 0 are left out: " in skipped.stderr


def test_damage_holds_up_its_own_partition_alone(duolog: Duolog) -> None:
    with open_log("log") as log:
        topic = log.create_topic("two", TopicSettings(partitions=2))
        log.append(STREAM, 3, [part_of(topic, {0: [b"a"] * 10, 1: [b"b"] * 10})])
        poison(log, "two", 0, 0, Poison.WRONG_SUM)
    stopped = duolog("consume", "two", "--group", "g", "--ack", "--json")
    assert stopped.exit_code == 1
    assert json.loads(stopped.stderr.splitlines()[-1])["code"] == "DamagedBatch"
    assert offsets(stopped) == list(range(10))


def test_sql_gives_what_is_before_damage_and_in_other_partitions(duolog: Duolog) -> None:
    consume = ("sql", "--json", "CONSUME FROM orders GROUP 'g' LIMIT 100 AUTO ACK")
    first = duolog(*consume)
    assert first.exit_code == 0
    assert offsets(first) == list(range(10))
    stopped = duolog(*consume)
    assert stopped.exit_code == 1
    assert json.loads(stopped.stderr.splitlines()[-1])["code"] == "DamagedBatch"


def test_what_it_says_is_what_helps(duolog: Duolog) -> None:
    done = duolog("topic", "skip", "orders", "--partition", "0", "--to", "20", "--yes")
    assert done.exit_code == 0, done.stderr
    assert done.stderr == (
        "Skipped offsets 10-19 of topic 'orders' partition 0: 10 records given up.\n"
    )
    assert offsets(duolog("consume", "orders")) == [*range(10), *range(20, 30)]
    again = duolog("topic", "skip", "orders", "--partition", "0", "--to", "20", "--json")
    (hole,) = [json.loads(line) for line in again.stdout.splitlines()]
    assert (hole["first_offset"], hole["next_offset"]) == (10, 20)
    assert hole["skipped_by"]
    described = json.loads(duolog("topic", "describe", "orders", "--json").stdout)
    assert described["damaged"] == []
    assert [each["first_offset"] for each in described["skipped"]] == [10]
    assert "offsets 10-19" in duolog("topic", "describe", "orders").stdout


@pytest.mark.parametrize(
    ("to", "code"), [("15", "InvalidRequest"), ("30", "NothingDamaged"), ("99", "InvalidRequest")]
)
def test_a_skip_of_anything_else_is_refused(duolog: Duolog, to: str, code: str) -> None:
    refused = duolog("topic", "skip", "orders", "--partition", "0", "--to", to, "--json")
    assert refused.exit_code == 1
    assert json.loads(refused.stderr)["code"] == code
    assert json.loads(duolog("topic", "describe", "orders", "--json").stdout)["skipped"] == []
