"""The demo's processes. None outlives it, whatever happens to it; what they say goes into files."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from duolog.bridge.kafka.local.kept import KeptProcess
from duolog.demo.places import Places
from duolog.errors import DemoFailed, InvalidSetting, LogBusy
from duolog.flock import locked

T = TypeVar("T")

LOCK: Final = "demo.lock"
_GRACE_SECONDS: Final = 20.0
_LOOK_AGAIN_SECONDS: Final = 0.05
_LAST_LINES: Final = 8


@contextmanager
def held(folder: Path) -> Iterator[int]:
    """One demo at a time in a folder. The file descriptor is for its processes to inherit."""
    with ExitStack() as holding:
        try:
            lock = holding.enter_context(locked(folder / LOCK, 0))
        except BlockingIOError:
            raise LogBusy(
                f"Another demo works in {folder}. Name another folder, or end it."
            ) from None
        except OSError as error:
            raise InvalidSetting(
                f"The demo cannot write into {folder}: {error.strerror}. Name another folder."
            ) from None
        yield lock.fileno()


class Children:
    """Started in order, ended in the opposite one. They hold the folder's lock too."""

    def __init__(self, places: Places, lock: int) -> None:
        self._places = places
        self._lock = lock
        self._running: dict[str, KeptProcess] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        for name in reversed(list(self._running)):
            self.stop(name, must_end_well=False)

    def start(self, name: str, *command: str, grace_seconds: float = _GRACE_SECONDS) -> None:
        """Run a module of Python with its arguments."""
        said = self._places.said_by(name)
        said.parent.mkdir(exist_ok=True)
        self._running[name] = KeptProcess(
            [sys.executable, "-P", "-m", *command],
            said,
            grace_seconds=grace_seconds,
            inherited=self._lock,
        )

    def kill(self, name: str) -> None:
        """kill -9."""
        self._running.pop(name).kill()

    def stop(self, name: str, *, must_end_well: bool = True) -> None:
        """In order, waiting for its end."""
        code = self._running.pop(name).stop()
        if must_end_well and code not in {0, 128 + signal.SIGTERM}:
            raise self._failed(name, code)

    def look_after(self) -> None:
        """Raise DemoFailed if one has ended by itself."""
        for name, process in list(self._running.items()):
            if process.exit_code is not None:
                raise self._failed(name, self._running.pop(name).stop())

    def wait_for(self, what: str, found: Callable[[], T | None], seconds: float) -> T:
        """Look until it is there; not longer than that, and not after one has ended by itself."""
        deadline = time.monotonic() + seconds
        while True:
            there = found()
            if there is not None:
                return there
            self.look_after()
            if time.monotonic() > deadline:
                raise DemoFailed(
                    f"After {seconds:.0f} s there is still no sign of {what}. What the demo's "
                    f"processes said is in {self._places.folder / 'said'}."
                )
            time.sleep(_LOOK_AGAIN_SECONDS)

    def told(self, name: str) -> Iterator[dict[str, Any]]:
        """What it said in JSON so far."""
        for line in _lines(self._places, name):
            try:
                found = json.loads(line)
            except ValueError:
                continue
            if isinstance(found, dict):
                yield found

    def _failed(self, name: str, code: int) -> DemoFailed:
        last = "\n".join(f"  {line}" for line in _lines(self._places, name)[-_LAST_LINES:])
        return DemoFailed(f"The demo's '{name}' ended with {code}. It said:\n{last}")


def kill_worker(told: Iterator[dict[str, Any]]) -> int:
    """kill -9 the worker that a host has told of last; its pid."""
    pid = [each["pid"] for each in told if each.get("event") == "worker.started"][-1]
    os.kill(pid, signal.SIGKILL)
    return int(pid)


def _lines(places: Places, name: str) -> list[str]:
    try:
        return places.said_by(name).read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return []
