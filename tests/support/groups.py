"""Consumers of a real Kafka, and waiting for what is told of their groups."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from duolog.bridge.kafka.feed.hints import Hint, Hints
from tests.support.kafka import Kafka

DEADLINE_SECONDS = 30.0
SESSION_MILLISECONDS = 6000  # the least that a broker takes
PROTOCOLS: dict[str, dict[str, str]] = {
    "classic": {},
    "consumer": {"group.protocol": "consumer"},
    "static": {
        "group.instance.id": "the-one",
        "session.timeout.ms": str(SESSION_MILLISECONDS),
        "heartbeat.interval.ms": "1000",
    },
}


def fill(kafka: Kafka, topic: str, count: int, partition: int = 0) -> None:
    """Records 0 to count - 1."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": "5"})
    for number in range(count):
        producer.produce(topic, str(number).encode(), partition=partition)
    assert producer.flush(DEADLINE_SECONDS) == 0


@contextmanager
def consumer(kafka: Kafka, group: str, **settings: Any) -> Iterator[Consumer]:
    """A consumer that commits only when told; closed at the end."""
    made = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            **settings,
        }
    )
    try:
        yield made
    finally:
        made.close()


@contextmanager
def member(kafka: Kafka, group: str, topic: str, protocol: str = "classic") -> Iterator[Consumer]:
    """A consumer that is a member of its group, and has been given partitions."""
    with consumer(kafka, group, **PROTOCOLS[protocol]) as made:
        made.subscribe([topic])
        until(lambda: made.poll(0.05) is not None or bool(made.assignment()), "join the group")
        yield made


def commit(made: Consumer, topic: str, offset: int, partition: int = 0, metadata: str = "") -> None:
    """Commit, and be sure of it."""
    wanted = TopicPartition(topic, partition, offset, metadata)
    (done,) = made.commit(offsets=[wanted], asynchronous=False) or []
    assert done.error is None, done.error


def until(reached: Callable[[], bool], what: str, seconds: float = DEADLINE_SECONDS) -> None:
    """Ask again and again, up to a deadline."""
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline, f"did not {what} within {seconds} s"


def told(hints: Hints, wanted: Callable[[Hint], bool]) -> list[Hint]:
    """All hints up to and with the first that is wanted."""
    seen: list[Hint] = []
    until(lambda: _taken(hints, seen, wanted), "tell of it")
    return seen


def _taken(hints: Hints, seen: list[Hint], wanted: Callable[[Hint], bool]) -> bool:
    found: Sequence[Hint] = hints.poll(0.2)
    seen.extend(found)
    return any(wanted(each) for each in found)
