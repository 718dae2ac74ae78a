"""Which groups are to be looked at next."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from heapq import nsmallest
from typing import Final

from duolog.bridge.kafka.feed.records import GroupChange, OffsetCommitted

_NEXT: Final = float("-inf")
AGAIN_SECONDS: Final = 0.2
"""How soon a group is looked at again that waits for the mirror, or to be empty."""

REST_SECONDS: Final = 0.5
"""How soon a group is looked at that has moved on both sides at once."""


class Agenda:
    """Groups with the time at which they are due. Safe to use from many threads."""

    def __init__(self, clock: Callable[[], float], again_seconds: float = AGAIN_SECONDS) -> None:
        self._clock = clock
        self._again_seconds = again_seconds
        self._due_at: dict[str, float] = {}
        self._until_members_change: set[str] = set()
        self._lock = threading.Lock()

    def add(self, *groups: str) -> None:
        """These are to be looked at next."""
        with self._lock:
            self._due_at.update(dict.fromkeys(groups, _NEXT))

    def add_all(self, groups: Iterable[str]) -> None:
        """These are to be looked at, after what is known to have changed."""
        now = self._clock()
        with self._lock:
            for group in groups:
                self._due_at.setdefault(group, now)

    def rest(self, group: str) -> None:
        """It has moved on both sides at once, as native members of a group in Kafka do: what is to
        be noted of that has time, until its members change.
        """
        with self._lock:
            self._due_at.setdefault(group, self._clock() + REST_SECONDS)

    def hear(self, change: GroupChange) -> None:
        """Commits are looked at; that members came or went matters to who waits for it."""
        with self._lock:
            waits = change.group in self._due_at or change.group in self._until_members_change
            if isinstance(change, OffsetCommitted) or waits:
                self._due_at[change.group] = _NEXT

    def has_due(self) -> bool:
        now = self._clock()
        with self._lock:
            return any(at <= now for at in self._due_at.values())

    def due(self, most: int) -> list[str]:
        """Some that are due, taken off."""
        now = self._clock()
        with self._lock:
            waiting = (item for item in self._due_at.items() if item[1] <= now)
            groups = [group for group, _ in nsmallest(most, waiting, key=lambda item: item[1])]
            for group in groups:
                del self._due_at[group]
        return groups

    def keep(
        self, group: str, *, at_once: bool, waits: bool, until_members_change: bool = False
    ) -> None:
        """After a look: it did something and may go on, or it waits for something.

        What waits only until the group's members change is looked at then.
        """
        at = _NEXT if at_once else self._clock() + self._again_seconds
        with self._lock:
            if until_members_change:
                self._until_members_change.add(group)
            else:
                self._until_members_change.discard(group)
            if not at_once and not waits:
                return
            self._due_at[group] = min(at, self._due_at.get(group, at))
