"""Which groups have moved in the log."""

from __future__ import annotations

from collections.abc import Callable

from duolog.log.access import LogAccess
from duolog.log.model import GroupPosition


class NativeMoves:
    """Found by looking at all positions when more of them have been stored.

    Rarely when looking takes long: at most `share` of the time goes into it.
    """

    def __init__(
        self, log: LogAccess, stored: Callable[[], int], clock: Callable[[], float], share: float
    ) -> None:
        """`stored` says how many positions the log has stored."""
        self._log = log
        self._count_stored = stored
        self._clock = clock
        self._share = share
        self._stored: int | None = None
        self._known: dict[tuple[str, str, int], int] = {}
        self._due_at = clock()

    def moved(self) -> list[GroupPosition]:
        """Positions that have moved since; all of them the first time."""
        stored, began = self._count_stored(), self._clock()
        if stored == self._stored or began < self._due_at:
            return []
        positions = self._look()
        self._stored = stored
        self._due_at = began + (self._clock() - began) / self._share
        return positions

    def _look(self) -> list[GroupPosition]:
        found = {
            (each.group, each.topic, each.partition): each for each in self._log.group_positions()
        }
        known, self._known = self._known, {place: each.version for place, each in found.items()}
        return [each for place, each in found.items() if known.get(place) != each.version]
