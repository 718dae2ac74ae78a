"""Was it exactly once? Looked at from Kafka's end and from the consumers' own notes. Pure but for
the reading.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from duolog.demo.places import PARTITIONS
from duolog.errors import DemoFailed

Row = Mapping[str, Any]

_SILENCE_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Work:
    """What the members have done, all together."""

    records: int
    left_out: int
    twice: int


def work_done(done: Mapping[str, Mapping[int, list[int]]], ends: Mapping[int, int]) -> Work:
    """Compare the members' notes with how far the partitions reach."""
    times: Counter[tuple[int, int]] = Counter()
    for partitions in done.values():
        for partition, offsets in partitions.items():
            times.update((partition, offset) for offset in offsets)
    records = sum(ends.values())
    there = sum(1 for partition, offset in times if offset < ends.get(partition, 0))
    return Work(records, records - there, sum(count - 1 for count in times.values()))


def replayed(values: Iterable[bytes | None]) -> dict[int, Row]:
    """The table that the events add up to; each must fit what came before it."""
    rows: dict[int, Row] = {}
    for value in values:
        if value is None:  # a tombstone, for compaction
            continue
        event = json.loads(value)
        before, after = event["before"], event["after"]
        key = (after or before)["id"]
        if rows.get(key) != before:
            raise DemoFailed(f"Order {key}: an event says it was {before}, it was {rows.get(key)}.")
        if after is None:
            del rows[key]
        else:
            rows[key] = after
    return rows


def final_rows(path: Path) -> dict[int, Row]:
    """The Delta table as its shop left it."""
    rows = (json.loads(line) for line in path.read_text().splitlines())
    return {row["id"]: row for row in rows}


def read_kafka(bootstrap_servers: str, topic: str) -> Iterator[bytes | None]:
    """All values of the Kafka topic, with an ordinary consumer."""
    from confluent_kafka import Consumer, TopicPartition

    settings = {"bootstrap.servers": bootstrap_servers, "group.id": f"{topic}-proof"}
    consumer = Consumer({**settings, "enable.auto.commit": False})
    try:
        places = [TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)]
        left = sum(
            consumer.get_watermark_offsets(place, timeout=_SILENCE_SECONDS)[1] for place in places
        )
        consumer.assign(places)
        while left > 0:
            records = consumer.consume(min(left, 10_000), _SILENCE_SECONDS)
            if not records:
                raise DemoFailed(f"Kafka has {left:,} more records and gives none.")
            for record in records:
                if record.error() is not None:
                    raise DemoFailed(f"Kafka cannot be read: {record.error()}.")
                value = record.value()
                yield value.encode() if isinstance(value, str) else value
            left -= len(records)
    finally:
        consumer.close()
