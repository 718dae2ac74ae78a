"""How soon one side sees what was done on the other: records, and positions of groups."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from bench.children import Child
from bench.mirror_records import PARTITIONS

if TYPE_CHECKING:
    from duolog.log.access import LogAccess

_LOOK_EVERY_SECONDS = 0.001
_LONGEST_PAUSE_SECONDS = 0.05
_PATIENCE_SECONDS = 60


class NotSeen(Exception):
    """One side did not get what the other has."""


def record_delays(
    bootstrap_servers: str, topic: str, publisher: Child, records: int, rounds: int
) -> list[list[float]]:
    """Milliseconds until a consumer has a record, for each of them; a round first warms up."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {"bootstrap.servers": bootstrap_servers, "group.id": "bench", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    taken: list[list[float]] = []
    try:
        for _ in range(rounds + 1):
            publisher.tell(records)
            delays: list[float] = []
            while len(delays) < records:
                message = consumer.poll(_PATIENCE_SECONDS)
                now = time.monotonic_ns()
                if message is None or message.error() is not None:
                    raise NotSeen(f"{len(delays)} of {records} records are readable in Kafka.")
                delays.append((now - int(message.value() or b"")) / 1e6)
            publisher.hear()
            taken.append(delays)
    finally:
        consumer.close()
    return taken[1:]


def native_to_kafka(log: LogAccess, bootstrap_servers: str, topic: str, acks: int) -> list[float]:
    """Milliseconds from a native ack until Kafka has it as the group's committed offset."""
    from confluent_kafka import Consumer, TopicPartition

    group, place = "acked-natively", TopicPartition(topic, 0)
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": group})
    try:
        return _delays(
            acks,
            lambda offset: log.ack(group, topic, offset, 0),
            lambda: consumer.committed([place], _PATIENCE_SECONDS)[0].offset,
        )
    finally:
        consumer.close()


def kafka_to_native(
    log: LogAccess, bootstrap_servers: str, topic: str, commits: int
) -> list[float]:
    """Milliseconds from a commit in Kafka until the log has the group's position."""
    from confluent_kafka import Consumer, TopicPartition

    group = "committed-in-kafka"
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": group})

    def commit(offset: int) -> None:
        consumer.commit(offsets=[TopicPartition(topic, 0, offset + 1)], asynchronous=False)

    def position() -> int:
        found = log.group_position(group, topic, 0)
        return 0 if found is None else found.position

    try:
        return _delays(commits, commit, position)
    finally:
        consumer.close()


def _delays(
    count: int, finish: Callable[[int], object], position: Callable[[], int]
) -> list[float]:
    """Finish one record after the other, each when the one before has been seen; one warms up."""
    pauses = random.Random(0)  # so that no clock of the other side is kept time with
    delays: list[float] = []
    for offset in range(count + 1):
        time.sleep(pauses.uniform(0, _LONGEST_PAUSE_SECONDS))
        began = time.perf_counter()
        finish(offset)
        while position() != offset + 1:
            if time.perf_counter() > began + _PATIENCE_SECONDS:
                raise NotSeen(f"The position {offset + 1} has not come over.")
            time.sleep(_LOOK_EVERY_SECONDS)
        delays.append((time.perf_counter() - began) * 1000)
    return delays[1:]
