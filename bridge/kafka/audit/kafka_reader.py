"""Kafka, read in order by a consumer of its own that joins no group and commits nothing."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, cast

from duolog.bridge.kafka.access import Overheard, client_of, reached
from duolog.bridge.kafka.audit.records import KafkaRecords
from duolog.bridge.kafka.audit.stretches import Edges
from duolog.errors import KafkaUnreachable

if TYPE_CHECKING:
    from confluent_kafka import Message

_AT_ONCE = 10_000
_LOOK_SECONDS = 0.2
DEADLINE_SECONDS = 30.0
"""A broker that gives nothing for so long is not waited for any more."""


class KafkaReader:
    """Records of one partition after the other, by ranges of offsets."""

    def __init__(
        self,
        settings: Mapping[str, str],
        *,
        deadline_seconds: float = DEADLINE_SECONDS,
        purpose: str = "audit",
        committed: bool = False,
    ) -> None:
        """`committed`: without what transactions have taken back, or have not ended yet."""
        from confluent_kafka import Consumer

        self._deadline_seconds = deadline_seconds
        self._purpose = purpose
        overheard = Overheard()
        self._consumer = client_of(
            Consumer,
            {
                "fetch.message.max.bytes": 4 << 20,
                "queued.max.messages.kbytes": 64 << 10,
                **settings,
                "group.id": f"duolog-{purpose}",  # asked for, and never joined
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "error",
                "isolation.level": "read_committed" if committed else "read_uncommitted",
                "check.crcs": True,
                "enable.partition.eof": True,
                **overheard.options,
            },
        )
        try:
            reached(self._consumer, overheard, deadline_seconds)
        except BaseException:
            self._consumer.close()
            raise
        self._place: tuple[str, int] | None = None
        self._next_offset = -1
        self._waiting: list[Message] = []  # read, and beyond what was asked for

    def edges(self, topic: str, partition: int) -> Edges:
        """What Kafka keeps of the partition now."""
        from confluent_kafka import KafkaException, TopicPartition

        try:
            answer = self._consumer.get_watermark_offsets(
                TopicPartition(topic, partition), timeout=self._deadline_seconds, cached=False
            )
        except KafkaException as failure:
            raise self._unreachable(topic, partition, failure) from failure
        if answer is None:
            raise self._unreachable(topic, partition, "no answer")
        return Edges(*answer)

    def read(self, topic: str, partition: int, first: int, upto: int) -> KafkaRecords:
        """What lies at these offsets, up to but not including the last.

        What Kafka's retention takes meanwhile is not among it.
        """
        self._go_to(topic, partition, first)
        taken: list[Message] = []
        deadline = time.monotonic() + self._deadline_seconds
        while self._next_offset < upto:
            messages = self._waiting or self._consumer.consume(_AT_ONCE, timeout=_LOOK_SECONDS)
            self._waiting = []
            if messages:
                deadline = time.monotonic() + self._deadline_seconds
            elif time.monotonic() >= deadline:
                raise self._unreachable(
                    topic, partition, f"nothing came from {self._next_offset} on"
                )
            if not self._take(messages, upto, taken):
                break
        return KafkaRecords.of(
            [message.offset() or 0 for message in taken],
            [message.timestamp()[1] for message in taken],
            [message.key() for message in taken],
            [message.value() for message in taken],
            [_headers(message) for message in taken],
        )

    def close(self) -> None:
        self._consumer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _go_to(self, topic: str, partition: int, offset: int) -> None:
        from confluent_kafka import TopicPartition

        if self._place == (topic, partition) and self._next_offset == offset:
            return
        self._waiting = []
        self._consumer.assign([TopicPartition(topic, partition, offset)])
        self._place, self._next_offset = (topic, partition), offset

    def _take(self, messages: list[Message], upto: int, taken: list[Message]) -> bool:
        """Take what belongs to the range; False when the partition ends before its end."""
        from confluent_kafka import KafkaError

        for at, message in enumerate(messages):
            failure = message.error()
            offset = message.offset()
            if failure is not None:
                if failure.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 its public name
                    return False
                if failure.code() == KafkaError._AUTO_OFFSET_RESET:  # noqa: SLF001 the same
                    self._go_on_after_the_start()
                    return True
                raise self._unreachable(message.topic(), message.partition(), failure)
            if offset is None or offset < self._next_offset:
                continue
            if offset >= upto:
                self._waiting = messages[at:]
                self._next_offset = upto
                return True
            taken.append(message)
            self._next_offset = offset + 1
        return True

    def _go_on_after_the_start(self) -> None:
        """Kafka has no such offset: its start has moved on, or its leader has only just begun."""
        if self._place is None:
            return
        topic, partition = self._place
        offset = max(self._next_offset, self.edges(topic, partition).start)
        self._place = None
        self._go_to(topic, partition, offset)

    def _unreachable(self, topic: str | None, partition: int | None, why: Any) -> KafkaUnreachable:
        return KafkaUnreachable(
            f"Partition {partition} of {topic} cannot be read from Kafka: {why}. Look at the "
            f"broker and at the rights of who asks, and start the {self._purpose} again."
        )


def _headers(message: Message) -> list[tuple[str, bytes | None]] | None:
    # A list of pairs, whatever its types say.
    headers: list[tuple[str, bytes | None]] | None = cast("Any", message.headers())
    return headers
