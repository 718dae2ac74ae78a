"""A host to be measured: `duolog serve` as it is, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil

_ENDS_WITHIN_SECONDS = 60


class HostFailed(Exception):
    """The host ended before it could be asked."""


@dataclass(frozen=True, slots=True)
class ServedHost:
    """A running host."""

    port: int
    process: psutil.Process

    def cpu_seconds(self) -> float:
        """The processor time that it has taken so far."""
        times = self.process.cpu_times()
        return float(times.user + times.system)

    def rss_bytes(self) -> int:
        return int(self.process.memory_info().rss)


@contextmanager
def served(log: Path, *options: str) -> Iterator[ServedHost]:
    """Serve this log on a free port; ended in order."""
    serve = [sys.executable, "-m", "duolog.cli", "serve", "--log", str(log)]
    process = subprocess.Popen(
        [*serve, "--listen", "127.0.0.1:0", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        port = urlsplit(process.stdout.readline().strip()).port
        if port is None:
            raise HostFailed(f"`duolog serve --log {log}` has ended. Run it by hand to see why.")
        yield ServedHost(port, psutil.Process(process.pid))
    finally:
        process.terminate()
        process.communicate(timeout=_ENDS_WITHIN_SECONDS)
