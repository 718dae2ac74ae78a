"""A consumer of Kafka in a process of its own, to be killed. A line on stdin ends its commits.

It says {"read": [[partition, number], ...]} before it commits them, {"acked": [number, ...]} when
that is done, and {"holds": true} once it commits no more.
"""

from __future__ import annotations

import json
import sys
import threading
from typing import Any


def say(what: dict[str, Any]) -> None:
    sys.stdout.write(f"{json.dumps(what)}\n")
    sys.stdout.flush()


def run(topic: str, settings: dict[str, Any]) -> None:
    from confluent_kafka import Consumer, KafkaException

    holds = threading.Event()

    def hear() -> None:
        sys.stdin.readline()
        holds.set()

    threading.Thread(target=hear, daemon=True).start()
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    waiting: list[int] = []
    has_said = False
    while True:
        read: list[tuple[int, int]] = []
        for message in consumer.consume(50, 0.1):
            value = message.value()
            if message.error() is None and value is not None:
                read.append((int(message.partition() or 0), int(value)))
        if read:
            say({"read": read})
        if holds.is_set():
            if not has_said:
                has_said = True
                say({"holds": True})
            continue
        waiting += [number for _, number in read]
        if waiting:
            try:
                consumer.commit(asynchronous=False)
            except KafkaException:
                continue  # between two assignments: with the next one
            say({"acked": waiting})
            waiting = []


if __name__ == "__main__":
    run(**json.loads(sys.argv[1]))
