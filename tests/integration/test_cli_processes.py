"""The command line as processes: pipes, signals, terminals, and two of them at once."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, cast

import pytest

from duolog import open_log
from duolog.log.model import Record, TopicSettings
from tests.support.children import hear_ctrl_c

DEADLINE_SECONDS = 60
DUOLOG = [sys.executable, "-m", "duolog.cli"]

Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    folder = tmp_path / "log"
    with open_log(folder) as opened:
        opened.create_topic("t", TopicSettings(partitions=2))
    return folder


@pytest.fixture
def start(log: Path, tmp_path: Path) -> Iterator[Start]:
    """Start a command on the log; whatever still runs is killed in the end."""
    running: list[subprocess.Popen[bytes]] = []

    def run(*arguments: str, **variables: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [*DUOLOG, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            env={**os.environ, "DUOLOG_LOG": str(log), **variables},
            preexec_fn=hear_ctrl_c,
        )
        running.append(process)
        return process

    yield run
    for process in running:
        with contextlib.suppress(BrokenPipeError), process:
            process.kill()


def _out(process: subprocess.Popen[bytes]) -> IO[bytes]:
    return cast("IO[bytes]", process.stdout)


def _in(process: subprocess.Popen[bytes]) -> IO[bytes]:
    return cast("IO[bytes]", process.stdin)


def _ends(process: subprocess.Popen[bytes], exit_code: int) -> str:
    """Wait for its end; returns what it said on stderr."""
    assert process.wait(DEADLINE_SECONDS) == exit_code
    return cast("IO[bytes]", process.stderr).read().decode()


def _fill(log: Path, records: int) -> None:
    with open_log(log) as opened:
        opened.publish("t", [Record(b"%d" % number) for number in range(records)])


def _values(log: Path) -> list[int]:
    with open_log(log) as opened:
        return [
            int(record.value or b"")
            for each in opened.offsets("t")
            for record in opened.fetch("t", each.partition, each.start)
        ]


def test_a_reader_that_has_enough_ends_consume_without_a_word(start: Start, log: Path) -> None:
    _fill(log, 20_000)  # far more than a pipe holds
    process = start("consume", "t")
    assert json.loads(_out(process).readline())["offset"] == 0
    _out(process).close()
    assert _ends(process, 141) == ""


def test_follow_ends_when_its_reader_goes_though_nothing_comes(start: Start, log: Path) -> None:
    _fill(log, 1)
    process = start("consume", "t", "--follow")
    _out(process).readline()
    _out(process).close()
    assert _ends(process, 141) == ""
    assert _values(log) == [0]


def test_ctrl_c_ends_follow_with_130_and_lets_the_next_one_in(start: Start, log: Path) -> None:
    _fill(log, 1)
    process = start("consume", "t", "--follow")
    _out(process).readline()
    process.send_signal(signal.SIGINT)
    assert _ends(process, 130) == ""
    assert _values(log) == [0]


def test_who_follows_keeps_others_out_and_they_are_told_so(start: Start, log: Path) -> None:
    _fill(log, 1)
    _out(start("consume", "t", "--follow")).readline()
    other = start("topic", "list", "--json", DUOLOG_LOCK_WAIT_SECONDS="0")
    assert json.loads(_ends(other, 1))["code"] == "LogBusy"
    assert _out(other).read() == b""


def test_a_line_is_answered_before_the_next_one_comes(start: Start, log: Path) -> None:
    process = start("publish", "t")
    for number in range(3):
        _in(process).write(json.dumps({"value": number, "partition": 0}).encode() + b"\n")
        _in(process).flush()
        assert json.loads(_out(process).readline())["offset"] == number
    _in(process).close()
    assert _ends(process, 0) == ""
    assert _values(log) == [0, 1, 2]


def test_ctrl_c_ends_publish_and_keeps_what_was_answered(start: Start, log: Path) -> None:
    process = start("publish", "t", "--raw")
    _in(process).write(b"1\n")
    _in(process).flush()
    _out(process).readline()
    process.send_signal(signal.SIGINT)
    assert _ends(process, 130) == ""
    assert _values(log) == [1]


def test_publish_ends_without_a_word_when_nobody_reads_its_answers(start: Start) -> None:
    process = start("publish", "t", "--raw")
    _out(process).close()
    _in(process).write(b"1\n")
    _in(process).flush()
    assert _ends(process, 141) == ""


def test_a_killed_publisher_goes_on_when_run_again_and_writes_nothing_twice(
    start: Start, log: Path
) -> None:
    count = 20_000
    lines = b"".join(b"%d\n" % number for number in range(count))
    killed = start("publish", "t", "--raw", "--writer", "w")
    half = lines.index(b"\n10000\n") + 1
    _in(killed).write(lines[:half])
    _in(killed).flush()
    acknowledged = [json.loads(_out(killed).readline())["sequence"] for _ in range(5_000)]
    killed.kill()
    assert killed.wait(DEADLINE_SECONDS) == -signal.SIGKILL
    assert acknowledged == list(range(1, 5_001))
    there = _values(log)
    assert sorted(there) == list(range(len(there)))
    assert len(there) >= 5_000

    again = start("publish", "t", "--raw", "--writer", "w")
    _, said = again.communicate(lines, DEADLINE_SECONDS)
    assert again.returncode == 0, said
    assert sorted(_values(log)) == list(range(count))


def test_output_is_utf_8_in_every_locale(start: Start, log: Path) -> None:
    with open_log(log) as opened:
        opened.publish("t", Record('{"name":"Zoë"}'.encode(), "ключ".encode()))
    process = start("consume", "t", LC_ALL="C", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    line = json.loads(_out(process).readline().decode())
    assert (line["key"], line["value"]) == ("ключ", {"name": "Zoë"})
    assert _ends(process, 0) == ""


def test_a_table_in_a_pipe_is_not_cut_off(start: Start, log: Path) -> None:
    name = "n" * 200
    with open_log(log) as opened:
        opened.create_topic(name)
    process = start("topic", "list")
    out, _ = process.communicate(timeout=DEADLINE_SECONDS)
    assert name in out.decode()
    assert b"\x1b" not in out


@pytest.mark.parametrize(
    ("answer", "exit_code", "is_left"), [(b"n\n", 1, True), (b"y\n", 0, False)]
)
def test_at_a_terminal_a_deletion_is_asked_about(
    log: Path, tmp_path: Path, answer: bytes, exit_code: int, is_left: bool
) -> None:
    ours, terminal = pty.openpty()
    try:
        process = subprocess.Popen(
            [*DUOLOG, "topic", "delete", "t"],
            stdin=terminal,
            stdout=subprocess.DEVNULL,
            stderr=terminal,
            cwd=tmp_path,
            env={**os.environ, "DUOLOG_LOG": str(log)},
        )
        with process:
            asked = b""
            while b"?" not in asked:
                asked += os.read(ours, 1000)
            os.write(ours, answer)
            assert process.wait(DEADLINE_SECONDS) == exit_code
        assert b"Delete topic 't' with 0 records?" in asked
    finally:
        os.close(ours)
        os.close(terminal)
    with open_log(log) as opened:
        assert [topic.name for topic in opened.topics()] == (["t"] if is_left else [])


def test_the_installed_program_is_the_same() -> None:
    program = shutil.which("duolog", path=str(Path(sys.executable).parent))
    assert program is not None
    shown = [
        subprocess.run([*command, "--version"], capture_output=True, check=True).stdout
        for command in ([program], DUOLOG)
    ]
    assert shown[0] == shown[1]
