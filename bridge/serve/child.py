"""A worker as a process of its own: its command, and threads that hear of it and speak to it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import IO, Any, Final, Protocol, cast

from duolog.bridge.serve.exchange import MAX_LINE_BYTES

_LAST_WORDS_SECONDS: Final = 2.0
_OURS: Final = "DUOLOG_"

Status = Mapping[str, Any]


class Process(Protocol):
    """A running worker, as its supervisor sees it."""

    @property
    def pid(self) -> int: ...
    def send(self, line: bytes) -> None:
        """Tell it something; it need not take it at once."""

    def terminate(self) -> None:
        """Ask it to end in order."""

    def kill(self) -> None:
        """End it."""


class Start(Protocol):
    """Starts a worker. `said` and `ended` are called from other threads, `ended` last and once."""

    def __call__(self, said: Callable[[Status], None], ended: Callable[[int], None]) -> Process: ...


@dataclass(frozen=True, slots=True)
class WorkerCommand:
    """A module that is run, and what it is told. Only the module can be seen from outside."""

    name: str
    module: str
    settings: Mapping[str, Any] = field(repr=False)

    def start(self, said: Callable[[Status], None], ended: Callable[[int], None]) -> ChildProcess:
        # -P: a file beside the host must not stand for one of the standard library's modules.
        command = [sys.executable, "-P", "-m", self.module]
        return ChildProcess(command, self.settings, said, ended)


class ChildProcess:
    """One run of a worker."""

    def __init__(
        self,
        command: list[str],
        settings: Mapping[str, Any],
        said: Callable[[Status], None],
        ended: Callable[[int], None],
    ) -> None:
        self._said = said
        self._ended = ended
        self._process = subprocess.Popen(  # noqa: S603 - a module of ours, without arguments
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,  # its stderr is the host's
            env=without_our_settings(os.environ),
            start_new_session=True,  # Ctrl-C is for the host, which ends its workers in order
        )
        self._to_say: SimpleQueue[bytes | None] = SimpleQueue()
        self._to_say.put(json.dumps(settings).encode() + b"\n")
        self._listening = threading.Thread(target=self._listen, daemon=True)
        self._speaking = threading.Thread(target=self._speak, daemon=True)
        try:
            self._listening.start()
            self._speaking.start()
            threading.Thread(target=self._wait, name="duolog-worker-end", daemon=True).start()
        except BaseException:
            self._process.kill()
            self._process.wait()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, line: bytes) -> None:
        self._to_say.put(line)

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()

    def _speak(self) -> None:
        """Hand over the settings, and what comes then. stdin stays open: that is the leash."""
        stdin = cast("IO[bytes]", self._process.stdin)
        with suppress(OSError):  # it has ended
            while (line := self._to_say.get()) is not None:
                stdin.write(line)
                stdin.flush()

    def _listen(self) -> None:
        stdout = cast("IO[bytes]", self._process.stdout)
        while line := stdout.readline(MAX_LINE_BYTES):
            status = _status_in(line)
            if status is not None:
                self._said(status)

    def _wait(self) -> None:
        code = self._process.wait()
        self._to_say.put(None)
        # What it said last explains its end. Something that it left behind may hold the pipes open.
        for thread in (self._listening, self._speaking):
            thread.join(_LAST_WORDS_SECONDS)
        if not self._speaking.is_alive():
            with suppress(OSError):
                cast("IO[bytes]", self._process.stdin).close()
        if not self._listening.is_alive():
            cast("IO[bytes]", self._process.stdout).close()
        self._ended(code)


def without_our_settings(variables: Mapping[str, str]) -> dict[str, str]:
    """Some of DUOLOG_* are secrets, and an environment can be looked at from outside."""
    return {name: text for name, text in variables.items() if not name.startswith(_OURS)}


def _status_in(line: bytes) -> Status | None:
    """What a line says; None for what is none of ours, as a library that prints."""
    try:
        status = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return status if isinstance(status, dict) else None
