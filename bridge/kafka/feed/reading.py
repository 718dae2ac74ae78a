"""Group changes as they are made, from `__consumer_offsets`.

Read uncommitted: a transaction that somebody keeps open would hold back all groups of its
partition. So what is told may be taken back, and is only a hint.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from duolog.bridge.kafka.access import Overheard, client_of, reached
from duolog.bridge.kafka.feed.hints import Hint
from duolog.bridge.kafka.feed.records import parse_change
from duolog.errors import KafkaFeedForbidden, KafkaRefused, KafkaUnreachable

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError

FEED_TOPIC: Final = "__consumer_offsets"
_AT_ONCE: Final = 1000
_ASK_AGAIN_SECONDS: Final = 0.1
_READING: Final = {
    "group.id": "duolog-feed",  # never joined, never committed: the client wants one
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "isolation.level": "read_uncommitted",
    "auto.offset.reset": "earliest",
}


class GroupFeed:
    """Reads along from where the feed ends, or from offsets that were kept."""

    def __init__(
        self,
        settings: Mapping[str, str],
        *,
        first_offsets: Mapping[str, int] | None = None,
        timeout_seconds: float = 30.0,
    ) -> None:
        """Begin. `first_offsets`: for some groups, from where on their commits are wanted."""
        from confluent_kafka import Consumer

        self._overheard = Overheard()
        self._consumer: Consumer = client_of(
            Consumer, {**settings, **_READING, **self._overheard.options}
        )
        self._timeout_seconds = timeout_seconds
        try:
            reached(self._consumer, self._overheard, timeout_seconds)
            self._next = self._ends()
            for group, offset in (first_offsets or {}).items():
                partition = self._partition_of(group)
                self._next[partition] = min(self._next[partition], offset)
            self._assign()
        except BaseException:
            self._consumer.close()
            raise

    def poll(self, timeout_seconds: float) -> Sequence[Hint]:
        from confluent_kafka import KafkaException

        hints = []
        try:
            messages = self._consumer.consume(1, timeout_seconds)
            if messages:
                messages += self._consumer.consume(_AT_ONCE, 0)
        except KafkaException as failure:
            raise _named(failure.args[0]) from failure
        for message in messages:
            error = message.error()
            if error is not None:
                raise _named(error)
            partition, offset = message.partition(), message.offset()
            if partition is None or offset is None:
                continue
            self._next[partition] = offset + 1
            key, value = message.key(), message.value()
            change = parse_change(_bytes(key), _bytes(value))
            if change is not None:
                hints.append(Hint(change, offset))
        return hints

    def feed_offset(self, group: str) -> int | None:
        return self._next[self._partition_of(group)]

    def feed_end(self, group: str) -> int | None:
        return self._end(self._partition_of(group))

    def close(self) -> None:
        self._consumer.close()

    def _end(self, partition: int) -> int:
        from confluent_kafka import TopicPartition

        place, wait = TopicPartition(FEED_TOPIC, partition), self._timeout_seconds
        return int(self._consumer.get_watermark_offsets(place, timeout=wait)[1])

    def _partition_of(self, group: str) -> int:
        return java_hash(group) % len(self._next)

    def _ends(self) -> dict[int, int]:
        """Where each partition ends; waits until Kafka has made the topic, which a group does."""
        from confluent_kafka import KafkaException

        deadline = time.monotonic() + self._timeout_seconds
        while True:
            try:
                topic = self._consumer.list_topics(FEED_TOPIC, timeout=self._timeout_seconds)
                found = topic.topics[FEED_TOPIC]
                if found.error is not None and not _not_yet(found.error):
                    raise _named(found.error)
                if found.error is None and found.partitions:
                    return {partition: self._end(partition) for partition in found.partitions}
            except KafkaException as failure:
                if not _not_yet(failure.args[0]):
                    raise _named(failure.args[0]) from failure
            if time.monotonic() > deadline:
                raise KafkaUnreachable(
                    f"Kafka has no topic {FEED_TOPIC} after {self._timeout_seconds:.0f} s. It makes"
                    " it for the first group: look at the broker's log."
                )
            time.sleep(_ASK_AGAIN_SECONDS)

    def _assign(self) -> None:
        from confluent_kafka import TopicPartition

        self._consumer.assign(
            [TopicPartition(FEED_TOPIC, *place) for place in sorted(self._next.items())]
        )


def java_hash(text: str) -> int:
    """As Kafka places groups: Java's hash of a text, without its sign; the lowest one is 0."""
    number = 0
    units = text.encode("utf-16-be")
    for at in range(0, len(units), 2):
        number = (31 * number + int.from_bytes(units[at : at + 2], "big")) & 0xFFFFFFFF
    signed = number - (1 << 32) if number >= 1 << 31 else number
    return 0 if signed == -(1 << 31) else abs(signed)


def _bytes(given: bytes | str | None) -> bytes | None:
    return given.encode() if isinstance(given, str) else given


def _not_yet(error: KafkaError) -> bool:
    from confluent_kafka import KafkaError

    return error.code() in {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001  # librdkafka's own errors are named so
        KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
    }


def _named(error: KafkaError) -> KafkaFeedForbidden | KafkaRefused:
    from confluent_kafka import KafkaError

    if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        return KafkaFeedForbidden(
            f"Kafka does not let this user read {FEED_TOPIC}. Allow it (Describe and Read on that "
            "topic), or go on with groups being asked for once a second."
        )
    return KafkaRefused(f"Reading {FEED_TOPIC} failed: {error.str()}.", error=error.code())
