"""The Kafka topics that a log is restored from."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from duolog.bridge.kafka.mirror.fitness import check_fit
from duolog.bridge.kafka.mirror.port import KafkaPort, topic_id_text
from duolog.bridge.kafka.mirror.topics import KafkaTopics
from duolog.bridge.kafka.settings import KafkaSettings
from duolog.errors import InvalidRequest, KafkaUnreachable, NotFound
from duolog.log.mirror_model import MirrorProducer

_INTERNAL: Final = "__"


@dataclass(frozen=True, slots=True)
class Source:
    """One topic in Kafka, and how it is named in the log."""

    kafka_topic: str
    kafka_topic_id: str
    name: str
    partitions: int


@dataclass(frozen=True, slots=True)
class Cluster:
    """What is restored from, and the producer id that the new log has there."""

    cluster_id: str
    producer: MirrorProducer
    sources: tuple[Source, ...]


def names_of(wanted: Sequence[str], there: Sequence[str]) -> dict[str, str]:
    """The topics of Kafka that are restored, and their names in the log. Pure.

    `wanted` are names in Kafka, or `KAFKA=NAME`; without any, all but Kafka's own.
    """
    if not wanted:
        found = {name: name for name in sorted(there) if not name.startswith(_INTERNAL)}
        if not found:
            raise NotFound("This Kafka cluster has no topics. Look at --bootstrap-servers.")
        return found
    named: dict[str, str] = {}
    for each in wanted:
        kafka_topic, equals, name = each.partition("=")
        if kafka_topic not in there:
            raise NotFound(
                f"Kafka has no topic '{kafka_topic}', or does not show it. Look at its name, and "
                "at the right to describe it."
            )
        named[kafka_topic] = name if equals else kafka_topic
    if len(set(named.values())) < len(named):
        raise InvalidRequest("Two topics of Kafka would have one name in the log. Name them apart.")
    return named


def find_sources(settings: KafkaSettings, wanted: Sequence[str]) -> Cluster:
    """Look at the cluster, and get a producer id of one's own from it."""
    return asyncio.run(_find(settings, wanted))


async def _find(settings: KafkaSettings, wanted: Sequence[str]) -> Cluster:
    port = KafkaPort(settings)
    try:
        cluster_id = (await port.look(())).cluster_id  # says when nobody answers
        names = names_of(wanted, await asyncio.to_thread(_all_topics, settings))
        seen = await port.look(tuple(names))
        topics = KafkaTopics(settings)
        sources = []
        for kafka_topic, name in names.items():
            found = seen.topics[kafka_topic]
            if found.error:
                raise KafkaUnreachable(
                    f"Kafka topic '{kafka_topic}' cannot be used now (error {found.error})."
                )
            check_fit(kafka_topic, await asyncio.to_thread(topics.settings_of, kafka_topic))
            topic_id = topic_id_text(found.topic_id)
            sources.append(Source(kafka_topic, topic_id, name, len(found.leaders)))
        return Cluster(cluster_id, await port.new_producer(cluster_id), tuple(sources))
    finally:
        await port.close()


def _all_topics(settings: KafkaSettings) -> list[str]:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    options: Mapping[str, Any] = {**settings.for_confluent(), "log_level": 0}
    try:
        listed = AdminClient(dict(options)).list_topics(timeout=settings.request_timeout_seconds)
    except KafkaException as error:
        raise KafkaUnreachable(
            f"The Kafka cluster at {settings.bootstrap_servers} does not name its topics: {error}. "
            "Look at the brokers and at the rights of who asks."
        ) from error
    return [str(name) for name in listed.topics]
