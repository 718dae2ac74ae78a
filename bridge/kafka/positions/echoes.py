"""Writes of ours that are on their way, and what the feed has told of them since. One thread's own.

A write's echo shows that it has come to Kafka, and the commit told of just before it is the one
that it replaced.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from duolog.bridge.kafka.feed.coordinator import KafkaPartition
from duolog.bridge.kafka.positions.marks import Author, KafkaCommit
from duolog.log.groups_seen import KafkaWrite

Place = tuple[str, KafkaPartition]


@dataclass(frozen=True, slots=True)
class OnItsWay:
    """What is known of one write. `known_by`: where the feed would have told of it by then."""

    write: KafkaWrite
    before: KafkaCommit | None = None
    echoed: bool = False
    known_by: int | None = None


class Echoes:
    """All writes that are on their way."""

    def __init__(self) -> None:
        self._writes: dict[Place, OnItsWay] = {}

    def expect(self, place: Place, write: KafkaWrite, known_by: int | None = None) -> None:
        """A write is being sent; or was sent before, and by there the feed has told of it."""
        self._writes[place] = OnItsWay(write, known_by=known_by)

    def never_later_than(self, place: Place, known_by: int) -> None:
        """Nobody has said what became of a write, but by there in the feed it is known."""
        self._writes[place] = replace(self._writes[place], known_by=known_by)

    def hear(self, place: Place, commit: KafkaCommit, feed_offset: int) -> None:
        """The feed tells of a commit."""
        known = self._writes.get(place)
        if known is None or known.echoed or feed_offset < (known.write.feed_from or 0):
            return
        if commit.author is Author.OURS and commit.nonce == known.write.nonce:
            self._writes[place] = replace(known, echoed=True)
        else:
            self._writes[place] = replace(known, before=commit)

    def of(self, place: Place) -> OnItsWay | None:
        return self._writes.get(place)

    def forget(self, place: Place) -> None:
        self._writes.pop(place, None)
