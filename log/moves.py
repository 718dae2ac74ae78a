"""How many group positions have been stored since the log was opened, and who waits for more."""

from __future__ import annotations

import threading
from collections.abc import Callable

from duolog.log.listeners import call_listeners

Listener = Callable[[], None]


class PositionMoves:
    """Counted by the thread that stores; waited for by others."""

    def __init__(self) -> None:
        self.count = 0
        self._more = threading.Condition()
        self._listeners: list[Listener] = []

    def add(self, count: int) -> None:
        """So many more are stored."""
        with self._more:
            self.count += count
            self._more.notify_all()
        call_listeners(self._listeners)

    def wait(self, known: int, timeout_seconds: float | None) -> int:
        """Wait until it is another number than is known; which one it is then, or still is."""
        with self._more:
            self._more.wait_for(lambda: self.count != known, timeout_seconds)
            return self.count

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call back after each time, from the thread that stores. Must be quick."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)
