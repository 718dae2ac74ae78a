"""What lies in Kafka and in no run: somebody else's records, or one of ours once more?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from duolog.bridge.kafka.audit.kafka_reader import KafkaReader
from duolog.bridge.kafka.audit.report import Difference, Finding
from duolog.bridge.kafka.audit.stretches import Edges

_AT_ONCE = 50_000
MOST_REMEMBERED = 1_000_000
"""So many of the others are compared with ours; beyond, they are only counted."""

_Content = tuple[int, bytes | None, bytes | None]


@dataclass(frozen=True, slots=True)
class Others:
    """Records in no run: how many, and where those are that could be copies."""

    count: int
    places: dict[_Content, list[int]]

    def copies(self, first_log_offset: int, ours: Any) -> Iterator[Difference]:
        """Which of them are records of this batch (a pa.RecordBatch) once more."""
        if not self.places:
            return
        columns = (ours.column(name).to_pylist() for name in ("ts", "key", "value"))
        for at, content in enumerate(zip(*columns, strict=True)):
            for kafka_offset in self.places.get(content, ()):
                yield Difference(
                    Finding.COPY_IN_KAFKA,
                    f"Kafka's {kafka_offset} is offset {first_log_offset + at} once more.",
                    first_log_offset + at,
                    kafka_offset,
                )


def others(reader: KafkaReader, topic: str, partition: int, holes: Sequence[Edges]) -> Others:
    """Read what is in the holes."""
    count = 0
    places: dict[_Content, list[int]] = {}
    for hole in holes:
        for first in range(hole.start, hole.next_offset, _AT_ONCE):
            upto = min(first + _AT_ONCE, hole.next_offset)
            found = reader.read(topic, partition, first, upto)
            columns = (found.columns.column(name).to_pylist() for name in ("ts", "key", "value"))
            for offset, content in zip(
                found.offsets.tolist(), zip(*columns, strict=True), strict=True
            ):
                count += 1
                if count <= MOST_REMEMBERED:
                    places.setdefault(content, []).append(offset)
    return Others(count, places)
