"""One topic on both sides: that Kafka has it, that it is the same one, and what it takes."""

from __future__ import annotations

import asyncio
from typing import Final
from uuid import UUID

from duolog.bridge.kafka.mirror.fitness import (
    check_alone,
    check_fit,
    check_partitions,
    kafka_name,
    limits_of,
    wanted_settings,
    warnings_of,
)
from duolog.bridge.kafka.mirror.pieces import Limits
from duolog.bridge.kafka.mirror.port import topic_id_text
from duolog.bridge.kafka.mirror.reactions import halted_by, topic_missing, topic_recreated
from duolog.bridge.kafka.mirror.shared import Shared
from duolog.bridge.kafka.wire.requests import Place, TopicMetadata
from duolog.errors import KafkaUnreachable
from duolog.log.model import Topic

_UNKNOWN: Final = 3
_NOT_ALLOWED: Final = 29
_SEEN_WITHIN_SECONDS: Final = 30.0
_ASK_AGAIN_SECONDS: Final = 0.05


class TopicSide:
    """What is known of a Kafka topic, for all partitions of a topic of the log."""

    def __init__(self, topic: Topic, shared: Shared) -> None:
        self.topic = topic
        self.kafka_topic = kafka_name(topic)
        self._shared = shared
        self._one_looks = asyncio.Lock()
        self._topic_id: UUID | None = None
        self._warned: tuple[str, ...] = ()
        self.limits = Limits(1 << 20)
        self.looks = 0

    def place(self, partition: int) -> Place:
        assert self._topic_id is not None  # noqa: S101 - after `look`
        return Place(self.kafka_topic, self._topic_id, partition)

    @property
    def topic_id(self) -> str:
        """In Kafka's own words."""
        return topic_id_text(self.place(0).topic_id)

    async def look(self, seen: int) -> None:
        """Look at Kafka's topic, unless another partition has since the look that was seen.

        Makes it where it was never mirrored into. Raises MirrorHalted when it is not what it was.
        """
        async with self._one_looks:
            if seen == self.looks:
                await self._look()
                self.looks += 1

    async def _look(self) -> None:
        check_alone(self.topic, await self._shared.in_thread(self._shared.log.topics))
        stored = await self._shared.in_thread(self._shared.log.mirrors, self.topic.id)
        known = {
            mirror.target.kafka_topic_id
            for mirror in stored
            if mirror.target.cluster_id == self._shared.producer.cluster_id
            and mirror.target.kafka_topic == self.kafka_topic
        }
        found = await self._find()
        if found is None:
            if known:
                raise topic_missing(self.topic.name, self.kafka_topic)
            found = await self._make()
        now = topic_id_text(found.topic_id)
        if known and now not in known:
            raise topic_recreated(self.topic.name, self.kafka_topic, min(known), now)
        names = self.topic.name, self.kafka_topic
        if check_partitions(*names, self.topic.partitions, len(found.leaders)):
            grow = self._shared.topics.grow
            await self._shared.in_asking_thread(grow, self.kafka_topic, self.topic.partitions)
            found = await self._until_there(self.topic.partitions)
        settings = await self._shared.in_asking_thread(
            self._shared.topics.settings_of, self.kafka_topic
        )
        check_fit(self.kafka_topic, settings)
        self.limits = limits_of(settings)
        self._topic_id = found.topic_id
        self._warn(warnings_of(self.kafka_topic, settings))

    async def _find(self) -> TopicMetadata | None:
        seen = await self._shared.port.look((self.kafka_topic,))
        found = seen.topics[self.kafka_topic]
        if found.error == _UNKNOWN:
            return None
        if found.error == _NOT_ALLOWED:
            raise halted_by(found.error, self.kafka_topic, 0, None)
        if found.error:
            raise KafkaUnreachable(
                f"Kafka topic '{self.kafka_topic}' cannot be used now (error {found.error})."
            )
        return found

    async def _make(self) -> TopicMetadata:
        settings = wanted_settings(
            self._shared.log.max_record_bytes, self._shared.settings.topic_settings
        )
        make = self._shared.topics.make
        made = await self._shared.in_asking_thread(
            make, self.kafka_topic, self.topic.partitions, settings
        )
        if not made:  # somebody else was quicker
            return await self._until_there(1)
        self._shared.say("mirror.topic_made", topic=self.topic.name, kafka_topic=self.kafka_topic)
        found = await self._until_there(1)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _SEEN_WITHIN_SECONDS
        while loop.time() < deadline:  # brokers learn of a topic before they learn its settings
            held = await self._shared.in_asking_thread(
                self._shared.topics.settings_of, self.kafka_topic
            )
            if all(held.get(name) == value for name, value in settings.items()):
                break
            await asyncio.sleep(_ASK_AGAIN_SECONDS)
        return found

    async def _until_there(self, partitions: int) -> TopicMetadata:
        """What was just made is known to all brokers a moment later."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _SEEN_WITHIN_SECONDS
        while True:
            found = await self._find()
            if found is not None and len(found.leaders) >= partitions:
                return found
            if loop.time() > deadline:
                raise KafkaUnreachable(
                    f"Kafka topic '{self.kafka_topic}' was made and is not there after "
                    f"{_SEEN_WITHIN_SECONDS:g} s. Look at the cluster's controllers."
                )
            await asyncio.sleep(_ASK_AGAIN_SECONDS)

    def _warn(self, warnings: tuple[str, ...]) -> None:
        for said in warnings:
            if said not in self._warned:
                self._shared.say("mirror.warning", topic=self.topic.name, said=said)
        self._warned = warnings
