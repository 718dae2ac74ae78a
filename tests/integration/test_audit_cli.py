"""`duolog audit` as it is typed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from duolog.cli.program import app
from duolog.log.mirror_model import Run
from tests.support.audited import GROUP, TOPIC, Audited, InKafka, records
from tests.support.kafka import Kafka

COUNT = 40
Audit = Callable[..., Result]


@pytest.fixture
def mirrored(tmp_path: Path, kafka: Kafka) -> Iterator[Audited]:
    """A topic that is equal on both sides, and a group that is not."""
    made = Audited(tmp_path / "log", kafka, partitions=1)
    made.publish([records(COUNT)])
    made.send(InKafka.of(record, 0) for record in records(COUNT))
    made.remember(0, [Run(0, 0, COUNT)])
    made.log.seek(GROUP, TOPIC, 0, 7)
    made.commit(GROUP, 0, 7)
    made.log.close()
    yield made
    made.forget_group(GROUP)


@pytest.fixture
def audit(mirrored: Audited, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Audit:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DUOLOG_LOG", "log")
    servers = {"bootstrap.servers": mirrored.kafka.bootstrap_servers}
    monkeypatch.setenv("DUOLOG_KAFKA", json.dumps(servers))
    return lambda *arguments: CliRunner().invoke(app, ("audit", "--groups", GROUP, *arguments))


def test_equal_ends_with_zero_and_says_what_was_compared(audit: Audit) -> None:
    result = audit()
    assert result.exit_code == 0, result.output
    assert f"Equal: {COUNT} records in 1 partitions, 1 group positions" in result.stdout
    assert all(len(line) <= 80 for line in result.stdout.splitlines())
    assert "NOT" not in result.stdout


def test_json_is_one_object_with_everything(audit: Audit) -> None:
    result = audit("--json", "--topic", TOPIC, "--sample", "10")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert (told["equal"], told["compared"], told["sampled"]) == (True, COUNT, 10)
    (partition,), (position,) = told["partitions"], told["positions"]
    assert (partition["topic"], partition["equal"], partition["runs"]) == (TOPIC, True, 1)
    assert (position["group"], position["position"], position["expected"]) == (GROUP, 7, 7)


def test_unequal_ends_with_one_and_names_the_place(audit: Audit, mirrored: Audited) -> None:
    mirrored.commit(GROUP, 0, 5)
    mirrored.send([InKafka.of(records(COUNT)[3], 0)])
    result = audit()
    assert result.exit_code == 1
    assert "NOT EQUAL" in result.stdout
    assert "no: 7 expected" in result.stdout
    assert f"{TOPIC}/0: Kafka's {COUNT} is offset 3 once more." in result.stdout
    told = json.loads(audit("--json").stdout)
    assert told["equal"] is False
    assert told["partitions"][0]["counts"] == {"copy_in_kafka": 1}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-X", "fetch.min.bites=1"), "fetch.min.bites"),
        (("-X", "acks"), "Write settings as name=value"),
        (("--topic", "nothing"), "nothing"),
    ],
)
def test_what_is_wrong_with_the_call_is_named(
    audit: Audit, arguments: tuple[str, ...], said: str
) -> None:
    result = audit(*arguments)
    assert result.exit_code in {1, 2}
    assert said in result.stderr
