"""Kafka's topics and their settings, through confluent-kafka's admin client. Blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, Final, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewPartitions, NewTopic

from duolog.bridge.kafka.access import Overheard, client_of
from duolog.bridge.kafka.settings import KafkaSettings
from duolog.errors import KafkaRefused, KafkaUnreachable

T = TypeVar("T")

_PATIENCE: Final = 2  # times the request's own timeout: librdkafka retries within its own
_NOT_LET_IN: Final = -169  # librdkafka's own errors are below zero; all but these pass
_INVALID: Final = -186


class KafkaTopics:
    """Makes topics, gives them partitions, deletes their oldest records."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._seconds = settings.request_timeout_seconds
        self._overheard = Overheard()
        options = {**settings.for_confluent(), **self._overheard.options}
        self._admin = client_of(AdminClient, options)

    def make(self, name: str, partitions: int, topic_settings: Mapping[str, str]) -> bool:
        """Make a topic; False when it is there already."""
        wanted = NewTopic(
            name, partitions, self._settings.replication_factor, config=dict(topic_settings)
        )
        try:
            self._one(lambda: self._admin.create_topics([wanted]), f"make the topic '{name}'")
        except KafkaRefused as refused:
            if refused.error != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
            return False
        return True

    def grow(self, name: str, partitions: int) -> None:
        """Give a topic more partitions, so many in all."""
        wanted = NewPartitions(name, partitions)
        what = f"give the topic '{name}' {partitions} partitions"
        self._one(lambda: self._admin.create_partitions([wanted]), what)

    def settings_of(self, name: str) -> dict[str, str]:
        """The settings of a topic as they hold, the broker's own included."""
        resource = ConfigResource(ResourceType.TOPIC, name)
        found = self._one(
            lambda: self._admin.describe_configs([resource]), f"tell the settings of '{name}'"
        )
        return {entry.name: entry.value for entry in found.values() if entry.value is not None}

    def delete_before(self, name: str, partition: int, offset: int) -> None:
        """Delete all records before an offset."""
        place = TopicPartition(name, partition, offset)
        what = f"delete records of '{name}' partition {partition} before {offset}"
        self._one(lambda: self._admin.delete_records([place]), what)

    def _one(self, ask: Callable[[], Mapping[Any, Future[Any]]], what: str) -> Any:
        try:
            (answer,) = ask().values()
            return answer.result(self._seconds * _PATIENCE)
        except KafkaException as error:
            kafka_error: KafkaError = error.args[0]
            if _passes(kafka_error):
                no_entry = self._overheard.why(self._admin)
                if no_entry is not None:
                    raise no_entry from error
                raise KafkaUnreachable(
                    f"The Kafka cluster at {self._settings.bootstrap_servers} did not {what}: "
                    f"{kafka_error.str()}. It is asked again."
                ) from error
            raise KafkaRefused(
                f"Kafka does not {what}: {kafka_error.str()}.", error=kafka_error.code()
            ) from error
        except TimeoutError as error:
            raise KafkaUnreachable(
                f"The Kafka cluster at {self._settings.bootstrap_servers} did not {what} in time. "
                "It is asked again."
            ) from error


def _passes(error: KafkaError) -> bool:
    """Whether it is no answer, or one that will be another soon."""
    code = error.code()
    return bool(error.retriable()) or (code < 0 and code not in {_NOT_LET_IN, _INVALID})
