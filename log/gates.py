"""Who may append where: one at a time, since offsets are given out in order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Hashable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Gates(Generic[T]):
    """A gate for each thing, open unless somebody holds it."""

    def __init__(self) -> None:
        self._held: set[T] = set()
        self._wanted: list[frozenset[T]] = []  # by those who wait: they come first
        self._opened = threading.Condition()
        self._on_opened: Callable[[], None] = _nothing

    def when_opened(self, call: Callable[[], None]) -> None:
        """Call this whenever gates open."""
        self._on_opened = call

    @contextmanager
    def hold(self, wanted: frozenset[T]) -> Iterator[None]:
        """Wait for all of these and hold them: all or none, so nobody waits in a circle."""
        with self._opened:
            self._wanted.append(wanted)
            try:
                self._opened.wait_for(lambda: self._held.isdisjoint(wanted))
            finally:
                self._wanted.remove(wanted)
            self._held.update(wanted)
        try:
            yield
        finally:
            self.free(wanted)

    def try_hold(self, wanted: Collection[T]) -> bool:
        """Hold all of these if nobody holds or waits for one of them."""
        with self._opened:
            if not self._held.isdisjoint(wanted) or any(
                not waiting.isdisjoint(wanted) for waiting in self._wanted
            ):
                return False
            self._held.update(wanted)
            return True

    def free(self, held: Collection[T]) -> None:
        """Let go of these."""
        with self._opened:
            self._held.difference_update(held)
            self._opened.notify_all()
        self._on_opened()


def _nothing() -> None:
    pass
