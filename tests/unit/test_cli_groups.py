from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from duolog import open_log
from duolog.cli.program import app
from duolog.log.model import AtTimestamp, Record, TopicSettings

Duolog = Callable[..., Result]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log with a topic of two partitions, of three and two records."""
    folder = tmp_path / "log"
    with open_log(folder) as opened:
        opened.create_topic("t", TopicSettings(partitions=2))
        for partition, times in ((0, (1000, 2000, 3000)), (1, (1500, 2500))):
            opened.publish("t", [Record(b"x", partition=partition, ts_ms=each) for each in times])
    return folder


@pytest.fixture
def duolog(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Duolog:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DUOLOG_LOG", str(log))
    return lambda *arguments: CliRunner().invoke(app, arguments)


def _json(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def _positions(duolog: Duolog, group: str = "g") -> dict[int, int | None]:
    lines = _json(duolog("group", "describe", group, "--json"))
    return {line["partition"]: line["position"] for line in lines}


def test_ack_is_inclusive_and_never_moves_back(duolog: Duolog) -> None:
    acked = _json(duolog("ack", "t", "--group", "g", "--partition", "0", "--upto", "1", "--json"))
    assert acked == [{"topic": "t", "partition": 0, "group": "g", "upto_offset": 1, "position": 2}]
    assert (
        "goes on at offset 2"
        in duolog("ack", "t", "--group", "g", "--partition", "0", "--upto", "0").stderr
    )


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("t", "--group", "g", "--upto", "0"), "InvalidRequest"),  # which partition?
        (("t", "--group", "g", "--upto", "3", "--partition", "0"), "AckBeyondHead"),
        (("t", "--group", "g", "--upto", "0", "--partition", "2"), "UnknownPartition"),
        (("u", "--group", "g", "--upto", "0", "--partition", "0"), "UnknownTopic"),
        (("t", "--group", "", "--upto", "0", "--partition", "0"), "InvalidName"),
    ],
)
def test_what_cannot_be_acknowledged_is_a_named_error(
    duolog: Duolog, arguments: tuple[str, ...], code: str
) -> None:
    result = duolog("ack", *arguments, "--json")
    assert result.exit_code == 1
    assert json.loads(result.stderr)["code"] == code


def test_lag_counts_the_records_that_are_still_to_be_read(duolog: Duolog) -> None:
    duolog("ack", "t", "--group", "g", "--partition", "0", "--upto", "0")
    lines = _json(duolog("group", "describe", "g", "--json"))
    assert [(line["partition"], line["position"], line["lag"]) for line in lines] == [
        (0, 1, 2),
        (1, None, 2),
    ]
    assert lines[0]["upto_offset"] == 0
    assert lines[0]["changed_by"] == "native"
    listed = _json(duolog("group", "list", "--json"))[0]
    assert (listed["group"], listed["topics"], listed["lag"]) == ("g", ["t"], 4)
    assert listed["changed_at_ms"] == lines[0]["changed_at_ms"]


def test_lag_does_not_count_what_retention_has_removed(duolog: Duolog, log: Path) -> None:
    duolog("ack", "t", "--group", "g", "--partition", "0", "--upto", "0")
    with open_log(log) as opened:
        opened.clear_topic("t")
    assert [line["lag"] for line in _json(duolog("group", "describe", "g", "--json"))] == [0, 0]


def test_tables_show_positions_and_their_absence(duolog: Duolog) -> None:
    duolog("ack", "t", "--group", "g", "--partition", "0", "--upto", "0")
    rows = [line.split() for line in duolog("group", "describe", "g").stdout.splitlines()[2:]]
    assert [row[:5] for row in rows] == [["t", "0", "1", "3", "2"], ["t", "1", "-", "2", "2"]]
    assert duolog("group", "list").stdout.splitlines()[2].split()[:3] == ["g", "t", "4"]


def test_no_groups_is_no_error_but_an_unknown_one_is(duolog: Duolog) -> None:
    empty = duolog("group", "list")
    assert (empty.exit_code, empty.stdout) == (0, "")
    unknown = duolog("group", "describe", "g", "--json")
    assert unknown.exit_code == 1
    assert json.loads(unknown.stderr)["code"] == "UnknownGroup"


@pytest.mark.parametrize(
    ("to", "positions"),
    [
        ("start", {0: 0, 1: 0}),
        ("earliest", {0: 0, 1: 0}),
        ("end", {0: 3, 1: 2}),
        ("latest", {0: 3, 1: 2}),
        ("1", {0: 1, 1: 1}),
        ("@2000", {0: 1, 1: 1}),
        ("1970-01-01T00:00:03Z", {0: 2, 1: 2}),
    ],
)
def test_seek_moves_all_partitions(
    duolog: Duolog, to: str, positions: dict[int, int | None]
) -> None:
    duolog("ack", "t", "--group", "g", "--partition", "0", "--upto", "1")
    moved = _json(duolog("group", "seek", "g", "--topic", "t", "--to", to, "--json"))
    assert {move["partition"]: move["position"] for move in moved} == positions
    assert [move["was"] for move in moved] == [2, None]
    assert _positions(duolog) == positions


def test_seek_moves_one_partition(duolog: Duolog) -> None:
    duolog("group", "seek", "g", "--topic", "t", "--to", "end", "--partition", "1")
    assert _positions(duolog) == {0: None, 1: 2}


def test_a_dry_run_moves_nothing(duolog: Duolog) -> None:
    duolog("ack", "t", "--group", "g", "--partition", "0", "--upto", "1")
    seek = ("group", "seek", "g", "--topic", "t", "--to", "start", "--dry-run")
    assert [move["dry_run"] for move in _json(duolog(*seek, "--json"))] == [True, True]
    assert "would be" in duolog(*seek).stdout
    assert _positions(duolog) == {0: 2, 1: None}


def test_an_offset_that_one_partition_lacks_moves_none(duolog: Duolog) -> None:
    result = duolog("group", "seek", "g", "--topic", "t", "--to", "3", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stderr)["code"] == "OffsetOutOfRange"
    assert duolog("group", "describe", "g").exit_code == 1


def test_a_seek_to_a_time_lands_where_a_read_from_it_begins(duolog: Duolog, log: Path) -> None:
    duolog("group", "seek", "g", "--topic", "t", "--to", "@2500")
    with open_log(log) as opened:
        begins = {number: opened.resolve("t", number, AtTimestamp(2500)) for number in (0, 1)}
    assert _positions(duolog) == begins


def test_delete_forgets_a_group_in_one_topic_or_all(duolog: Duolog, log: Path) -> None:
    with open_log(log) as opened:
        opened.create_topic("u")
        for topic in ("t", "u"):
            opened.seek("g", topic, 0, 0)
    one = _json(duolog("group", "delete", "g", "--topic", "u", "--json"))
    assert one == [{"group": "g", "positions_deleted": 1}]
    assert {line["topic"] for line in _json(duolog("group", "describe", "g", "--json"))} == {"t"}
    assert "1 position " in duolog("group", "delete", "g").stderr
    assert duolog("group", "describe", "g").exit_code == 1
