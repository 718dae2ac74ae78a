"""How fast records arrive in a Kafka topic, seen from outside: one measure for all who write."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from bench.mirror_processes import Writing
from bench.mirror_records import PARTITIONS

if TYPE_CHECKING:
    from confluent_kafka import Consumer

_LOOK_EVERY_SECONDS = 0.02
_ANSWERS_WITHIN_SECONDS = 10
_PATIENCE_SECONDS = 120
_WARM_SHARE = 0.25  # of the records, until which nothing is measured


class NothingArrives(Exception):
    """The records did not arrive in time."""


class Arrived(NamedTuple):
    """How fast they came once it was warm, and the most memory that the writer had."""

    per_second: float
    peak_bytes: int


def arrival(bootstrap_servers: str, topic: str, records: int, writing: Writing) -> Arrived:
    """Wait until all records are in Kafka."""
    from confluent_kafka import Consumer

    consumer = Consumer(
        {"bootstrap.servers": bootstrap_servers, "group.id": "bench", "log_level": 0}
    )
    warm: tuple[float, int] | None = None
    peak = 0
    until = time.monotonic() + _PATIENCE_SECONDS
    try:
        while time.monotonic() < until:
            writing.check()
            peak = max(peak, writing.rss_bytes())
            there, now = _records_in(consumer, topic), time.perf_counter()
            if warm is None and there >= _WARM_SHARE * records:
                warm = now, there
            if there >= records and warm is not None:
                began, before = warm
                took = max(now - began, _LOOK_EVERY_SECONDS)
                return Arrived(max(1, there - before) / took, peak)
            time.sleep(_LOOK_EVERY_SECONDS)
    finally:
        consumer.close()
    raise NothingArrives(f"{topic} has not got its {records:,} records in {_PATIENCE_SECONDS} s.")


def _records_in(consumer: Consumer, topic: str) -> int:
    """The ends of all partitions together; none while the topic is not there."""
    from confluent_kafka import KafkaException, TopicPartition

    try:
        return sum(
            consumer.get_watermark_offsets(
                TopicPartition(topic, partition), _ANSWERS_WITHIN_SECONDS
            )[1]
            for partition in range(PARTITIONS)
        )
    except KafkaException:
        return 0
