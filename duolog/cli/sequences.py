"""The numbers that `publish --writer` gives to records, so that sending them again is no twin.

The log remembers a writer's latest numbers and where their records lie. A file that is longer than
that, and sent again, begins with records that are passed over: they were written before the ones
that the log remembers. The first of these is then sent alone, to see that the log does know it: if
not, the input is another one, and what was passed over may not be there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from duolog.errors import SequenceTooOld
from duolog.log.model import Placed, Record

if TYPE_CHECKING:
    from duolog.log import LogAccess

Sent = tuple[Placed, int | None]
"""Where a record lies, and its number if it has one."""

Ends = dict[tuple[str, int], int]
"""The next offset of every partition, by the topic's name."""


def ends_of(log: LogAccess) -> Ends:
    """How far all partitions reach now."""
    return {
        (each.topic, each.partition): each.next_offset
        for topic in log.topics()
        for each in log.offsets(topic.id)
    }


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a writer's input was sent."""

    next: int
    passed_over: int = 0
    is_compared: bool = True  # nothing was passed over, or what follows was found in the log


class Sequences:
    """Publishes one writer's records with their numbers. What raises has changed no number."""

    def __init__(
        self, log: LogAccess, writer: str, first: int, ends: Ends, *, in_order: bool = False
    ) -> None:
        from duolog.log.published import REMEMBERED_SEQUENCES

        last = log.last_sequence(writer)
        self._log = log
        self._writer = writer
        self._first = first
        self._in_order = in_order
        self._last = -1 if last is None else last
        self._remembered_from = self._last + 1 - REMEMBERED_SEQUENCES
        self._ends_before = ends
        self.progress = Progress(first)

    def publish(self, topic_id: int, records: Sequence[Record]) -> list[Sent]:
        """Publish the next records; the places of those that were not passed over."""
        before = self.progress
        try:
            return self._publish(topic_id, records)
        except BaseException:
            self.progress = before
            raise

    def _publish(self, topic_id: int, records: Sequence[Record]) -> list[Sent]:
        old = min(len(records), max(0, self._remembered_from - self.progress.next))
        if old:
            self.progress = Progress(
                self.progress.next + old, self.progress.passed_over + old, is_compared=False
            )
            records = records[old:]
        sent: list[Sent] = []
        if records and not self.progress.is_compared:
            sent += self._send(topic_id, records[:1])
            self._compare(sent[0])
            records = records[1:]
        if records:
            sent += self._send(topic_id, records)
        return sent

    def _send(self, topic_id: int, records: Sequence[Record]) -> list[Sent]:
        first = self.progress.next
        placed = self._log.publish(
            topic_id, records, writer=self._writer, sequence=first, in_order=self._in_order
        )
        self.progress = replace(self.progress, next=first + len(placed))
        return [(each, sequence) for sequence, each in enumerate(placed, first)]

    def _compare(self, sent: Sent) -> None:
        placed, sequence = sent
        if placed.offset >= self._ends_before.get((placed.topic, placed.partition), 0):
            raise SequenceTooOld(
                f"The log did not know sequence {sequence} of writer '{self._writer}', although "
                f"that one is at {self._last}: {self.progress.passed_over:,} records before it "
                "were passed over and may not be there. Use another writer's name for another "
                "input."
            )
        self.progress = replace(self.progress, is_compared=True)

    def finish(self) -> None:
        """The input is at its end: what was passed over must have been compared."""
        if not self.progress.is_compared:
            raise SequenceTooOld(
                f"Writer '{self._writer}' is at sequence {self._last}; {self._first} to "
                f"{self.progress.next - 1} are too far back to say whether they were written. "
                "Nothing was. Use another writer's name for another input, or --sequence to go on."
            )
