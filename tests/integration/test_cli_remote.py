"""The whole command line over --url, in a folder without any log or settings."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from duolog.cli.program import app
from tests.support.host_server import TOKEN, Host

Duolog = Callable[..., Result]


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    running = Host(tmp_path_factory.mktemp("host") / "log")
    yield running
    running.stop()


@pytest.fixture(params=["options", "variables"])
def duolog(
    request: pytest.FixtureRequest, host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Duolog:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DUOLOG_LOG", raising=False)
    given: tuple[str, ...] = ("--url", host.url, "--token", TOKEN)
    if request.param == "variables":
        monkeypatch.setenv("DUOLOG_URL", host.url)
        monkeypatch.setenv("DUOLOG_TOKEN", TOKEN)
        given = ()
    return lambda *arguments, typed="": CliRunner().invoke(app, (*arguments, *given), input=typed)


def lines(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_from_a_topic_to_an_acknowledgement(duolog: Duolog, tmp_path: Path) -> None:
    topic = f"t-{tmp_path.name}"[:60]
    lines(duolog("topic", "create", topic, "--partitions", "2", "--json"))
    records = "".join(f'{{"key":"k{n}","value":{{"n":{n}}}}}\n' for n in range(20))
    places = lines(duolog("publish", topic, typed=records))
    assert len(places) == 20
    consumed = lines(duolog("consume", topic, "--group", "g", "--from", "earliest", "--ack"))
    assert sorted(each["value"]["n"] for each in consumed) == list(range(20))
    described = lines(duolog("group", "describe", "g", "--json"))
    assert sum(each["position"] for each in described if each["topic"] == topic) == 20
    asked = f"SELECT sum(next_offset) AS n FROM system.partitions WHERE topic = '{topic}'"
    (row,) = lines(duolog("sql", asked, "--json"))
    assert row["n"] == 20
    assert "Nothing is mirrored" in duolog("mirror", "status", topic).stderr
    lines(duolog("topic", "delete", topic, "--yes", "--json"))


def test_rows_of_a_table(duolog: Duolog, tmp_path: Path) -> None:
    topic = f"r-{tmp_path.name}"[:60]
    lines(duolog("topic", "create", topic, "--json"))
    lines(duolog("topic", "add-source", topic, f"shop.{topic}", "--on", "insert", "--json"))
    rows = '{"id":1,"amount":5}\n{"id":2,"amount":7}\n'
    named = ("--table", f"shop.{topic}", "--op", "insert", "--key", "id")
    assert len(lines(duolog("publish", *named, typed=rows))) == 2
    again = duolog("publish", *named, "--writer", topic, typed=rows)
    assert len(lines(again)) == 2
