"""The demo as people meet it: real Kafka, real Spark, real kills."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from typer.testing import CliRunner

from duolog.cli.program import app
from tests.recordings.picture import END, lines_in, shape
from tests.support.children import hear_ctrl_c

DEADLINE_SECONDS = 500
pytestmark = pytest.mark.timeout(2 * DEADLINE_SECONDS)
DUOLOG = [sys.executable, "-P", "-m", "duolog.cli"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "new"


@pytest.fixture(scope="module")
def told(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the demo prints when it is left alone, where others have the ports that are usual.

    It is started beside something that is called as we are, as in a checkout of the sources.
    """
    here = tmp_path_factory.mktemp("here")
    (here / "duolog").mkdir()
    (here / "duolog" / "__init__.py").write_text("raise ImportError('this is another one')")
    with usual_ports_taken():
        done = subprocess.run(
            [*DUOLOG, "demo", "--seconds", "10", "--folder", str(folder)],
            cwd=here,
            capture_output=True,
            text=True,
            timeout=DEADLINE_SECONDS,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout


def test_it_claims_only_what_holds(told: str) -> None:
    assert told.count("✓") == 4
    assert "✗" not in told
    assert "\x1b" not in told


def test_its_picture_shows_what_it_prints_today(told: str) -> None:
    shown = [shape(line) for line in lines_in(END.read_text())]
    before, _, _ = told.partition("Nothing is left running")
    lines = [shape(line) for line in before.splitlines() if " lag " not in line]  # no live table
    assert len(set(lines)) > 10
    assert [line for line in lines if line not in shown] == []


def test_its_lines_fit_80_columns_but_for_the_commands(told: str) -> None:
    before, _, _ = told.partition("Nothing is left running")
    longest = max(before.splitlines(), key=len)
    assert len(longest) <= 80, longest


def test_nothing_is_left_running(told: str, folder: Path) -> None:
    assert told
    assert running_in(folder) == []


def test_what_it_ends_with_works(told: str) -> None:
    _, _, end = told.partition("still there to try:")
    commands = [line.strip() for line in end.partition("and the Kafka")[0].splitlines() if line]
    assert len(commands) == 3
    described, consumed, group = (
        subprocess.run(
            shlex.split(command), capture_output=True, text=True, timeout=60, check=True
        ).stdout
        for command in commands
    )
    assert "shop.orders" in described
    assert [json.loads(line)["op"] for line in consumed.splitlines()] == ["read"] * 3
    assert "orders" in group


def test_ctrl_c_leaves_nothing_running(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    with subprocess.Popen(
        [*DUOLOG, "demo", "--folder", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=hear_ctrl_c,
    ) as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            if line.startswith("2 "):  # Kafka and the host run, Spark starts
                break
        assert f"Another demo works in {folder}." in " ".join(second_demo(folder).split())
        os.killpg(demo.pid, signal.SIGINT)
        rest = demo.stdout.read()
        assert demo.wait(DEADLINE_SECONDS) == 130
    assert "Nothing is left running" in rest
    assert running_in(folder) == []


def test_kill_9_leaves_nothing_running(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    with subprocess.Popen(
        [*DUOLOG, "demo", "--folder", str(folder)], stdout=subprocess.PIPE, text=True
    ) as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            if line.startswith("2 "):
                break
        demo.kill()
    deadline = time.monotonic() + DEADLINE_SECONDS
    while running_in(folder):
        assert time.monotonic() < deadline, running_in(folder)


@pytest.mark.parametrize("content", ["a file", "a directory with something in it"])
def test_a_folder_that_is_in_use_is_left_alone(tmp_path: Path, content: str) -> None:
    folder = tmp_path / "mine"
    if content == "a file":
        folder.write_text("precious")
    else:
        folder.mkdir()
        (folder / "mine").write_text("precious")
    result = CliRunner().invoke(app, ["demo", "--folder", str(folder)])
    assert result.exit_code == 2
    precious = folder if content == "a file" else folder / "mine"
    assert precious.read_text() == "precious"


def second_demo(folder: Path) -> str:
    """Why one does not begin where another is at work."""
    done = subprocess.run(
        [*DUOLOG, "demo", "--folder", str(folder)],
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stderr


@contextmanager
def usual_ports_taken() -> Iterator[None]:
    """Kafka's and the host's, by us or by whoever has them already."""
    with ExitStack() as taken:
        for port in (9092, 7070):
            with suppress(OSError):
                taken.enter_context(socket.create_server(("127.0.0.1", port)))
        yield


def running_in(folder: Path) -> list[list[str]]:
    """Commands that name the folder."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        command = process.info["cmdline"] or []
        if any(str(folder) in word for word in command):
            found.append(command)
    return found
