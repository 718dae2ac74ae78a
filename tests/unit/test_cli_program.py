from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from duolog import open_log
from duolog.cli.program import app

Duolog = Callable[..., Result]

COMMANDS = [
    ("topic", "list"),
    ("topic", "create"),
    ("topic", "describe"),
    ("topic", "alter"),
    ("topic", "add-source"),
    ("topic", "drop-source"),
    ("topic", "clear"),
    ("topic", "delete"),
    ("group", "list"),
    ("group", "describe"),
    ("group", "seek"),
    ("group", "delete"),
    ("publish",),
    ("produce",),
    ("consume",),
    ("ack",),
    ("writer", "last-sequence"),
    ("doctor",),
    ("registry",),
    ("serve",),
    ("sql",),
    ("mirror", "status"),
    ("mirror", "restart"),
    ("audit",),
    ("backup",),
    ("restore",),
]


@pytest.fixture
def duolog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Duolog:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DUOLOG_LOG", raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    return lambda *arguments: CliRunner().invoke(app, arguments)


def test_the_version_is_the_packages(duolog: Duolog) -> None:
    result = duolog("--version")
    assert (result.exit_code, result.stdout) == (0, f"duolog {version('duolog')}\n")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_takes_a_log_and_json(duolog: Duolog, command: tuple[str, ...]) -> None:
    shown = duolog(*command, "--help")
    assert shown.exit_code == 0
    assert "--log" in shown.stdout
    assert "--json" in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 80


def test_every_command_is_tested_for_its_options(duolog: Duolog) -> None:
    known = {command[0] for command in COMMANDS} | {"bench", "demo", "kafka", "token"}
    names = {
        command.name or command.callback.__name__
        for command in app.registered_commands
        if command.callback
    }
    groups = {group.name for group in app.registered_groups}
    assert names | groups == known


def test_help_and_version_load_nothing_heavy() -> None:
    heavy = "{'rocksdict', 'pyarrow', 'numpy', 'sqlglot', 'pydantic_settings'}"
    for option in ("--help", "--version"):
        code = (
            "import sys; sys.argv = ['duolog', sys.argv[1]]\n"
            "from duolog.cli import main\n"
            "try:\n    main()\n"
            f"finally:\n    assert not {heavy} & set(sys.modules), sorted(sys.modules)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, option], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


def test_an_error_is_one_message_on_stderr(duolog: Duolog, tmp_path: Path) -> None:
    result = duolog("topic", "list", "--log", str(tmp_path / "none"))
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: There is no log in ")
    assert len(result.stderr.splitlines()) == 1


def test_with_json_an_error_is_an_object_with_its_code(duolog: Duolog, tmp_path: Path) -> None:
    result = duolog("topic", "list", "--log", str(tmp_path / "none"), "--json")
    assert (result.exit_code, result.stdout) == (1, "")
    assert json.loads(result.stderr)["code"] == "LogNotFound"


def test_a_command_that_cannot_be_meant_so_exits_with_2(duolog: Duolog) -> None:
    for arguments in (("nope",), ("topic", "nope"), ("topic", "create"), ("ack", "--nope")):
        result = duolog(*arguments)
        assert (result.exit_code, result.stdout) == (2, "")
        assert "Usage" in result.stderr
    told = json.loads(duolog("ack", "t", "--json").stderr)
    assert told["code"] == "UsageError"
    assert "--group" in told["error"]


def test_no_log_at_all_is_told_with_every_way_to_name_one(duolog: Duolog) -> None:
    result = duolog("topic", "list", "--json")
    assert result.exit_code == 2
    told = json.loads(result.stderr)["error"]
    assert all(way in told for way in ("--log", "DUOLOG_LOG", "duolog.toml"))


def test_the_log_may_be_named_in_three_ways(
    duolog: Duolog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("flag", "variable", "file"):
        with open_log(tmp_path / name) as opened:
            opened.create_topic(name)
    (tmp_path / "duolog.toml").write_text('log = "file"\n')
    assert json.loads(duolog("topic", "list", "--json").stdout)["topic"] == "file"
    monkeypatch.setenv("DUOLOG_LOG", "variable")
    assert json.loads(duolog("topic", "list", "--json").stdout)["topic"] == "variable"
    with_flag = duolog("topic", "list", "--json", "--log", str(tmp_path / "flag"))
    assert json.loads(with_flag.stdout)["topic"] == "flag"


def test_a_mistake_in_the_settings_is_a_named_error(duolog: Duolog, tmp_path: Path) -> None:
    (tmp_path / "duolog.toml").write_text('lgo = "file"\n')
    result = duolog("topic", "list", "--json")
    assert result.exit_code == 1
    told = json.loads(result.stderr)
    assert told["code"] == "InvalidSetting"
    assert "'lgo'" in told["error"]
    assert "'log'" in told["error"]


def test_settings_reach_the_log(
    duolog: Duolog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    duolog("topic", "create", "t", "--log", "log")
    monkeypatch.setenv("DUOLOG_MAX_RECORD_BYTES", "3")
    run = ["publish", "t", "--raw", "--log", "log", "--json"]
    result = CliRunner().invoke(app, run, input="abc\nabcd\n")
    assert result.exit_code == 1
    assert json.loads(result.stderr)["code"] == "RecordTooLarge"
    assert len(result.stdout.splitlines()) == 1


def test_a_place_that_holds_no_log_is_refused_by_its_address(duolog: Duolog) -> None:
    result = duolog("topic", "list", "--log", "s3://bucket/log", "--json")
    assert result.exit_code == 1
    told = json.loads(result.stderr)
    assert told["code"] == "UnsupportedLocation"
    assert "s3://bucket/log" in told["error"]
