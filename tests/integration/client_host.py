"""`duolog serve` in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def duolog(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "duolog.cli", *arguments]


@contextmanager
def serving(folder: Path, *arguments: str, log: str = "log") -> Iterator[str]:
    """The url of a host in a process of its own, which is killed at the end."""
    process = subprocess.Popen(
        duolog("serve", "--log", log, "--listen", "127.0.0.1:0", "--json", *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=folder,
    )
    with process:
        try:
            assert process.stdout is not None
            yield str(json.loads(process.stdout.readline())["url"])
        finally:
            process.kill()
