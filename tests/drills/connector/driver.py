"""The drill's side: a Spark driver in a process group of its own, and all that happens in it."""

from __future__ import annotations

import json
import os
import queue
import signal
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Self

from tests.drills.connector import driving
from tests.drills.connector.places import ADDRESS
from tests.drills.connector.streams import Stream
from tests.support.children import Child

GO = "go"
HOLD = "hold"  # no answer yet
KILL = "kill"  # the driver, with its JVM
_DEADLINE_SECONDS = 280.0
_LOOK_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Report:
    """Some process of the driver's has come to a place, and waits for an answer."""

    place: str
    stream: str
    line: socket.socket = field(repr=False)
    epoch: int = -1
    turn: int = -1
    attempt: int = -1
    repeated: bool = False
    error: str | None = None
    checkpoint: str = ""

    def answer(self, word: str) -> None:
        with suppress(OSError), self.line:  # it may have been killed meanwhile
            self.line.sendall(word.encode() + b"\n")


Decide = Callable[[Report], str]
Ends = dict[str, str | None]  # of streams: their errors


class DriverGone(Exception):
    """The driver ended by itself, or nothing was heard of it for too long."""


class Driver:
    """One driver, from its start to its end."""

    def __init__(self, folder: Path, configuration: Mapping[str, str] | None = None) -> None:
        folder.mkdir()
        self._reports: queue.SimpleQueue[Report] = queue.SimpleQueue()
        self._held: list[Report] = []
        self._server = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._listener = threading.Thread(target=self._listen, name="duolog-places", daemon=True)
        self._listener.start()
        host, port = self._server.getsockname()
        self._child = Child(
            driving.__name__,
            {"folder": str(folder), "configuration": dict(configuration or {})},
            environment={ADDRESS: f"{host}:{port}"},
        )
        _, self._group = self._child.said()

    def _listen(self) -> None:
        with suppress(OSError):  # closed
            while True:
                line, _ = self._server.accept()
                with line.makefile("rb") as told:
                    said = told.readline()
                if said.endswith(b"\n"):
                    self._reports.put(Report(line=line, **json.loads(said)))

    def start(self, stream: Stream) -> None:
        """Start a stream's query."""
        self._child.tell(asdict(stream) | _texts(stream))

    def next_report(self, within_seconds: float = _DEADLINE_SECONDS) -> Report | None:
        """What happens next; None when nothing does in time."""
        moment = time.monotonic() + within_seconds
        while (left := moment - time.monotonic()) > 0:
            try:
                return self._reports.get(timeout=min(left, _LOOK_SECONDS))
            except queue.Empty:
                if not self._child.running:
                    raise DriverGone(f"The driver ended: {self._child.errors()}") from None
        return None

    def run(self, streams: Sequence[Stream], decide: Decide = lambda _: GO) -> Ends:
        """Start streams and answer their reports until all have ended; their errors by name.

        None for a stream that went well. When the driver was killed, those that had ended by then.
        """
        for stream in streams:
            self.start(stream)
        ended: Ends = {}
        while len(ended) < len(streams):
            report = self.next_report()
            if report is None:
                raise DriverGone(f"Nothing happens: {self._held} {self._child.errors()}")
            word = decide(report)
            self.obey(report, word)
            if report.place == "ended":
                ended[report.stream] = report.error
            if word == KILL:
                return ended
        return ended

    def answer_until_silent(self, seconds: float) -> None:
        """Let everything go on, up to a moment from now."""
        moment = time.monotonic() + seconds
        while (left := moment - time.monotonic()) > 0:
            report = self.next_report(left)
            if report is not None:
                report.answer(GO)

    def obey(self, report: Report, word: str) -> None:
        """Answer, or keep it waiting, for good if the driver is killed."""
        if word in {HOLD, KILL}:
            self._held.append(report)
        else:
            report.answer(word)
        if word == KILL:
            self.kill()

    def kill(self) -> None:
        """kill -9 the driver and its JVM; who waits for an answer ends too."""
        if self._child.running:
            os.killpg(self._group, signal.SIGKILL)
        self._child.wait()
        self._shut()

    def _shut(self) -> None:
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._listener.join(_DEADLINE_SECONDS)
        while not self._reports.empty():
            self._held.append(self._reports.get())
        for report in self._held:
            report.line.close()
        self._held.clear()

    def close(self) -> None:
        self.kill()
        self._child.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _texts(stream: Stream) -> dict[str, str]:
    return {name: str(getattr(stream, name)) for name in ("log", "files", "checkpoint")}
