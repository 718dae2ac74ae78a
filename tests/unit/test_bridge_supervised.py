"""A worker process and what keeps it running, with real processes."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psutil
import pytest

from duolog.bridge.journal import Journal
from duolog.bridge.metrics.names import WORKER_ENDS, WORKER_STARTS, WORKER_UP
from duolog.bridge.metrics.tally import Tally
from duolog.bridge.serve.child import ChildProcess, Process, Status, without_our_settings
from duolog.bridge.serve.exchange import MAX_LINE_BYTES
from duolog.bridge.serve.leash import NOT_RUNNABLE, settings_from_host, tell_host
from duolog.bridge.serve.supervision import Patience, Phase
from duolog.bridge.serve.worker import Worker
from duolog.clock import SystemClock
from duolog.errors import InvalidSetting

DEADLINE_SECONDS = 60.0
QUICK = Patience(
    first_pause_seconds=0.01, longest_pause_seconds=0.02, steady_seconds=60, stop_seconds=0.2
)
SLOW = Patience(stop_seconds=60)

WORKS = """
import os, signal, threading
from duolog.bridge.serve.leash import settings_from_host, tell_host
ended = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: ended.set())
settings = settings_from_host()
print("a library that prints", flush=True)
tell_host({"pid": os.getpid(), "argv": __import__("sys").argv, "settings": settings})
ended.wait()
tell_host({"state": "stopped"})
"""
DEAF = WORKS.replace("lambda *_: ended.set()", "signal.SIG_IGN")
REFUSES = """
from duolog.bridge.serve.leash import NOT_RUNNABLE, settings_from_host, tell_host
settings_from_host()
tell_host({"error": "The settings are wrong.", "code": "InvalidSetting"})
raise SystemExit(NOT_RUNNABLE)
"""
FAILS = "raise SystemExit(3)"


class Kept:
    """A worker that is kept, and what was started for it."""

    def __init__(self, program: str, settings: Mapping[str, Any], patience: Patience) -> None:
        self.tally = Tally()
        self.said = io.StringIO()
        self.processes: list[ChildProcess] = []
        self.alive_at_start: list[int] = []
        self._program = program
        self._settings = settings
        self.worker = Worker(
            "test",
            self._start,
            SystemClock(),
            self.tally,
            Journal(self.said, as_json=True),
            patience=patience,
        )

    def _start(self, said: Callable[[Status], None], ended: Callable[[int], None]) -> Process:
        self.alive_at_start.append(sum(psutil.pid_exists(each.pid) for each in self.processes))
        command = [sys.executable, "-c", self._program]
        self.processes.append(ChildProcess(command, self._settings, said, ended))
        return self.processes[-1]

    def until(self, phase: Phase) -> None:
        until(lambda: self.worker.state.phase is phase)

    def events(self) -> list[str]:
        return [json.loads(line)["event"] for line in self.said.getvalue().splitlines()]


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        threading.Event().wait(0.005)


@contextmanager
def kept(
    program: str, settings: Mapping[str, Any] | None = None, patience: Patience = SLOW
) -> Iterator[Kept]:
    made = Kept(program, settings or {}, patience)
    with made.worker:
        yield made
    assert made.worker.state.phase is Phase.STOPPED
    assert not [each.pid for each in made.processes if psutil.pid_exists(each.pid)]


def test_it_is_told_its_settings_where_nobody_else_sees_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DUOLOG_TOKEN", "hunter2")
    with kept(WORKS, {"password": "hunter2"}) as worker:
        worker.until(Phase.RUNNING)
        state = worker.worker.state
        assert state.status["settings"]["password"] == "hunter2"
        assert state.status["pid"] == state.pid
        seen = psutil.Process(state.pid)
        assert "hunter2" not in " ".join([*seen.cmdline(), *seen.environ().values()])
        assert state.shown() == {"state": "running", "starts": 1}
        assert worker.tally.number(WORKER_UP, "test") == 1
    assert worker.worker.state.status == {"state": "stopped"}
    assert worker.worker.state.exit_code == 0
    assert worker.tally.number(WORKER_UP, "test") == 0
    assert worker.tally.number(WORKER_ENDS, "test", "asked") == 1
    assert worker.events() == ["worker.started", "worker.stopped"]
    assert "hunter2" not in worker.said.getvalue()


def test_one_that_is_killed_is_started_again_after_its_end() -> None:
    with kept(WORKS, patience=Patience(first_pause_seconds=0.01, stop_seconds=60)) as worker:
        for number in range(1, 4):
            until(lambda number=number: len(worker.processes) == number)  # type: ignore[misc]
            worker.until(Phase.RUNNING)
            if number < 3:
                worker.processes[-1].kill()
                until(lambda number=number: worker.worker.state.starts > number)  # type: ignore[misc]
        assert worker.alive_at_start == [0, 0, 0]
        assert worker.tally.number(WORKER_STARTS, "test") == 3
        assert worker.tally.number(WORKER_ENDS, "test", "failed") == 2
    ended = [json.loads(line) for line in worker.said.getvalue().splitlines()]
    assert [each["exit_code"] for each in ended if each["event"] == "worker.ended"] == [-9, -9]
    assert [each["again_in_seconds"] for each in ended if each["event"] == "worker.ended"] == [
        0.01,
        0.02,
    ]


def test_one_that_ends_at_once_is_tried_again_and_again() -> None:
    with kept(FAILS, patience=QUICK) as worker:
        until(lambda: worker.worker.state.starts >= 3)
    assert worker.alive_at_start == [0] * len(worker.processes)
    ended = [json.loads(line) for line in worker.said.getvalue().splitlines() if "ended" in line]
    assert {each["exit_code"] for each in ended} == {3}


def test_one_that_refuses_is_not_started_again() -> None:
    with kept(REFUSES, patience=QUICK) as worker:
        worker.until(Phase.GIVEN_UP)
        assert worker.worker.state.shown() == {
            "state": "given up",
            "starts": 1,
            "code": "InvalidSetting",
        }
        assert worker.tally.number(WORKER_ENDS, "test", "refused") == 1
    (given_up,) = [each for each in worker.said.getvalue().splitlines() if "given_up" in each]
    assert json.loads(given_up)["error"] == "The settings are wrong."


def test_one_that_does_not_end_is_killed() -> None:
    with kept(DEAF, patience=QUICK) as worker:
        worker.until(Phase.RUNNING)
    assert worker.worker.state.exit_code == -signal.SIGKILL
    assert worker.events() == ["worker.started", "worker.killed", "worker.stopped"]


def test_one_that_cannot_be_started_is_tried_again() -> None:
    tries = []

    def start(said: Callable[[Status], None], ended: Callable[[int], None]) -> Process:
        tries.append(1)
        raise OSError(12, "Cannot allocate memory")

    said = io.StringIO()
    worker = Worker(
        "test", start, SystemClock(), Tally(), Journal(said, as_json=True), patience=QUICK
    )
    with worker:
        until(lambda: len(tries) >= 3)
    assert worker.state.phase is Phase.STOPPED
    assert "Cannot allocate memory" in said.getvalue()


def test_what_it_leaves_behind_does_not_hold_up_its_end() -> None:
    program = """
import subprocess, sys
from duolog.bridge.serve.leash import settings_from_host, tell_host
settings_from_host()
child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
tell_host({"child": child.pid})
import os; os._exit(1)
"""
    with kept(program, patience=QUICK) as worker:
        until(lambda: worker.worker.state.starts >= 2)


def test_it_ends_with_its_host_however_that_ends() -> None:
    program = f"""
import sys, time
from duolog.bridge.serve.child import ChildProcess
ChildProcess([sys.executable, "-c", {WORKS!r}], {{}}, lambda s: print(s.get("pid"), flush=True),
             lambda code: None)
time.sleep(1000)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as host:
        assert host.stdout is not None
        worker = psutil.Process(int(host.stdout.readline()))
        host.kill()
        assert host.wait(DEADLINE_SECONDS) == -signal.SIGKILL
        until(lambda: not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE)


@pytest.mark.parametrize("sent", [b"", b"\n", b"[]\n", b"{\n", b"\xff\n", b"[" * 5000 + b"\n"])
def test_without_a_host_it_says_who_starts_it(sent: bytes) -> None:
    reading, writing = os.pipe()
    try:
        os.write(writing, sent)
        os.close(writing)
        with pytest.raises(InvalidSetting, match="Start it through the host"):
            settings_from_host(reading)
    finally:
        os.close(reading)


def test_a_status_is_a_line_that_is_not_too_long() -> None:
    reading, writing = os.pipe()
    try:
        tell_host({"text": "a\nb"}, writing)
        assert os.read(reading, 100) == b'{"text":"a\\nb"}\n'
        with pytest.raises(ValueError, match="at most"):
            tell_host({"text": "x" * MAX_LINE_BYTES}, writing)
    finally:
        os.close(reading)
        os.close(writing)


def test_a_childs_environment_has_none_of_our_settings() -> None:
    assert without_our_settings({"PATH": "/bin", "DUOLOG_TOKEN": "x", "DUOLOG_AVRO": "{}"}) == {
        "PATH": "/bin"
    }
    assert NOT_RUNNABLE == 78
