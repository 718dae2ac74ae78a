"""Batches as brokers store them, decoded by whole columns: several times as fast as one by one.

Whatever is not plain ends it: transactions, other compressions, a broker that does not answer. Then
a client library reads on from there, which knows all of that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Self

import numpy as np
import pyarrow as pa

from duolog.bridge.kafka.mirror.port import KafkaPort
from duolog.bridge.kafka.settings import KafkaSettings
from duolog.bridge.kafka.wire.decode_batch import DamagedKafkaBatch, DecodedBatch, decode_batch
from duolog.bridge.kafka.wire.requests import Place
from duolog.bridge.kafka.wire.stored import stored_batches
from duolog.errors import KafkaFault


class PlainReader:
    """Reads partitions from an offset on, as far as they are plain."""

    def __init__(self, settings: KafkaSettings, topics: Sequence[str]) -> None:
        self._runner = asyncio.Runner()
        self._port = KafkaPort(settings)
        self._seen = self._runner.run(self._port.look(tuple(topics))).topics

    def read(self, topic: str, partition: int, start: int, stop: int) -> Iterator[DecodedBatch]:
        """Batch by batch, in order; of the first and the last what lies within."""
        place = Place(topic, self._seen[topic].topic_id, partition)
        at = start
        while at < stop:
            before = at
            for batch, next_offset in self._fetched(place, at):
                try:
                    decoded = decode_batch(batch)
                except (DamagedKafkaBatch, pa.ArrowInvalid, OSError):
                    return
                if decoded is None:
                    return
                inside = _between(decoded, at, stop)
                if len(inside.offsets):
                    yield inside
                at = next_offset
                if at >= stop:
                    return
            if at == before:
                return

    def _fetched(self, place: Place, at: int) -> Iterator[tuple[memoryview, int]]:
        """Whole batches from the one that holds an offset on, and where the next one begins."""
        try:
            content = memoryview(self._runner.run(self._port.fetch(place, at)).batches)
        except KafkaFault:
            return
        begin = 0
        for head in stored_batches(bytes(content)):
            if head.next_offset > at:
                yield content[begin : begin + head.size], head.next_offset
            begin += head.size

    def close(self) -> None:
        self._runner.run(self._port.close())
        self._runner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _between(decoded: DecodedBatch, start: int, stop: int) -> DecodedBatch:
    first, last = (int(each) for each in np.searchsorted(decoded.offsets, (start, stop)))
    if (first, last) == (0, len(decoded.offsets)):
        return decoded
    return DecodedBatch(decoded.offsets[first:last], decoded.columns.slice(first, last - first))
