"""What others have named and written is shown by every command, and obeyed by no terminal."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

import duolog.cli
import duolog.demo
from duolog import open_log, output
from duolog.bridge.kafka import audit
from duolog.bridge.kafka.audit.report import (
    AuditReport,
    Difference,
    Finding,
    PartitionReport,
    PositionReport,
)
from duolog.cli import completing
from duolog.cli.program import app
from duolog.cli.story import Story
from duolog.log.mirror_model import MirrorTarget
from duolog.log.mirror_modes import MirrorReport
from duolog.log.model import Op, Record, Route
from duolog.output import line_anew
from tests.recordings.terminal import Terminal, run_at_terminal
from tests.support.host_server import Host
from tests.unit.test_printable import is_obeyed

NAME = "n\x9b2J\u202e\u2066\u200f\u061c\u2028[red]x[/red]"
SHOWN_NAME = r"n\x9b2J\u202e\u2066\u200f\u061c\u2028[red]x[/red]"
TEXT = f"v\x1b]0;t\x07\x1b[2J\r\x08\x7f{NAME}"
TYPED = f"{TEXT}\udcff"
"""As an argument that is no UTF-8 comes in."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A log with names, values, keys and headers that want to be obeyed, in such a folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    folder = tmp_path / f"log{TEXT}"
    with open_log(folder) as log:
        log.create_topic("orders")
        log.add_route("orders", Route(NAME, frozenset({Op.INSERT})))
        values = (TEXT, json.dumps({TEXT: TEXT}, ensure_ascii=False))
        for sequence, value in enumerate(values, 1):
            record = Record(
                value=value.encode(),
                key=TEXT.encode(),
                headers=((NAME, TEXT.encode()),),
                op=Op.INSERT,
                table=NAME,
            )
            log.publish("orders", [record], writer=NAME, sequence=sequence)
        log.ack(NAME, "orders", 0, 0)
        log.begin_mirror("orders", 0, MirrorTarget(TEXT, "orders", TEXT, 7, 0, 0, 0))
    return folder


def shown(*arguments: str, lines: str | None = None) -> Result:
    """What a command says; whatever it is, a terminal obeys nothing of it."""
    done = CliRunner().invoke(app, arguments, input=lines)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    obeyed = [each for each in done.output if is_obeyed(each) and each != "\n"]
    assert not obeyed, (obeyed, done.output)
    return done


COMMANDS: dict[tuple[str, ...], tuple[tuple[str, ...], ...]] = {
    ("publish",): (("orders",), ("--table", NAME, "--key", TEXT), (TYPED,), ("--op", TEXT)),
    ("produce",): (("orders",), (TYPED,)),
    ("consume",): (("orders",), ("orders", "--group", NAME), (TYPED,), ("orders", "--from", TYPED)),
    ("ack",): (
        ("orders", "--group", NAME, "--offset", "1"),
        ("orders", "--group", TEXT, "--offset", "1"),
    ),
    ("sql",): (
        ("SELECT * FROM orders",),
        ("SELECT key, value, headers AS \"h\x1b\" FROM orders",),
        ("SELECT * FROM system.sources",),
        (TYPED,),
    ),
    ("serve",): (("--tls-certificate", TEXT), ("--listen", TYPED), ("--advertise", TYPED)),
    ("audit",): (("--bootstrap-servers", "127.0.0.1:1"),),
    ("backup",): ((f"copy{TEXT}",), ("/dev/null",)),
    ("restore",): ((TEXT,), ("--from-kafka", "--offsets", TYPED)),
    ("registry",): (("--listen", TYPED), ("--host", TYPED)),
    ("kafka",): (("--security", TYPED), ("--port", TYPED)),
    ("demo",): (("--seconds", TYPED),),
    ("doctor",): ((),),
    ("bench",): ((TYPED,), ("--dir", TYPED, "--records", TYPED)),
    ("topic", "list"): ((),),
    ("topic", "create"): ((TYPED,), ("bills", "--alias", TYPED)),
    ("topic", "describe"): (("orders",), (TYPED,)),
    ("topic", "alter"): (("orders", "--partitions", TYPED), (TYPED, "--partitions", "2")),
    ("topic", "clear"): (("orders", "--yes"), (TYPED, "--yes")),
    ("topic", "delete"): (("orders", "--yes"), (TYPED, "--yes"), (TYPED, "--yes", "--if-exists")),
    ("topic", "skip"): ((TYPED, "--partition", "0", "--yes"), ("orders", TYPED)),
    ("topic", "add-source"): (
        ("orders", TEXT),
        ("orders", f"a{NAME}"),
        ("orders", "t", "--filter", TYPED),
    ),
    ("topic", "drop-source"): (("orders", NAME), ("orders", TYPED)),
    ("group", "list"): ((),),
    ("group", "describe"): ((NAME,), (TYPED,)),
    ("group", "seek"): ((NAME, "orders", "--to", "earliest"), (NAME, "orders", "--to", TYPED)),
    ("group", "delete"): ((NAME, "--yes"), (TYPED, "--yes")),
    ("writer", "last-sequence"): ((NAME,), (f"other{NAME}",), (TYPED,)),
    ("mirror", "status"): ((), ("orders",), (TYPED,)),
    ("mirror", "pause"): ((), (TYPED,)),
    ("mirror", "resume"): ((), (TYPED,)),
    ("mirror", "detach"): (("orders",), (TYPED,)),
    ("mirror", "restart"): (("orders",), (TYPED,)),
    ("token", "create"): (
        ("--role", "dba", "--name", TYPED, "--file", TEXT),
        ("--role", TYPED, "--name", "a", "--file", TEXT),
    ),
    ("token", "list"): (("--file", TEXT),),
    ("token", "revoke"): ((TYPED, "--file", TEXT, "--yes"),),
    ("token", "rotate"): ((TYPED, "--file", TEXT),),
}  # fmt: skip
WITHOUT_A_LOG = {"kafka", "demo", "bench", "token"}


def all_commands(group: Any, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from all_commands(command, (*before, name))
        else:
            yield (*before, name)


def test_every_command_is_tried() -> None:
    assert set(all_commands(typer.main.get_command(app))) == set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("options", [(), ("--json",)], ids=["text", "json"])
def test_no_command_says_what_a_terminal_obeys(
    folder: Path,
    command: tuple[str, ...],
    options: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(audit, "audit", lambda *_, **__: REPORT)
    lines = f'{{"value": {json.dumps(TEXT)}, "key": "{NAME}"}}\n{{"nope{NAME}": 1, "value": 2}}\n'
    where = () if command[0] in WITHOUT_A_LOG else ("--log", str(folder))
    for arguments in COMMANDS[command]:
        shown(*command, *arguments, *where, *options, lines=lines)


REPORT = AuditReport(
    (
        PartitionReport(
            TEXT,
            0,
            TEXT,
            differences=(Difference(Finding.KEY_DIFFERS, TEXT),),
            counts={Finding.KEY_DIFFERS: 1},
        ),
    ),
    (PositionReport(TEXT, TEXT, 0, 1, 2, 3, is_equal=False),),
    sampled=None,
    seconds=1.0,
)


def test_names_are_shown_and_their_brackets_are_no_colours(folder: Path) -> None:
    for arguments in (("group", "list"), ("topic", "describe", "orders")):
        said = shown(*arguments, "--log", str(folder)).stdout
        assert SHOWN_NAME in said
    said = shown("group", "describe", f"other{NAME}", "--log", str(folder)).stderr
    assert SHOWN_NAME in said


def test_lines_of_json_keep_their_values_exactly(folder: Path) -> None:
    done = shown("consume", "orders", "--log", str(folder))
    text, object_ = map(json.loads, done.stdout.splitlines())
    assert (text["value"], text["key"], text["table"]) == (TEXT, TEXT, NAME)
    assert text["headers"] == [{"name": NAME, "value": TEXT}]
    assert object_["value"] == {TEXT: TEXT}
    rows = shown("sql", "SELECT key FROM orders LIMIT 1", "--log", str(folder), "--json").stdout
    assert json.loads(rows) == {"key": TEXT}
    groups = shown("group", "list", "--log", str(folder), "--json").stdout
    assert json.loads(groups)["group"] == NAME


def test_what_a_worker_reports_is_not_obeyed(folder: Path) -> None:
    with Host(folder) as host:
        host.log.tell_mirror((MirrorReport("orders", 0, "halted", "Code", TEXT),), anew=True)
        said = shown("mirror", "status", "--log", str(folder)).stderr
    assert said == f"v\\x1b]0;t\\x07\\x1b[2J\\r\\x08\\x7f{SHOWN_NAME}\n"


def test_a_real_terminal_is_not_moved(folder: Path) -> None:
    """It refuses what it does not know; Rich's own colours and lines it knows."""
    python = (sys.executable, "-m", "duolog.cli")
    for arguments in (
        ("group", "list"),
        ("topic", "describe", "orders"),
        ("group", "describe", f"other{NAME}"),
        ("sql", "SELECT key, value FROM orders"),
        ("consume", "orders"),
        ("topic", TEXT),
    ):
        terminal = Terminal()
        run_at_terminal((*python, *arguments, "--log", str(folder)), terminal)
        said = "".join(terminal.frame)
        assert r"9b2J\u202e" in said
        assert "[red]" in said
        assert not any(is_obeyed(each) for each in said if each != "\x1b")


def test_a_traceback_is_not_obeyed() -> None:
    code = (
        "import threading\nfrom duolog.output import print_tracebacks_safely\n"
        "print_tracebacks_safely()\n"
        f"def fail():\n    raise ValueError({TEXT!r})\n"
        "thread = threading.Thread(target=fail)\nthread.start()\nthread.join()\nfail()\n"
    )
    terminal = Terminal()
    assert run_at_terminal((sys.executable, "-c", code), terminal) == 1
    said = "\n".join(terminal.frame)
    assert said.count(f"ValueError: v\\x1b]0;t\\x07\\x1b[2J\\r\\x08\\x7f{SHOWN_NAME}") == 2


def test_the_demos_words_and_a_written_line_are_not_obeyed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    story = Story(as_json=False)
    story.begin(TEXT)
    story.step(TEXT)
    story.tell(TEXT)
    story.check(TEXT, holds=False)
    story.end([TEXT])
    line_anew(TEXT)
    out, err = capsys.readouterr()
    assert out.replace("\n", "").count("[red]x[/red]") == 5
    assert not any(is_obeyed(each) for each in out if each != "\n")
    assert err.startswith("\r\x1b[2Kv")
    assert not any(map(is_obeyed, err.removeprefix("\r\x1b[2K")))


def test_a_shell_is_offered_no_name_that_it_would_obey(folder: Path) -> None:
    with open_log(folder) as log:
        log.ack("plain", "orders", 0, 0)
    context = typer.Context(typer.main.get_command(app))
    context.params = {"log": str(folder)}
    assert [name for name, _ in completing.groups(context, "")] == ["plain"]


def test_a_cell_is_never_several_rows(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(["a\n"], [["b\nc\t"]], title="d\n")
    output.fields([("e\n", "f\ng")])
    output.line("h\ni")
    assert [line.strip(" ─") for line in capsys.readouterr().out.splitlines()] == [
        *(r"d\n", r"a\n", "", r"b\nc\t", r"e\n  f\ng", r"h\ni")
    ]


WRITERS = {"stdout", "stderr", "__stdout__", "__stderr__"}
ASKED = {"isatty", "fileno"}  # what may be asked of them
MADE = {"Console", "Text", "print", "echo", "secho", "prompt", "confirm", "input", "from_markup"}


def other_ways_to_print(tree: ast.AST) -> Iterator[int]:
    """Lines that print, or make what prints, but by `duolog/output.py`."""
    asked = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in ASKED
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and id(node) not in asked:
            if node.attr in WRITERS and getattr(node.value, "id", "") == "sys":
                yield node.lineno
        elif isinstance(node, ast.ImportFrom):
            if node.module == "sys":
                yield node.lineno
        elif isinstance(node, ast.Call) and prints(node):
            yield node.lineno


def prints(call: ast.Call) -> bool:
    called = call.func
    name = getattr(called, "attr", getattr(called, "id", ""))
    owner = getattr(getattr(called, "value", None), "id", "")
    options = {keyword.arg for keyword in call.keywords}
    if name in MADE:
        return owner != "output"
    if name in {"Live", "Bars"}:  # of Rich
        return "console" not in options
    if name == "TextColumn":
        return "markup" not in options
    return name == "write" and owner == "os" and isinstance(call.args[0], ast.Constant)


@pytest.mark.parametrize("room", [duolog.cli, duolog.demo], ids=["cli", "demo"])
def test_all_is_printed_by_one_module(room: Any) -> None:
    found = [
        f"{file.name}:{line}"
        for file in sorted(Path(room.__file__).parent.rglob("*.py"))
        for line in other_ways_to_print(ast.parse(file.read_text()))
    ]
    assert not found


def test_another_way_to_print_would_be_found() -> None:
    for code in (
        "print('x')",
        "typer.echo(x)",
        "console.print(x)",
        "sys.stdout.write(x)",
        "sys.stderr.buffer.write(x)",
        "Console(stderr=True)",
        "Live(refresh_per_second=8)",
        "Text(x)",
        "TextColumn('{task.description}', style='dim')",
        "os.write(1, x)",
        "from sys import stderr",
        "typer.confirm(x)",
    ):
        assert list(other_ways_to_print(ast.parse(code))) == [1], code
    for code in (
        "output.confirm(x)",
        "sys.stdout.isatty()",
        "Live(console=output.console())",
    ):
        assert not list(other_ways_to_print(ast.parse(code))), code
    assert output.console().render_str("[red]x[/red]").plain == "[red]x[/red]"
