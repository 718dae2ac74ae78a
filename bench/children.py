"""Work in a process of its own: to be measured from outside, or to be killed."""

from __future__ import annotations

import multiprocessing as mp
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import psutil

_SAMPLE_SECONDS = 0.002
_LONGEST_SECONDS = 1800
_LAST_SECONDS = 30


class ChildFailed(Exception):
    """A child process ended without the word that was waited for."""


@dataclass(frozen=True, slots=True)
class Child:
    """A running child and the way to talk with it."""

    process: BaseProcess
    pipe: Connection

    def hear(self) -> Any:
        """What the child says next."""
        if not self.pipe.poll(_LONGEST_SECONDS):
            raise ChildFailed(f"{self.process.name} has said nothing for {_LONGEST_SECONDS} s.")
        try:
            return self.pipe.recv()
        except EOFError:
            raise ChildFailed(f"{self.process.name} ended; see its error above.") from None

    def tell(self, word: Any) -> None:
        self.pipe.send(word)

    def rss_bytes(self) -> int:
        return int(psutil.Process(self.process.pid).memory_info().rss)

    def peak_rss_bytes(self) -> int:
        """The most memory that the child has until it says something."""
        watched = psutil.Process(self.process.pid)
        peak = watched.memory_info().rss
        while not self.pipe.poll(_SAMPLE_SECONDS):
            peak = max(peak, watched.memory_info().rss)
        return int(peak)

    def kill(self) -> None:
        """As kill -9."""
        self.process.kill()
        self.process.join()


def asked(child: Child, name: str) -> Callable[[], float]:
    """Tells the child the name, and hears what it has measured."""

    def measured() -> float:
        child.tell(name)
        return float(child.hear())

    return measured


@contextmanager
def child(work: Callable[..., None], *arguments: Any) -> Iterator[Child]:
    """Run `work(pipe, *arguments)` in a fresh process, without what this one has in memory."""
    spawn = mp.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=work, args=(theirs, *arguments), name=work.__name__, daemon=True)
    process.start()
    theirs.close()
    try:
        yield Child(process, ours)
    finally:
        ours.close()
        process.join(_LAST_SECONDS)
        process.kill()
        process.join()
        process.close()
