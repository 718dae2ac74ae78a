from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from duolog import open_log
from duolog.cli.program import app
from duolog.log.model import Record

Duolog = Callable[..., Result]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def duolog(tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> Duolog:
    """Run a command on a log of the test's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DUOLOG_LOG", str(log))

    def run(*arguments: str, stdin: str = "") -> Result:
        return CliRunner().invoke(app, arguments, input=stdin)

    return run


def _json(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def _error(result: Result) -> dict[str, str]:
    assert result.exit_code == 1
    assert result.stdout == ""
    found: dict[str, str] = json.loads(result.stderr)
    assert found.keys() == {"error", "code"}
    return found


def test_a_topic_is_made_with_all_that_was_said(duolog: Duolog) -> None:
    made = _json(
        duolog(
            *("topic", "create", "orders", "--partitions", "3", "--alias", "o"),
            *("--retention-seconds", "60.5", "--retention-max-bytes", "1000"),
            *("--dedup-window-seconds", "5", "--key-format", "raw", "--value-format", "json"),
            *("--envelope", "debezium", "--json-int64-as-string", "--json"),
        )
    )[0]
    assert made["topic"] == "orders"
    assert made["alias"] == "o"
    assert made["partitions"] == len(made["offsets"]) == 3
    assert (made["retention_seconds"], made["retention_max_bytes"]) == (60.5, 1000)
    assert made["dedup_window_seconds"] == 5
    assert (made["key_format"], made["value_format"]) == ("raw", "json")
    assert made["envelope"] == "debezium"
    assert made["json_int64_as_string"] is True
    assert _json(duolog("topic", "describe", "o", "--json")) == [made]


def test_a_topic_needs_nothing_but_a_name(duolog: Duolog) -> None:
    made = _json(duolog("topic", "create", "orders", "--json"))[0]
    assert (made["partitions"], made["retention_seconds"], made["routes"]) == (1, None, [])


def test_a_topic_that_is_there_is_no_error_when_told_so(duolog: Duolog) -> None:
    first = _json(duolog("topic", "create", "orders", "--json"))
    assert _error(duolog("topic", "create", "orders", "--json"))["code"] == "NameTaken"
    again = duolog("topic", "create", "orders", "--partitions", "9", "--if-not-exists", "--json")
    assert _json(again) == first


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("no/name",), "InvalidName"),
        (("t", "--partitions", "0"), "InvalidSetting"),
        (("t", "--retention-seconds", "-1"), "InvalidSetting"),
        (("t", "--retention-max-bytes", "0"), "InvalidSetting"),
        (("t", "--alias", "a b"), "InvalidName"),
    ],
)
def test_bad_settings_are_named_errors(
    duolog: Duolog, arguments: tuple[str, ...], code: str
) -> None:
    assert _error(duolog("topic", "create", *arguments, "--json"))["code"] == code


def test_only_create_makes_a_log(duolog: Duolog, log: Path) -> None:
    for command in (["topic", "list"], ["group", "list"], ["consume", "t"], ["publish", "t"]):
        assert _error(duolog(*command, "--json"))["code"] == "LogNotFound"
    assert not log.exists()
    assert duolog("topic", "create", "t").exit_code == 0
    assert log.is_dir()


def test_topics_are_listed_with_what_they_hold(duolog: Duolog, log: Path) -> None:
    duolog("topic", "create", "b", "--partitions", "2")
    duolog("topic", "create", "a", "--alias", "first")
    with open_log(log) as opened:
        opened.publish("b", [Record(b"x", partition=0), Record(b"y", partition=1)])
    topics = _json(duolog("topic", "list", "--json"))
    assert [(each["topic"], each["records"]) for each in topics] == [("a", 0), ("b", 2)]
    assert topics[1]["bytes"] > 0
    shown = duolog("topic", "list").stdout
    assert "first" in shown
    assert "for ever" in shown


def test_a_list_without_topics_says_so_on_stderr(duolog: Duolog, log: Path) -> None:
    open_log(log).close()
    result = duolog("topic", "list")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "duolog topic create" in result.stderr


def test_retention_is_changed_one_limit_at_a_time(duolog: Duolog) -> None:
    duolog("topic", "create", "t", "--retention-seconds", "60")

    def alter(*arguments: str) -> tuple[object, object]:
        changed = _json(duolog("topic", "alter", "t", *arguments, "--json"))[0]
        return changed["retention_seconds"], changed["retention_max_bytes"]

    assert alter("--retention-max-bytes", "1000") == (60, 1000)
    assert alter("--retention-seconds", "none") == (None, 1000)
    assert alter("--retention-seconds", "1.5", "--retention-max-bytes", "none") == (1.5, None)


def test_a_topic_grows_and_does_not_shrink(duolog: Duolog) -> None:
    duolog("topic", "create", "t", "--partitions", "2")
    assert _json(duolog("topic", "alter", "t", "--partitions", "4", "--json"))[0]["partitions"] == 4
    shrunk = duolog("topic", "alter", "t", "--partitions", "3", "--json")
    assert _error(shrunk)["code"] == "InvalidSetting"


@pytest.mark.parametrize("arguments", [[], ["--retention-seconds", "soon"]])
def test_alter_has_to_be_told_what_to_change(duolog: Duolog, arguments: list[str]) -> None:
    duolog("topic", "create", "t")
    assert duolog("topic", "alter", "t", *arguments).exit_code == 2


def test_routes_are_added_and_dropped_by_operation(duolog: Duolog) -> None:
    duolog("topic", "create", "t")
    added = duolog(
        *("topic", "add-source", "t", "shop.orders", "--on", "insert,update"),
        *("--where", "qty > 1", "--payload", "key", "--json"),
        *("--partition-by", "region, lower(city)"),
    )
    assert _json(added)[0]["routes"] == [
        {
            "table": "shop.orders",
            "on": ["insert", "update"],
            "where": "qty > 1",
            "payload": "key",
            "partition_by": ["region", "lower(city)"],
            "columns": None,
        }
    ]
    again = duolog("topic", "add-source", "t", "shop.orders", "--on", "update", "--json")
    assert _error(again)["code"] == "RouteTaken"
    left = _json(duolog("topic", "drop-source", "t", "shop.orders", "--on", "INSERT", "--json"))
    assert left[0]["routes"][0]["on"] == ["update"]
    assert _json(duolog("topic", "drop-source", "t", "shop.orders", "--json"))[0]["routes"] == []
    gone = duolog("topic", "drop-source", "t", "shop.orders", "--json")
    assert _error(gone)["code"] == "UnknownRoute"


def test_a_filter_that_cannot_be_is_pointed_at(duolog: Duolog) -> None:
    duolog("topic", "create", "t")
    result = duolog("topic", "add-source", "t", "shop.orders", "--on", "insert", "--where", "a = ")
    assert result.exit_code == 1
    message, typed, pointer = result.stderr.splitlines()
    assert message.startswith("Error: ")
    assert typed == "  a = "
    assert pointer.strip() == "^"


@pytest.mark.parametrize(
    "arguments",
    [["--on", "upsert"], ["--on", ","], ["--on", "insert", "--payload", "none"], []],
)
def test_words_that_no_route_knows_are_usage_errors(duolog: Duolog, arguments: list[str]) -> None:
    duolog("topic", "create", "t")
    assert duolog("topic", "add-source", "t", "shop.orders", *arguments).exit_code == 2


def test_a_description_shows_partitions_and_routes(duolog: Duolog) -> None:
    duolog("topic", "create", "t", "--partitions", "2", "--dedup-window-seconds", "60")
    duolog("topic", "add-source", "t", "shop.orders", "--on", "insert", "--where", "qty > 1")
    shown = duolog("topic", "describe", "t").stdout
    for part in ("left out within 1 min", "partition", "shop.orders", "qty > 1", "(key)"):
        assert part in shown


def test_clear_empties_a_topic_and_keeps_its_offsets(duolog: Duolog, log: Path) -> None:
    duolog("topic", "create", "t")
    with open_log(log) as opened:
        opened.publish("t", [Record(b"x")] * 3)
    swept = _json(duolog("topic", "clear", "t", "--json"))[0]
    assert (swept["topic"], swept["messages_deleted"]) == ("t", 3)
    assert swept["bytes_freed"] > 0
    left = _json(duolog("topic", "describe", "t", "--json"))[0]
    assert (left["records"], left["offsets"][0]["next_offset"]) == (0, 3)


def test_delete_removes_a_topic(duolog: Duolog) -> None:
    duolog("topic", "create", "t")
    deleted = duolog("topic", "delete", "t")
    assert (deleted.exit_code, deleted.stdout) == (0, "")
    assert "Deleted topic 't': 0 records removed." in deleted.stderr
    assert _error(duolog("topic", "delete", "t", "--json"))["code"] == "UnknownTopic"
    assert duolog("topic", "delete", "t", "--if-exists").exit_code == 0


def test_a_route_may_leave_columns_out(duolog: Duolog) -> None:
    duolog("topic", "create", "t")
    added = duolog(
        *("topic", "add-source", "t", "shop.people", "--on", "insert"),
        *("--columns", "id, city", "--json"),
    )
    assert _json(added)[0]["routes"][0]["columns"] == ["id", "city"]
    shown = duolog("topic", "describe", "t").stdout
    assert "id, city" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_a_partition_that_cannot_be_is_pointed_at(duolog: Duolog) -> None:
    duolog("topic", "create", "t")
    result = duolog(
        *("topic", "add-source", "t", "shop.orders", "--on", "insert"),
        *("--partition-by", "id, before.id"),
    )
    assert result.exit_code == 1
    message, typed, pointer = result.stderr.splitlines()
    assert "row alone" in message
    assert (typed, pointer) == ("  id, before.id", "      ^")
