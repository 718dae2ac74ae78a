"""The command line with standard streams that are closed, or lie on a full disk."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from duolog.log import open_log
from duolog.log.model import Record

DEADLINE_SECONDS = 60
DUOLOG = "from duolog.cli import main; main()"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    with open_log(tmp_path / "log") as opened:
        opened.create_topic("orders")
        opened.publish("orders", Record(b"first"))
    return tmp_path / "log"


def run(
    *arguments: str, close: int | None = None, **streams: Any
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", DUOLOG, *arguments],
        preexec_fn=None if close is None else lambda: os.close(close),
        timeout=DEADLINE_SECONDS,
        check=False,
        text=True,
        **streams,
    )


def values(log: Path) -> list[bytes | None]:
    with open_log(log) as opened:
        assert opened.check_whole().records
        return [record.value for record in opened.fetch("orders", 0, 0)]


@pytest.mark.parametrize("close", [0, 1, 2])
@pytest.mark.parametrize(
    "command", [("topic", "list"), ("consume", "orders", "--limit", "1"), ("publish", "orders")]
)
def test_a_closed_stream_is_no_traceback_and_harms_no_log(
    log: Path, command: tuple[str, ...], close: int
) -> None:
    ended = run(
        *command, "--log", str(log), close=close, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr or "") == (0, "")
    assert values(log) == [b"first"]


@pytest.mark.parametrize(
    "command", [("topic", "list"), ("consume", "orders", "--limit", "1"), ("publish", "orders")]
)
def test_output_on_a_full_disk_is_a_named_error(log: Path, command: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        ended = run(
            *command, "--log", str(log), stdout=full, stderr=subprocess.PIPE,
            input=json.dumps({"value": "second"}),
        )  # fmt: skip
    assert ended.returncode == 1
    assert ended.stderr.startswith("Error: The output cannot be written (No space left on device)")
    assert "Traceback" not in ended.stderr
    assert values(log) == [b"first", *([b"second"] if command[0] == "publish" else [])]


def test_notes_that_cannot_be_written_end_no_server(log: Path) -> None:
    with Path("/dev/full").open("w") as full:
        server = subprocess.Popen(
            [sys.executable, "-c", DUOLOG, "serve", "--log", str(log), "--listen", "127.0.0.1:0"],
            stdout=subprocess.PIPE,
            stderr=full,
            text=True,
        )
    with server:
        try:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            with urllib.request.urlopen(f"{url}/readyz", timeout=DEADLINE_SECONDS) as answer:
                assert answer.status == 200
            server.send_signal(signal.SIGTERM)
            assert server.wait(DEADLINE_SECONDS) == 0
        finally:
            server.kill()


@pytest.mark.parametrize(
    ("arguments", "exit_code"), [(("group", "list"), 0), (("topic", "describe", "none"), 1)]
)
def test_words_that_cannot_be_written_change_no_exit_code(
    log: Path, arguments: tuple[str, ...], exit_code: int
) -> None:
    with Path("/dev/full").open("w") as full:
        ended = run(*arguments, "--log", str(log), stdout=subprocess.PIPE, stderr=full)
    assert ended.returncode == exit_code


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_what_stdout_cannot_encode_is_shown_as_its_escape(log: Path, encoding: str) -> None:
    with open_log(log) as opened:
        opened.publish("orders", Record("ü ключ 🙂".encode()))
    ended = run(
        "sql", "--log", str(log), "SELECT CAST(value AS VARCHAR) FROM orders",
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}, encoding=encoding,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")
    u = "ü" if encoding == "latin-1" else r"\xfc"
    assert rf"{u} \u043a\u043b\u044e\u0447 \U0001f642" in ended.stdout


@pytest.mark.parametrize("command", [("serve",), ("consume",), ("sql",), ()])
def test_help_is_shown_in_every_encoding(command: tuple[str, ...]) -> None:
    ended = run(
        *command, "--help", stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "Usage" in ended.stdout
