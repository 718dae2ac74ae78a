from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from duolog import open_log
from duolog.cli.program import app
from duolog.cli.turns import PAGE_RECORDS
from duolog.log.model import Record, Retention, TopicSettings

Duolog = Callable[..., Result]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log with topic t of four partitions, of twenty records each."""
    folder = tmp_path / "log"
    with open_log(folder) as opened:
        opened.create_topic("t", TopicSettings(partitions=4))
        opened.publish(
            "t",
            [
                Record(b"%d" % number, partition=number % 4, ts_ms=1000 * (number // 4))
                for number in range(80)
            ],
        )
    return folder


@pytest.fixture
def duolog(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Duolog:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DUOLOG_LOG", str(log))
    return lambda *arguments: CliRunner().invoke(app, arguments)


def _lines(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def _offsets(result: Result) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for line in _lines(result):
        found.setdefault(line["partition"], []).append(line["offset"])
    return found


def test_without_a_partition_all_of_them_are_read_each_in_order(duolog: Duolog) -> None:
    assert _offsets(duolog("consume", "t")) == {number: list(range(20)) for number in range(4)}


def test_one_partition_is_read_alone(duolog: Duolog) -> None:
    assert _offsets(duolog("consume", "t", "--partition", "2")) == {2: list(range(20))}


@pytest.mark.parametrize(("limit", "shares"), [(1, [1]), (4, [1] * 4), (10, [3, 3, 2, 2])])
def test_a_limit_is_shared_among_partitions(duolog: Duolog, limit: int, shares: list[int]) -> None:
    found = _offsets(duolog("consume", "t", "--limit", str(limit)))
    assert sorted(map(len, found.values()), reverse=True) == shares
    assert all(offsets == list(range(len(offsets))) for offsets in found.values())


def test_a_limit_reaches_what_one_partition_alone_has(duolog: Duolog, log: Path) -> None:
    with open_log(log) as opened:
        opened.publish("t", [Record(b"more", partition=3)] * 50)
    found = _offsets(duolog("consume", "t", "--limit", "125"))
    assert {partition: len(offsets) for partition, offsets in found.items()} == {
        0: 20, 1: 20, 2: 20, 3: 65,
    }  # fmt: skip


def test_long_partitions_are_read_in_turns(duolog: Duolog, log: Path) -> None:
    with open_log(log) as opened:
        opened.create_topic("long", TopicSettings(partitions=2))
        for partition in (0, 1):
            opened.publish("long", [Record(b"x", partition=partition)] * (2 * PAGE_RECORDS))
    order = [line["partition"] for line in _lines(duolog("consume", "long"))]
    assert order == ([0] * PAGE_RECORDS + [1] * PAGE_RECORDS) * 2


@pytest.mark.parametrize(
    ("begin", "first"),
    [
        ("earliest", 0),
        ("start", 0),
        ("7", 7),
        ("@5000", 5),
        ("1970-01-01T00:00:05.5Z", 6),
        ("latest", None),
    ],
)
def test_reading_begins_where_it_was_told(duolog: Duolog, begin: str, first: int | None) -> None:
    found = _offsets(duolog("consume", "t", "--from", begin))
    assert found == ({} if first is None else {each: list(range(first, 20)) for each in range(4)})


@pytest.mark.parametrize(
    ("arguments", "exit_code", "code"),
    [
        (("t", "--from", "21"), 1, "OffsetOutOfRange"),
        (("t", "--partition", "4"), 1, "UnknownPartition"),
        (("u",), 1, "UnknownTopic"),
        (("t", "--from", "soon"), 2, "UsageError"),
        (("t", "--limit", "0"), 2, "UsageError"),
        (("t", "--ack"), 2, "UsageError"),
    ],
)
def test_what_cannot_be_read_is_a_named_error(
    duolog: Duolog, arguments: tuple[str, ...], exit_code: int, code: str
) -> None:
    result = duolog("consume", *arguments, "--json")
    assert (result.exit_code, result.stdout) == (exit_code, "")
    assert json.loads(result.stderr)["code"] == code


def test_a_group_goes_on_where_it_is_whatever_from_says(duolog: Duolog) -> None:
    duolog("ack", "t", "--group", "g", "--partition", "1", "--upto", "4")
    found = _offsets(duolog("consume", "t", "--group", "g", "--from", "18"))
    assert found == {0: [18, 19], 1: list(range(5, 20)), 2: [18, 19], 3: [18, 19]}


def test_reading_alone_moves_no_group(duolog: Duolog) -> None:
    first = duolog("consume", "t", "--group", "g")
    assert duolog("group", "describe", "g").exit_code == 1
    assert duolog("consume", "t", "--group", "g").stdout == first.stdout


def test_acknowledged_records_do_not_come_again_and_no_others_are_lost(duolog: Duolog) -> None:
    read = ("consume", "t", "--group", "g", "--ack")
    first = _lines(duolog(*read, "--limit", "30"))
    second = _lines(duolog(*read))
    assert len(first) == 30
    places = [(line["partition"], line["offset"]) for line in first + second]
    assert len(places) == len(set(places)) == 80
    assert _lines(duolog(*read)) == []


def test_a_group_that_reads_little_at_a_time_starves_no_partition(duolog: Duolog) -> None:
    read = ("consume", "t", "--group", "g", "--ack", "--limit", "1")
    seen = [_lines(duolog(*read))[0]["partition"] for _ in range(4)]
    assert sorted(seen) == [0, 1, 2, 3]


def test_what_retention_took_from_a_group_is_told(duolog: Duolog, log: Path) -> None:
    duolog("ack", "t", "--group", "g", "--partition", "0", "--upto", "4")
    with open_log(log) as opened:
        opened.set_retention("t", Retention(max_bytes=1))
        opened.enforce_retention()
        opened.publish("t", Record(b"new", partition=0))
    result = duolog("consume", "t", "--group", "g", "--partition", "0")
    assert _offsets(result) == {0: [20]}
    assert "was at 5 in partition 0" in result.stderr
    lines = [
        json.loads(line) for line in duolog("group", "describe", "g", "--json").stdout.splitlines()
    ]
    assert lines[0]["position"] == 5


def test_raw_prints_base64(duolog: Duolog) -> None:
    line = _lines(duolog("consume", "t", "--raw", "--limit", "1"))[0]
    assert (line["value"], line["value_encoding"]) == ("MA==", "base64")


def test_follow_ends_at_its_limit(duolog: Duolog) -> None:
    assert len(_lines(duolog("consume", "t", "--follow", "--limit", "80"))) == 80


def test_what_was_printed_can_be_published_elsewhere(duolog: Duolog, tmp_path: Path) -> None:
    other = str(tmp_path / "other")
    duolog("topic", "create", "copy", "--partitions", "4", "--log", other)
    for arguments in ((), ("--raw",)):
        printed = duolog("consume", "t", *arguments).stdout
        published = CliRunner().invoke(app, ["publish", "copy", "--log", other], input=printed)
        assert published.exit_code == 0
    with open_log(other) as copy, open_log(tmp_path / "log") as original:
        for partition in range(4):
            records = list(original.fetch("t", partition, 0))
            copied = list(copy.fetch("copy", partition, 0))
            assert [(each.value, each.ts_ms) for each in copied] == 2 * [
                (each.value, each.ts_ms) for each in records
            ]
