"""Which groups have moved in the log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from duolog.log.access import LogAccess

IDLE_AFTER_SECONDS: Final = 5.0


class NativeMoves:
    """Found by looking: at a counter, and at all positions when it has grown.

    Half as often when nothing has moved for a while. Rarely when looking takes long: at most
    `share` of the time goes into it.
    """

    def __init__(
        self, log: LogAccess, clock: Callable[[], float], every_seconds: float, share: float
    ) -> None:
        self._log = log
        self._clock = clock
        self._every_seconds = every_seconds
        self._share = share
        self._stored: int | None = None
        self._known: dict[tuple[str, str, int], int] = {}
        self._due_at = self._moved_at = clock()

    @property
    def due_in_seconds(self) -> float:
        """How long until it is time to look."""
        return max(0.0, self._due_at - self._clock())

    def moved(self) -> list[str]:
        """Groups that have moved since; all of them the first time."""
        began = self._clock()
        if began < self._due_at:
            return []
        stored = self._log.stats().positions_stored
        groups = [] if stored == self._stored else self._look()
        self._stored = stored
        ended = self._clock()
        if groups:
            self._moved_at = ended
        is_idle = ended - self._moved_at > IDLE_AFTER_SECONDS
        every_seconds = 2 * self._every_seconds if is_idle else self._every_seconds
        self._due_at = began + max(every_seconds, (ended - began) / self._share)
        return groups

    def _look(self) -> list[str]:
        found = {
            (each.group, each.topic, each.partition): each.version
            for each in self._log.group_positions()
        }
        known, self._known = self._known, found
        return sorted({place[0] for place in found if known.get(place) != found[place]})
