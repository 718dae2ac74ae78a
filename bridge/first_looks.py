"""Which polls are the first of a group for a while, and so have to ask Kafka where the group is.

While a native consumer polls on and on, nobody else is to read for its group, so it need not pay.
Safe to use from many threads.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

RECENT_SECONDS: Final = 1.0
_ALL: Final = -1

_Place = tuple[str, int, int]


class FirstLooks:
    """When polls of each group were answered last, by topic and partition."""

    def __init__(self, clock: Callable[[], float], recent_seconds: float = RECENT_SECONDS) -> None:
        self._clock = clock
        self._recent_seconds = recent_seconds
        self._answered_at: OrderedDict[_Place, float] = OrderedDict()  # the oldest first
        self._guard = threading.Lock()

    def is_due(self, group: str, topic_id: int, partition: int | None) -> bool:
        """Whether a poll of these partitions (None: all) is a first one."""
        now = self._clock()
        with self._guard:
            at = self._answered_at.get(_place(group, topic_id, partition))
        return at is None or now - at > self._recent_seconds

    def answered(self, group: str, topic_id: int, partition: int | None) -> None:
        """A poll was answered."""
        place, now = _place(group, topic_id, partition), self._clock()
        with self._guard:
            self._answered_at[place] = now
            self._answered_at.move_to_end(place)
            while now - next(iter(self._answered_at.values())) > self._recent_seconds:
                self._answered_at.popitem(last=False)

    def handed_over(self, group: str, topic_id: int, partition: int | None) -> None:
        """Somebody else may read for the group from now on: the next poll is a first one."""
        with self._guard:
            for place in [
                each
                for each in self._answered_at
                if each[:2] == (group, topic_id)
                and (partition is None or each[2] in {partition, _ALL})
            ]:
                del self._answered_at[place]


def _place(group: str, topic_id: int, partition: int | None) -> _Place:
    return group, topic_id, _ALL if partition is None else partition
