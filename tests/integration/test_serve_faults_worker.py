"""A host with a worker process: both as real processes, started and ended in every way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, cast

import psutil
import pytest

from tests.integration.serve_host import until

DEADLINE_SECONDS = 60
HOST = """
import sys
from duolog.avro.embedded import open_log
from duolog.bridge.journal import Journal
from duolog.bridge.serve.child import WorkerCommand
from duolog.bridge.serve.options import HostOptions
from duolog.bridge.serve.process import serve
from duolog.server.address import Address

serve(
    lambda: open_log("log"),
    HostOptions(Address("127.0.0.1", 0)),
    Journal(),
    when_started=lambda started: print(started.url, flush=True),
    workers=[WorkerCommand("mirror", sys.argv[1], {"password": "hunter2"})],
)
"""
WORKER = """
import json, os, signal, sys, threading, urllib.request
from duolog.bridge.serve.leash import settings_from_host, tell_host

ended = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: ended.set())
assert settings_from_host()["password"] == "hunter2"
tell_host({"at": "work"})
ended.wait()
with urllib.request.urlopen(json.load(open("log/host.json"))["address"] + "/healthz") as answer:
    print("worker ends in order", answer.status, file=sys.stderr)
"""


@pytest.fixture
def host(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    (tmp_path / "json.py").write_text("raise SystemExit('not the library')")  # see -P
    library = tmp_path / "library"
    library.mkdir()
    (library / "some_worker.py").write_text(WORKER)
    with ExitStack() as ending:
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", HOST, "some_worker"],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(library)},
        )
        ending.enter_context(process)
        ending.callback(process.kill)
        yield process


def ready(url: str) -> Any:
    with urllib.request.urlopen(f"{url}/readyz", timeout=DEADLINE_SECONDS) as answer:
        return json.loads(answer.read())


def at_work(url: str, starts: int) -> bool:
    return bool(ready(url)["workers"] == {"mirror": {"state": "running", "starts": starts}})


def worker_of(host: subprocess.Popen[bytes]) -> psutil.Process:
    (worker,) = psutil.Process(host.pid).children()
    return worker


def url_of(host: subprocess.Popen[bytes]) -> str:
    return cast("IO[bytes]", host.stdout).readline().decode().strip()


def test_a_worker_runs_with_its_host_and_ends_before_it(host: subprocess.Popen[bytes]) -> None:
    url = url_of(host)
    until(lambda: at_work(url, 1))
    first = worker_of(host)
    assert first.cmdline()[1:] == ["-P", "-m", "some_worker"]
    first.kill()
    until(lambda: at_work(url, 2))
    second = worker_of(host)
    assert second.pid != first.pid
    with urllib.request.urlopen(f"{url}/metrics", timeout=DEADLINE_SECONDS) as answer:
        metrics = answer.read().decode()
    assert 'duolog_worker_up{worker="mirror"} 1' in metrics
    assert 'duolog_worker_starts_total{worker="mirror"} 2' in metrics
    assert 'duolog_worker_ends_total{worker="mirror",how="failed"} 1' in metrics
    host.send_signal(signal.SIGTERM)
    _, err = host.communicate(timeout=DEADLINE_SECONDS)
    assert host.returncode == 0
    assert not second.is_running()
    said = err.decode()
    assert "worker ends in order 200" in said
    assert said.index("worker.stopped") < said.index("host.stopped")
    assert "hunter2" not in said + metrics


def test_ctrl_c_ends_the_worker_in_order_too(host: subprocess.Popen[bytes]) -> None:
    url = url_of(host)
    until(lambda: at_work(url, 1))
    host.send_signal(signal.SIGINT)
    _, err = host.communicate(timeout=DEADLINE_SECONDS)
    assert host.returncode == 0
    assert "worker ends in order 200" in err.decode()


def test_a_worker_does_not_outlive_a_host_that_is_killed(host: subprocess.Popen[bytes]) -> None:
    url = url_of(host)
    until(lambda: at_work(url, 1))
    worker = worker_of(host)
    host.kill()
    until(lambda: not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE)
