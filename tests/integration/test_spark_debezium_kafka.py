"""Debezium's JSON out of a real Kafka topic, by Spark's own Kafka source, into a log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import duolog
from bench.spark_session import kafka_jars
from duolog.log.model import Envelope, Op, Route, TopicSettings
from tests.integration.test_spark_debezium import TABLE, Row, events_by_key, history, names, options
from tests.support.kafka import DEADLINE_SECONDS, Kafka
from tests.support.spark_doors import DataSourceDoor, Door, FunctionDoor, finish

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAMES = {
    1: [("r", None, "Ann"), ("u", "Ann", "Anna")],
    2: [("r", None, "Bob"), ("d", "Bob", None)],
    3: [("c", None, "Cid"), ("u", None, "Cyd"), ("d", "Cyd", None)],
    30: [("c", None, "Cyd")],
}


def keyed(events: list[Row | None]) -> list[tuple[bytes, bytes | None]]:
    """With the message keys of Debezium: a tombstone has that of the delete before it."""
    found: list[tuple[bytes, bytes | None]] = []
    for event in events:
        if event is None:
            found.append((found[-1][0], None))
            continue
        row = event["payload"]["after"] or event["payload"]["before"]
        found.append((json.dumps({"id": row["id"]}).encode(), json.dumps(event).encode()))
    return found


def produce(kafka: Kafka, topic: str, events: list[Row | None]) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for key, value in keyed(events):
        producer.produce(topic, value, key)
    assert producer.flush(DEADLINE_SECONDS) == 0


@pytest.fixture(scope="module")
def with_kafka(spark: SparkSession) -> SparkSession:
    """A session that reads Kafka."""
    session = spark.newSession()
    for jar in kafka_jars():
        session.sql(f"ADD JAR '{jar}'")
    return session


@pytest.fixture
def path(tmp_path: Path) -> str:
    folder = tmp_path / "shop.log"
    with duolog.open_log(folder) as log:
        log.create_topic("customers", TopicSettings(partitions=2, envelope=Envelope.DEBEZIUM))
        log.add_route("customers", Route(TABLE, frozenset({Op.INSERT, Op.UPDATE, Op.DELETE})))
    return str(folder)


@pytest.mark.parametrize("door", [FunctionDoor(), DataSourceDoor()], ids=["function", "source"])
def test_a_topic_of_debezium_is_followed_and_each_event_is_written_once(
    with_kafka: SparkSession, kafka: Kafka, door: Door, path: str, tmp_path: Path
) -> None:
    topic = kafka.new_topic(partitions=3)
    # A key that changes is told as Debezium does it: a delete, a tombstone, an insert.
    events = history(with_schema=True)[:-1]

    def rows() -> DataFrame:
        where: dict[str, Any] = {
            "kafka.bootstrap.servers": kafka.bootstrap_servers,
            "subscribe": topic,
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": 4,
        }
        return with_kafka.readStream.format("kafka").options(**where).load()

    def run() -> None:
        finish(door.start(rows(), tmp_path / "c", **options(path, queryName="from-kafka")))

    produce(kafka, topic, events[:6])
    run()
    assert names(events_by_key(path))[1] == NAMES[1]
    produce(kafka, topic, events[6:])
    run()
    found = events_by_key(path)
    assert names(found) == NAMES
    assert [key for key, told in found.items() if told[-1] is None] == [2, 3]
