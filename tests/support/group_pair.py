"""A group of a topic that is in a log and in a real Kafka, looked at and moved on both sides."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from duolog.bridge.kafka.feed.coordinator import GroupCoordinator, KafkaPartition
from duolog.bridge.kafka.feed.filters import GroupFilter
from duolog.bridge.kafka.positions.decisions import Step
from duolog.bridge.kafka.positions.marks import KafkaCommit
from duolog.bridge.kafka.positions.settling import GroupSettling
from duolog.bridge.kafka.settings import KafkaSettings
from duolog.log.embedded import EmbeddedLog
from tests.support.groups import commit, consumer, until
from tests.support.kafka import DEADLINE_SECONDS, Kafka
from tests.support.mirrored import MirroredTopic


class Pair:
    """A topic on both sides, and a group of it."""

    def __init__(self, log: EmbeddedLog, kafka: Kafka) -> None:
        self.log, self.kafka = log, kafka
        self.group = kafka.new_group()
        self.topic = MirroredTopic(log, kafka, "orders")
        self.settings = KafkaSettings.of(kafka.bootstrap_servers)
        self.admin = kafka.admin()
        self.coordinator = GroupCoordinator(self.settings, log.log_id)

    def close(self) -> None:
        self.coordinator.close()

    @contextmanager
    def settling(self, **options: GroupFilter) -> Iterator[GroupSettling]:
        with closing(GroupSettling(self.log, self.settings, **options)) as running:  # type: ignore[arg-type]
            running.start()
            yield running

    @property
    def native(self) -> int | None:
        position = self.log.group_position(self.group, "orders", 0)
        return None if position is None else position.position

    @property
    def in_kafka(self) -> int | None:
        found = self.held
        return None if found is None else found.offset

    @property
    def held(self) -> KafkaCommit | None:
        where = KafkaPartition(self.topic.kafka_topic, 0)
        return self.coordinator.committed(self.group, [where])[where]

    def ack(self, upto: int) -> None:
        self.log.ack(self.group, "orders", upto)

    def commit(self, offset: int, metadata: str = "") -> None:
        """As a consumer that is no member."""
        with consumer(self.kafka, self.group) as reader:
            reader.assign([TopicPartition(self.topic.kafka_topic, 0, 0)])
            commit(reader, self.topic.kafka_topic, offset, metadata=metadata)

    def reset_in_kafka(self, offset: int) -> None:
        """As Kafka's own tool does it."""
        wanted = [TopicPartition(self.topic.kafka_topic, 0, offset)]
        asked = [ConsumerGroupTopicPartitions(self.group, wanted)]
        (done,) = self.admin.alter_consumer_group_offsets(asked).values()
        assert all(each.error is None for each in done.result(DEADLINE_SECONDS).topic_partitions)

    def comes_to(self, native: int | None, in_kafka: int | None) -> None:
        until(
            lambda: (self.native, self.in_kafka) == (native, in_kafka),
            f"come to {native} and {in_kafka}",
        )

    def step(self, running: GroupSettling) -> Step | None:
        steps = [e.step for e in running.status().pending if e.group == self.group]
        return steps[0] if steps else None
