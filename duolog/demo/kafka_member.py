"""An ordinary Kafka consumer, as any application has one. Knows nothing of Duolog.

python -m duolog.demo.kafka_member BOOTSTRAP_SERVERS TOPIC GROUP LEDGER
"""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message

from duolog import output
from duolog.demo.ledger import Ledger

_AT_ONCE: Final = 500
_WAIT_SECONDS: Final = 0.2
_SESSION_MS: Final = 6000  # so that the others need not wait long for one that was killed
_AGAIN: Final = frozenset(
    {KafkaError.REBALANCE_IN_PROGRESS, KafkaError.COORDINATOR_LOAD_IN_PROGRESS}
)


def main(bootstrap_servers: str, topic: str, group: str, ledger_path: Path) -> None:
    """Read, do, commit, until SIGTERM."""
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": _SESSION_MS,
            "topic.metadata.refresh.interval.ms": 1000,
        }
    )
    consumer.subscribe([topic])
    try:
        with Ledger(ledger_path) as ledger:
            while not stopping.is_set():
                records = [m for m in consumer.consume(_AT_ONCE, _WAIT_SECONDS) if not m.error()]
                if records:
                    ledger.note(_place(record) for record in records)
                    _commit(consumer)
    finally:
        consumer.close()


def _place(record: Message) -> tuple[int, int]:
    partition, offset = record.partition(), record.offset()
    assert partition is not None  # noqa: S101 - a record has both
    assert offset is not None  # noqa: S101
    return partition, offset


def _commit(consumer: Consumer) -> None:
    try:
        consumer.commit(asynchronous=False)
    except KafkaException as failure:
        error: KafkaError = failure.args[0]
        if error.code() not in _AGAIN and not error.retriable():
            output.note(f"not committed: {error.str()}")


if __name__ == "__main__":
    _, servers, topic, group, ledger = sys.argv
    main(servers, topic, group, Path(ledger))
