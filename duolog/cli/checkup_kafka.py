"""What `duolog doctor` looks at: a Kafka cluster, whether it can be mirrored into, and by whom."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from duolog.cli.checkup import Finding, Status
from duolog.errors import DuologError, KafkaTopicUnfit

if TYPE_CHECKING:
    from duolog.bridge.kafka.settings import KafkaSettings
    from duolog.log.model import Topic

_SECONDS = 10.0
_SLOW_MS = 500
_OFFSETS_TOPIC = "__consumer_offsets"
_NEEDED_ON_TOPICS = {
    "READ": "audit and recovery",
    "WRITE": "the mirror",
    "DESCRIBE": "the mirror",
    "DESCRIBE_CONFIGS": "the mirror",
}
_WANTED_ON_TOPICS = {
    "ALTER": "more partitions",
    "DELETE": "retention on both sides",
}


@dataclass(frozen=True, slots=True)
class SeenTopic:
    """A topic of the cluster, and what may be done with it; None where Kafka does not say."""

    name: str
    operations: frozenset[str] | None
    settings: dict[str, str] = field(default_factory=dict)


def kafka(settings: KafkaSettings, topics: Iterable[Topic] = ()) -> Iterator[Finding]:
    """Whether it answers and is new enough; what one may do there; whether topics fit."""
    from duolog.bridge.kafka.mirror.fitness import kafka_name

    try:
        took_ms, brokers, cluster_id = asyncio.run(_ask(settings))
    except ModuleNotFoundError as error:
        advice = "pip install 'duolog[kafka]'"
        yield Finding("kafka", Status.ERROR, f"{error.name} is not installed", advice)
        return
    except (DuologError, TimeoutError) as error:
        said = str(error) or f"no answer within {_SECONDS:g} s"
        yield Finding("kafka", Status.ERROR, f"{settings.bootstrap_servers}: {said}")
        return
    yield _reached(settings.bootstrap_servers, took_ms, brokers, cluster_id)
    wanted = {kafka_name(topic) for topic in topics}
    try:
        operations, seen = _rights(settings, wanted | {_OFFSETS_TOPIC})
    except Exception as error:  # noqa: BLE001 - confluent's, or a time-out: told as it is
        yield Finding(
            "rights",
            Status.WARNING,
            f"cannot be asked for: {error}",
            "The user needs Describe on the cluster to be told.",
        )
        return
    known = {each.name for each in seen}
    yield from judged_rights(operations, seen, missing=sorted(wanted - known))
    for each in seen:
        if each.name in wanted:
            yield from judged_topic(each)


def _reached(servers: str, took_ms: float, brokers: int, cluster_id: str) -> Finding:
    found = f"{servers}: {brokers} broker{'s' * (brokers != 1)}, {took_ms:.0f} ms ({cluster_id})"
    if took_ms > _SLOW_MS:
        return Finding(
            "kafka", Status.WARNING, found, "Slow to answer. The mirror will be as far behind."
        )
    return Finding("kafka", Status.OK, found)


async def _ask(settings: KafkaSettings) -> tuple[float, int, str]:
    """The mirror's own way to the brokers, by a request that only new enough ones know."""
    from duolog.bridge.kafka.feed.offset_requests import FindCoordinator
    from duolog.bridge.kafka.mirror.connections import Connections

    connections = Connections(settings)
    try:
        async with asyncio.timeout(_SECONDS):
            seen = await connections.look(())
            began = time.perf_counter()
            await connections.send_to_any(FindCoordinator("duolog-doctor"))
            took_ms = (time.perf_counter() - began) * 1000
        return took_ms, len(seen.brokers), seen.cluster_id
    finally:
        await connections.close()


def _rights(
    settings: KafkaSettings, names: set[str]
) -> tuple[frozenset[str] | None, list[SeenTopic]]:
    from confluent_kafka import TopicCollection
    from confluent_kafka.admin import AdminClient

    from duolog.bridge.kafka.mirror.topics import KafkaTopics

    options: dict[str, Any] = {**settings.for_confluent(), "log_level": 0}
    admin = AdminClient(options)
    told = {"include_authorized_operations": True, "request_timeout": _SECONDS}
    cluster = admin.describe_cluster(**told).result(_SECONDS)
    asked = admin.describe_topics(TopicCollection(sorted(names)), **told)
    seen = []
    for name, answer in asked.items():
        if answer.exception(_SECONDS) is None:
            held = {}
            if name != _OFFSETS_TOPIC:
                held = KafkaTopics(settings).settings_of(name)
            seen.append(SeenTopic(name, _names(answer.result().authorized_operations), held))
    return _names(cluster.authorized_operations), seen


def _names(operations: Any) -> frozenset[str] | None:
    return None if operations is None else frozenset(each.name for each in operations)


def judged_rights(
    cluster: frozenset[str] | None, topics: Iterable[SeenTopic], missing: list[str]
) -> Iterator[Finding]:
    """What the user lacks, and for what. Pure."""
    lacking = []
    if cluster is None:
        yield Finding("rights", Status.WARNING, "Kafka does not say what the user may do", None)
        return
    if "CREATE" not in cluster:
        what = f"topics {', '.join(missing)}" if missing else "topics that are new"
        yield Finding(
            "rights",
            Status.ERROR if missing else Status.WARNING,
            f"the user may not make {what}",
            "Allow Create on the cluster or on these names, or make them first.",
        )
    for topic in topics:
        if topic.operations is None:
            continue
        if topic.name == _OFFSETS_TOPIC:
            if "READ" not in topic.operations:
                yield Finding(
                    "rights",
                    Status.WARNING,
                    f"the user may not read {_OFFSETS_TOPIC}",
                    "Groups are asked for once a second then, instead of being noticed at once. "
                    "Allow Read on it.",
                )
            continue
        for needed, status in (
            (_NEEDED_ON_TOPICS, Status.ERROR),
            (_WANTED_ON_TOPICS, Status.WARNING),
        ):
            lacks = [
                f"{name} ({why})" for name, why in needed.items() if name not in topic.operations
            ]
            if lacks:
                lacking.append(topic.name)
                yield Finding(
                    "rights",
                    status,
                    f"on topic '{topic.name}' the user lacks {', '.join(lacks)}",
                    "Allow it with kafka-acls.",
                )
    if not lacking and "CREATE" in cluster:
        yield Finding("rights", Status.OK, "the user may do what the mirror needs")


def judged_topic(topic: SeenTopic) -> Iterator[Finding]:
    """Whether a Kafka topic can hold what is mirrored into it. Pure."""
    from duolog.bridge.kafka.mirror.fitness import check_fit, warnings_of

    try:
        check_fit(topic.name, topic.settings)
    except KafkaTopicUnfit as error:
        yield Finding("topic", Status.ERROR, str(error))
        return
    for said in warnings_of(topic.name, topic.settings):
        yield Finding("topic", Status.WARNING, said)
