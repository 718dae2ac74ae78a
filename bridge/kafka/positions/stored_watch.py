"""Watches how many group positions the log has stored: a thread waits for the next ones, so that
looking costs nothing while nothing moves.
"""

from __future__ import annotations

import threading
from typing import Final

from duolog.errors import DuologError
from duolog.log.access import LogAccess

_WAIT_SECONDS: Final = 2.0  # at a time: so soon the thread ends when it is no longer wanted


class StoredWatch:
    """From when it is made to `close`."""

    def __init__(self, log: LogAccess, rest_seconds: float) -> None:
        """After each move it rests, so that many at once cost one look."""
        self._log = log
        self._rest_seconds = rest_seconds
        self._stored = log.stats().positions_stored
        self._failure: DuologError | None = None
        self._stopping = threading.Event()
        threading.Thread(target=self._run, name="duolog-stored", daemon=True).start()

    def stored(self) -> int:
        """How many there are. Raises what has ended the watch."""
        if self._failure is not None:
            raise self._failure
        return self._stored

    def close(self) -> None:
        self._stopping.set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                stored = self._log.wait_for_positions(self._stored, _WAIT_SECONDS)
            except DuologError as error:
                self._failure = error
                return
            if stored != self._stored:
                self._stored = stored
                self._stopping.wait(self._rest_seconds)
