"""Log offsets and Kafka offsets of one partition, translated exactly both ways. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import Self

from duolog.log.mirror_model import Mirror, Run


@dataclass(frozen=True, slots=True)
class OffsetMap:
    """What of a partition lies where in Kafka.

    Log offsets outside of all runs are those that Kafka could not take, or has not got yet; Kafka
    offsets outside of all runs are somebody else's. `known_kafka_end`: nothing of ours lies between
    the last run and there; a commit beyond it may stand for records that nobody told us of yet.
    """

    runs: tuple[Run, ...]
    begin_log_offset: int
    begin_kafka_offset: int
    next_log_offset: int
    known_kafka_end: int

    @classmethod
    def of_mirror(cls, mirror: Mirror, *, known_kafka_end: int = 0) -> Self:
        """The map of a partition as its mirror left it.

        Whoever knows that the mirror has nothing on its way may say how far Kafka reaches.
        """
        return cls(
            mirror.runs,
            mirror.begin_log_offset,
            mirror.begin_kafka_offset,
            mirror.next_log_offset,
            max(known_kafka_end, mirror.next_kafka_offset),
        )

    @property
    def mirrored_end(self) -> int:
        """The Kafka offset after the last record of ours."""
        return self.runs[-1].next_kafka_offset if self.runs else self.begin_kafka_offset

    def to_kafka(self, position: int) -> int:
        """The Kafka offset of the first mirrored record at or after a log position.

        When nothing after it is mirrored, the mirrored end.
        """
        at = bisect_right(self.runs, position, key=lambda run: run.next_log_offset)
        if at == len(self.runs):
            return self.mirrored_end
        run = self.runs[at]
        return max(position, run.first_log_offset) + run.difference

    def is_same_place(self, position: int, kafka_offset: int) -> bool:
        """Whether no record that the map knows lies between a log position and a Kafka offset."""
        known = min(kafka_offset, self.mirrored_end)
        return self.to_log(known) == self.to_log(self.to_kafka(position))

    def to_log(self, kafka_offset: int) -> int | None:
        """The log position after the last mirrored record before a Kafka offset.

        None when it lies beyond what is known. Where no record of ours lies before it, that is
        where the mirror began.
        """
        if kafka_offset > self.known_kafka_end:
            return None
        at = bisect_left(self.runs, kafka_offset, key=lambda run: run.first_kafka_offset) - 1
        if at < 0:
            return self.begin_log_offset
        run = self.runs[at]
        return min(kafka_offset, run.next_kafka_offset) - run.difference
