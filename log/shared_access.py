"""Many at a time, or one alone. Whoever wants to be alone goes first.

A thread that is inside may come in again: it is let through while somebody waits to be alone, since
that one waits for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class SharedAccess:
    """Who uses something that is closed and opened again now and then."""

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._inside: dict[int, int] = {}  # how often each thread came in
        self._wanted = 0  # how many are alone, or wait to be
        self._alone: int | None = None

    def enter(self, check: Callable[[], object]) -> None:
        """Come in, unless `check` raises; to be followed by `leave`."""
        thread = threading.get_ident()
        with self._changed:
            if self._wanted and thread not in self._inside and self._alone != thread:
                self._changed.wait_for(lambda: not self._wanted)
            check()
            self._inside[thread] = self._inside.get(thread, 0) + 1

    def leave(self) -> None:
        thread = threading.get_ident()
        with self._changed:
            left = self._inside[thread] - 1
            if left:
                self._inside[thread] = left
                return
            del self._inside[thread]
            if self._wanted and not self._inside:
                self._changed.notify_all()

    @contextmanager
    def alone(self, waiting: Callable[[], object] = lambda: None) -> Iterator[None]:
        """Keep others out, and wait for those who are inside. `waiting` may hurry them."""
        thread = threading.get_ident()
        with self._changed:
            if thread in self._inside:
                raise RuntimeError("A thread that is inside waits to be alone: it never would be.")
            self._wanted += 1
            try:
                if self._inside:
                    waiting()
                self._changed.wait_for(lambda: not self._inside and self._alone is None)
            except BaseException:
                self._go()
                raise
            self._alone = thread
        try:
            yield
        finally:
            with self._changed:
                self._alone = None
                self._go()

    def _go(self) -> None:
        self._wanted -= 1
        self._changed.notify_all()
