"""How much memory a host takes, with its processes."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Self

import psutil

MOST_MEMORY_BYTES = 400_000_000


class MemoryWatch:
    """The most memory that a process and its children took together, with what they share counted
    once.
    """

    def __init__(self, pid: int, *, with_children: bool = True) -> None:
        self._with_children = with_children
        self._process = psutil.Process(pid)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="memory")
        self.highest_bytes = 0

    def look(self) -> None:
        with suppress(psutil.NoSuchProcess):
            tree = [self._process]
            if self._with_children:
                tree += self._process.children(recursive=True)
            self.highest_bytes = max(self.highest_bytes, sum(_resident(each) for each in tree))

    def _watch(self) -> None:
        while not self._stop.wait(0.1):
            self.look()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
        return 0
