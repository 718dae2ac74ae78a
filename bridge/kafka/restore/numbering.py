"""Which offsets of the log the records of a Kafka partition get. Pure.

Where the mirror began in an empty Kafka topic, nobody else wrote there and nothing was skipped,
Kafka's offsets are those that the lost log had. Gaps, which are ends of transactions or records
that were compacted, can have no place in a log: they are refused, unless it may number anew.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import numpy as np

from duolog.errors import KafkaOffsetsHaveGaps
from duolog.log.mirror_model import Run


class Offsets(StrEnum):
    """What the offsets of the restored log are."""

    KAFKA = "kafka"  # the same as in Kafka, or nothing is restored
    RENUMBER = "renumber"  # one after the other, from Kafka's first one on


class Numbering:
    """One partition's offsets, as its records come."""

    def __init__(self, topic: str, partition: int, start: int, offsets: Offsets) -> None:
        self._named = f"Kafka topic '{topic}' partition {partition}"
        self._offsets = offsets
        self._next_kafka = start
        self.next_log = start
        self._runs: list[Run] = []

    @property
    def runs(self) -> tuple[Run, ...]:
        """Where the records lie in Kafka."""
        return tuple(self._runs)

    def take(self, kafka_offsets: np.ndarray[Any, Any]) -> None:
        """The Kafka offsets of the next records, which grow."""
        if not len(kafka_offsets):
            return
        breaks = np.flatnonzero(np.diff(kafka_offsets) != 1) + 1
        for first, stop in zip([0, *breaks], [*breaks, len(kafka_offsets)], strict=True):
            self._stretch(int(kafka_offsets[first]), int(stop - first))

    def end(self, kafka_end: int) -> None:
        """There are no more."""
        if self._next_kafka != kafka_end:
            self._gap(kafka_end)

    def _stretch(self, kafka_offset: int, count: int) -> None:
        if kafka_offset != self._next_kafka:
            self._gap(kafka_offset)
        last = self._runs[-1] if self._runs else None
        if last is not None and last.next_kafka_offset == kafka_offset:
            self._runs[-1] = last.cut(last.count + count)
        else:
            self._runs.append(Run(self.next_log, kafka_offset, count))
        self.next_log += count
        self._next_kafka = kafka_offset + count

    def _gap(self, kafka_offset: int) -> None:
        if self._offsets is Offsets.KAFKA:
            raise KafkaOffsetsHaveGaps(
                f"{self._named} has no records from offset {self._next_kafka:,} up to "
                f"{kafka_offset:,}: others have ended transactions there, or it was compacted. A "
                "log's offsets have no gaps. Give --offsets renumber to number its records anew "
                "(groups are moved along, what applications have noted of offsets is not)."
            )
