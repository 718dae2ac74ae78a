"""`duolog serve` as a process of its own, and what it says of itself."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self, TypeVar

import psutil

DEADLINE_SECONDS = 60.0

T = TypeVar("T")


class ServedProcess:
    """A host, started with these options and a journal in JSON; killed when its block is left."""

    def __init__(self, folder: Path, *options: str) -> None:
        variables = {n: text for n, text in os.environ.items() if not n.startswith("DUOLOG_")}
        self._said = folder.parent / "said"
        with self._said.open("wb") as said:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "duolog.cli", "serve", "--log", str(folder)),
                    *("--listen", "127.0.0.1:0", "--log-json", *options),
                ],
                stdout=subprocess.PIPE,
                stderr=said,
                cwd=folder.parent,
                env=variables,
            )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().decode().strip()

    def ready(self) -> tuple[int, dict[str, Any]]:
        """What /readyz answers, with its status."""
        return self.ask("/readyz")

    def ask(self, path: str, body: object = None) -> tuple[int, dict[str, Any]]:
        request = urllib.request.Request(self.url + path)
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=DEADLINE_SECONDS) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, json.loads(refused.read())

    def journal(self, event: str | None = None) -> list[dict[str, Any]]:
        """Whole lines of host and worker, all of them JSON; but what the command itself says."""
        lines = self._said.read_text().split("\n")[:-1]
        told = [json.loads(line) for line in lines if not line.startswith("Serves ")]
        return [each for each in told if event in {None, each["event"]}]

    def worker(self) -> psutil.Process | None:
        """The process that mirrors, once it runs."""
        for child in psutil.Process(self.process.pid).children():
            with suppress(psutil.NoSuchProcess):  # it has ended meanwhile
                if "duolog.bridge.kafka.worker" in child.cmdline():
                    return child
        return None

    def terminate(self, within_seconds: float = DEADLINE_SECONDS) -> int:
        """SIGTERM; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(within_seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(DEADLINE_SECONDS)
        assert self.process.stdout is not None
        self.process.stdout.close()


def until(found: Callable[[], T | None]) -> T:
    """Look until it is there, with a deadline."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not (there := found()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return there


@contextmanager
def nobody_listens() -> Iterator[str]:
    """An address that refuses connections, and that nobody else takes meanwhile."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


@contextmanager
def nobody_answers() -> Iterator[str]:
    """An address that takes connections and says nothing, as a frozen broker does."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as silent:
        yield f"127.0.0.1:{silent.getsockname()[1]}"
