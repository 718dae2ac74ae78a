"""What is done to a Kafka from outside: records of others, records deleted, files cut."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.cimpl import NewPartitions

from duolog.bridge.kafka.local import LocalKafka
from duolog.bridge.kafka.wire.stored import stored_batches
from tests.support.kafka import DEADLINE_SECONDS, admin_of

_NODE = "1"


def write_as_another(
    bootstrap_servers: str, topic: str, values: Iterable[bytes], partition: int = 0
) -> None:
    """Records of somebody else in our topic."""
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    for value in values:
        producer.produce(topic, value, partition=partition)
    assert producer.flush(DEADLINE_SECONDS) == 0


def delete_records(bootstrap_servers: str, topic: str, partition: int, before: int) -> None:
    """As Kafka's own retention does it, at once."""
    admin = admin_of(bootstrap_servers)  # kept: what it was asked ends with it
    (done,) = admin.delete_records([TopicPartition(topic, partition, before)]).values()
    done.result(DEADLINE_SECONDS)


def add_partitions(bootstrap_servers: str, topic: str, partitions: int) -> None:
    admin = admin_of(bootstrap_servers)
    admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(DEADLINE_SECONDS)


def delete_topic(bootstrap_servers: str, topic: str) -> None:
    admin = admin_of(bootstrap_servers)
    admin.delete_topics([topic])[topic].result(DEADLINE_SECONDS)


def set_topic(bootstrap_servers: str, topic: str, **settings: str) -> None:
    """Change settings of a topic; their names with _ for each point."""
    set_configuration(bootstrap_servers, "TOPIC", topic, settings)


def set_broker(bootstrap_servers: str, **settings: str) -> None:
    """The same of a broker that is alone."""
    set_configuration(bootstrap_servers, "BROKER", _NODE, settings)


def set_configuration(
    bootstrap_servers: str, kind: str, name: str, settings: dict[str, str]
) -> None:
    library: Any = import_module("confluent_kafka.admin")  # has no types
    entries = [
        library.ConfigEntry(
            setting.replace("_", "."),
            value,
            incremental_operation=library.AlterConfigOpType.SET,
        )
        for setting, value in settings.items()
    ]
    resource = library.ConfigResource(kind, name, incremental_configs=entries)
    admin = admin_of(bootstrap_servers)
    admin.incremental_alter_configs([resource])[resource].result(DEADLINE_SECONDS)


def cut_back(broker: LocalKafka, topic: str, partition: int, upto: int) -> int:
    """Let a stopped broker have lost the end of a partition, as when a replica that is behind
    becomes the leader; where it ends now, which is at that offset or before.
    """
    (folder,) = broker.folder.rglob(f"{topic}-{partition}")
    (segment,) = folder.glob("*.log")
    held = segment.read_bytes()
    kept = [batch for batch in stored_batches(held) if batch.next_offset <= upto]
    segment.write_bytes(held[: sum(batch.size for batch in kept)])
    for derived in (*folder.glob("*index"), *folder.glob("*.snapshot")):
        derived.unlink()
    (folder.parent / ".kafka_cleanshutdown").unlink(missing_ok=True)
    return kept[-1].next_offset if kept else 0
