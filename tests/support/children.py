"""A child process that says what it does in lines of JSON, and is waited for with deadlines."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ROOT = Path(__file__).parents[2]
DEADLINE_SECONDS = 120.0


def hear_ctrl_c() -> None:
    """For a new process: what a shell runs in the background ignores SIGINT, and so do others that
    it starts.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class ChildFailed(Exception):
    """The child ended on its own, or said nothing for too long."""


class Child:
    """One running child, ended at the latest when its block is left."""

    def __init__(
        self,
        module: str,
        arguments: Mapping[str, Any],
        *,
        before: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed in close()
        self._process = subprocess.Popen(
            [*before, sys.executable, "-m", module, json.dumps(arguments)],
            cwd=ROOT,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, name="duolog-child", daemon=True)
        self._reader.start()
        self._ended = False

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def said(self, within_seconds: float = DEADLINE_SECONDS) -> Any:
        """What it says next; raises when it ends instead, or says nothing in time."""
        found = self.says(within_seconds)
        if found is None:
            code = self._process.wait(DEADLINE_SECONDS)
            raise ChildFailed(f"The child ended with {code}: {self.errors()}")
        return found

    def says(self, within_seconds: float = DEADLINE_SECONDS) -> Any:
        """What it says next; None when it has ended."""
        if self._ended:
            return None
        try:
            line = self._lines.get(timeout=within_seconds)
        except queue.Empty:
            raise ChildFailed(
                f"The child said nothing for {within_seconds} s: {self.errors()}"
            ) from None
        if line is None or not line.endswith(b"\n"):  # killed in the middle of a line
            self._ended = True
            return None
        return json.loads(line)

    def until_silent(self, seconds: float) -> Iterator[Any]:
        """All it says before a moment from now."""
        moment = time.monotonic() + seconds
        while (left := moment - time.monotonic()) > 0:
            try:
                said = self.says(left)
            except ChildFailed:
                return
            if said is None:
                return
            yield said

    def rest(self) -> Iterator[Any]:
        """All it says until it has ended."""
        while (said := self.says()) is not None:
            yield said

    def tell(self, what: Any) -> None:
        """Send it a line."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(what).encode() + b"\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        """kill -9, this process and no other."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)

    def wait(self) -> int:
        """Wait for its end; the exit code."""
        return self._process.wait(DEADLINE_SECONDS)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def errors(self) -> str:
        """The end of what it wrote to stderr."""
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")[-4000:]

    def close(self) -> None:
        self.kill()
        self.wait()
        self._reader.join(DEADLINE_SECONDS)
        for opened in (self._process.stdin, self._process.stdout, self._errors):
            if opened is not None:
                with suppress(BrokenPipeError):  # it was killed with something left to read
                    opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
