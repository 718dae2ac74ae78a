"""Whether a Kafka topic can hold what a topic of the log has, and what it takes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from duolog.bridge.kafka.mirror.pieces import Limits
from duolog.errors import KafkaTopicUnfit
from duolog.log.model import Topic

ANY_TIME: Final = 2**63 - 1  # Kafka's own word for it
_HEADERS_AND_FRAME_BYTES: Final = 64 << 10


def wanted_settings(max_record_bytes: int, extra: Mapping[str, str]) -> dict[str, str]:
    """The settings of a Kafka topic that is made for a mirror.

    Records keep their own times, whatever these are. Kafka deletes nothing by itself: the log's
    retention moves both ends.
    """
    return {
        "cleanup.policy": "delete",
        "message.timestamp.type": "CreateTime",
        "message.timestamp.before.max.ms": str(ANY_TIME),
        "message.timestamp.after.max.ms": str(ANY_TIME),
        "max.message.bytes": str(max_record_bytes + _HEADERS_AND_FRAME_BYTES),
        "retention.ms": "-1",
        "retention.bytes": "-1",
        **extra,
    }


def limits_of(settings: Mapping[str, str]) -> Limits:
    """What the topic takes."""
    return Limits(
        int(settings.get("max.message.bytes", 1048588)),
        _bounded(settings.get("message.timestamp.after.max.ms")),
        _bounded(settings.get("message.timestamp.before.max.ms")),
    )


def check_fit(kafka_topic: str, settings: Mapping[str, str]) -> None:
    """Refuse a topic that would change or lose what is mirrored."""
    policy = settings.get("cleanup.policy", "delete")
    if "compact" in policy:
        raise KafkaTopicUnfit(
            f"Kafka topic '{kafka_topic}' is compacted (cleanup.policy={policy}): it would lose "
            "records that the log has. Set cleanup.policy=delete, or mirror into another topic."
        )
    if settings.get("message.timestamp.type", "CreateTime") != "CreateTime":
        raise KafkaTopicUnfit(
            f"Kafka topic '{kafka_topic}' replaces the records' times by its own. Set "
            "message.timestamp.type=CreateTime, or mirror into another topic."
        )


def warnings_of(kafka_topic: str, settings: Mapping[str, str]) -> tuple[str, ...]:
    """What is as it may be, and perhaps not as it is meant."""
    found = []
    for name, unlimited in (("retention.ms", "-1"), ("retention.bytes", "-1")):
        value = settings.get(name, unlimited)
        if value != unlimited:
            found.append(
                f"Kafka topic '{kafka_topic}' deletes records by itself ({name}={value}), so it "
                f"may keep fewer than the log. Set {name}={unlimited} to keep the same."
            )
    return tuple(found)


def kafka_name(topic: Topic) -> str:
    """The Kafka topic that a topic is mirrored into."""
    return topic.settings.kafka_topic or topic.name


def check_alone(topic: Topic, topics: Iterable[Topic]) -> None:
    """Refuse a topic whose Kafka topic an older one has."""
    for other in topics:
        if other.id < topic.id and kafka_name(other) == kafka_name(topic):
            raise KafkaTopicUnfit(
                f"Topics '{other.name}' and '{topic.name}' would both be mirrored into Kafka topic "
                f"'{kafka_name(topic)}', and '{other.name}' was there first. Drop one of them, and "
                "create it anew with another kafka_topic."
            )


def check_partitions(log_topic: str, kafka_topic: str, ours: int, theirs: int) -> int:
    """How many partitions Kafka lacks, which are to be added."""
    if theirs > ours:
        raise KafkaTopicUnfit(
            f"Kafka topic '{kafka_topic}' has {theirs} partitions, '{log_topic}' has {ours}: what "
            f"others write into the rest would have no place in the log. Run ALTER TOPIC "
            f"{log_topic} SET PARTITIONS {theirs}; the mirror goes on by itself then."
        )
    return ours - theirs


def _bounded(setting: str | None) -> int | None:
    """A bound in milliseconds; None when there is none."""
    bound = ANY_TIME if setting is None else int(setting)
    return None if bound >= ANY_TIME // 2 else bound
