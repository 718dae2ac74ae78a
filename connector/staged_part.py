"""A task's part: in memory while it is small, else a file in the epoch's staging place.

A small part travels inside its message, which saves the owner of the log a file to open, and the
cluster a shared disk. Runs in Spark tasks.
"""

from __future__ import annotations

from typing import Any

from duolog.log.model import MAX_RECORD_BYTES, Topic
from duolog.log.part import Fingerprint, Part, PartBuilder
from duolog.log.staging import StagingPlace

INLINE_BYTES = 256 << 10
"""Records above this, before compression, go to a file: a driver may get thousands of messages."""


class StagedPart:
    """Takes records as PartBuilder does."""

    def __init__(
        self,
        place: StagingPlace,
        *,
        inline_bytes: int = INLINE_BYTES,
        max_record_bytes: int = MAX_RECORD_BYTES,
    ) -> None:
        self._place = place
        self._inline_bytes = inline_bytes
        self._max_record_bytes = max_record_bytes
        self._bytes = 0
        self._waiting: list[tuple[Topic, int, Any, int]] = []
        self._builder: PartBuilder | None = None
        self._counts: list[tuple[Topic, Fingerprint]] = []

    def add(self, topic: Topic, partition: int, records: Any, *, order: int = 0) -> None:
        """Add records of one partition."""
        if self._builder is not None:
            self._builder.add(topic, partition, records, order=order)
            return
        self._waiting.append((topic, partition, records, order))
        self._bytes += records.nbytes
        if self._bytes > self._inline_bytes:
            self._begin(self._place)

    def count(self, topic: Topic, fingerprint: Fingerprint) -> None:
        """Add to what the part says of a topic, for rows that leave no record."""
        self._counts.append((topic, fingerprint))

    def finish(self) -> Part:
        """The part; nothing can be added afterwards."""
        builder = self._builder or self._begin(None)
        for topic, fingerprint in self._counts:
            builder.count(topic, fingerprint)
        return builder.finish()

    def abort(self) -> None:
        """Throw the part away."""
        if self._builder is not None:
            self._builder.abort()

    def _begin(self, place: StagingPlace | None) -> PartBuilder:
        self._builder = builder = PartBuilder(place, max_record_bytes=self._max_record_bytes)
        for topic, partition, records, order in self._waiting:
            builder.add(topic, partition, records, order=order)
        self._waiting.clear()
        return builder
