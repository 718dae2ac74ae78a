"""What native members commit in Kafka: both sides know of it, so nobody has to look at once.

Noted on the worker's event loop before it is committed, and asked for in the thread that keeps
positions together when it hears of it from either side.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Final

from duolog.bridge.kafka.feed.records import OffsetCommitted
from duolog.log.mirror_model import Mirror
from duolog.log.model import GroupPosition

_KEPT: Final = 16  # of a partition: the feed may tell of one when later ones have been committed

_Place = tuple[str, str, int]  # group, topic, partition


class OwnCommits:
    """Of one worker. Safe to use from many threads."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._offsets: dict[_Place, deque[int]] = {}  # by the topic in Kafka
        self._positions: dict[_Place, deque[int]] = {}  # by the log's topic

    def note(self, group: str, mirror: Mirror, offset: int, position: int) -> None:
        """A native acknowledgement is about to be committed."""
        in_kafka = (group, mirror.target.kafka_topic, mirror.partition)
        native = (group, mirror.topic, mirror.partition)
        with self._guard:
            self._offsets.setdefault(in_kafka, deque(maxlen=_KEPT)).append(offset)
            self._positions.setdefault(native, deque(maxlen=_KEPT)).append(position)

    def is_commit(self, change: OffsetCommitted) -> bool:
        """Whether a commit in Kafka is such a one."""
        with self._guard:
            return change.offset in self._offsets.get((change.group, *change.place), ())

    def is_position(self, moved: GroupPosition) -> bool:
        """Whether a group is where such an acknowledgement has brought it."""
        place = (moved.group, moved.topic, moved.partition)
        with self._guard:
            return moved.position in self._positions.get(place, ())

    def forget(self, group: str) -> None:
        """The group has no native members any more."""
        with self._guard:
            for known in (self._offsets, self._positions):
                for place in [each for each in known if each[0] == group]:
                    del known[place]
