"""A log and its mirror in a real Kafka, made by hand: the runs are what the test says.

The product's mirror is not used, so that what judges it is tried without it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from duolog import open_log
from duolog.log.mirror_model import MirrorChange, MirrorTarget, Run, Skip
from duolog.log.model import Record, TopicSettings
from tests.support.kafka import DEADLINE_SECONDS, Kafka

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

TOPIC = "shop"
COORDINATOR_NOT_READY = {14, 15, 16}  # Kafka's numbers: it loads, there is none yet, another one
GROUP = "billing"


def records(count: int, partition: int = 0) -> list[Record]:
    """With and without keys, values and headers."""
    return [
        Record(
            key=None if at % 5 == 0 else b"key-%d" % at,
            value=None if at % 7 == 0 else b"value-%d-%d" % (partition, at),
            headers=(("trace", b"%d" % at), ("empty", None)) if at % 3 == 0 else (),
            ts_ms=1_700_000_000_000 + at,
            partition=partition,
        )
        for at in range(count)
    ]


@dataclass(frozen=True, slots=True)
class InKafka:
    """One record for Kafka, as it is sent there."""

    partition: int
    ts_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()

    @classmethod
    def of(cls, record: Record, partition: int) -> InKafka:
        assert record.ts_ms is not None
        return cls(partition, record.ts_ms, record.key, record.value, tuple(record.headers))


class Audited:
    """A topic of the log with a topic of its own in Kafka."""

    def __init__(self, folder: Path, kafka: Kafka, partitions: int = 2) -> None:
        self.kafka = kafka
        self.log = open_log(folder, create=True)
        self.log.create_topic(TOPIC, TopicSettings(partitions=partitions))
        self.kafka_topic = kafka.new_topic(partitions)
        self.admin = kafka.admin()  # kept: what it was asked ends with it

    def publish(self, per_partition: Sequence[Sequence[Record]]) -> None:
        """Into the log alone."""
        for these in per_partition:
            if these:
                self.log.publish(TOPIC, list(these))

    def send(self, sent: Iterable[InKafka]) -> None:
        """Into Kafka alone, in this order."""
        from confluent_kafka import Producer

        producer = Producer(
            {"bootstrap.servers": self.kafka.bootstrap_servers, "enable.idempotence": True}
        )
        for each in sent:
            producer.produce(
                self.kafka_topic,
                value=each.value,
                key=each.key,
                partition=each.partition,
                timestamp=each.ts_ms,
                headers=list(each.headers) or None,
            )
        assert producer.flush(DEADLINE_SECONDS) == 0

    def remember(
        self,
        partition: int,
        runs: Sequence[Run],
        skips: Sequence[Skip] = (),
        *,
        topic_id: str | None = None,
        begin: tuple[int, int] = (0, 0),
    ) -> None:
        """What the log is to remember of the partition's mirror."""
        named = self.topic_id() if topic_id is None else topic_id
        target = MirrorTarget("cluster", self.kafka_topic, named, 1, 0, *begin)
        version = self.log.begin_mirror(TOPIC, partition, target).version
        change = MirrorChange(version, 0, 0, tuple(runs), tuple(skips))
        self.log.change_mirror(TOPIC, partition, change)

    def topic_id(self) -> str:
        """Kafka's id of the topic, as Kafka writes it; librdkafka's text has another alphabet."""
        from confluent_kafka import TopicCollection

        asked = self.admin.describe_topics(TopicCollection([self.kafka_topic]))
        described = asked[self.kafka_topic].result(DEADLINE_SECONDS)
        return str(described.topic_id).translate(str.maketrans("+/", "-_")).rstrip("=")

    def commit(self, group: str, partition: int, offset: int) -> None:
        """Kafka's position of a group without members."""
        from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

        place = TopicPartition(self.kafka_topic, partition, offset)

        def once() -> KafkaError | None:
            asked = self.admin.alter_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(group, [place])]
            )
            (result,) = asked[group].result(DEADLINE_SECONDS).topic_partitions
            error: KafkaError | None = result.error
            return error

        _accepted(once)

    def forget_group(self, group: str) -> None:
        """Kafka's side of it, if there is any."""
        from confluent_kafka import KafkaError

        def once() -> KafkaError | None:
            (asked,) = self.admin.delete_consumer_groups([group]).values()
            failure = asked.exception(DEADLINE_SECONDS)
            error: KafkaError | None = None if failure is None else failure.args[0]
            is_gone = error is not None and error.code() == KafkaError.GROUP_ID_NOT_FOUND
            return None if is_gone else error

        _accepted(once)


def _accepted(once: Callable[[], KafkaError | None]) -> None:
    """Ask until Kafka takes it; a coordinator that has only just begun does not."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while (error := once()) is not None:
        assert error.code() in COORDINATOR_NOT_READY, error
        assert time.monotonic() < deadline, error
        time.sleep(0.1)
