"""A consumer to be killed: says each record before it goes on, and gives up every tenth."""

from __future__ import annotations

import json
import sys

from duolog.client import Consumer


def consume_until_idle(url: str) -> None:
    with Consumer(
        "orders",
        url=url,
        group="g",
        start="earliest",
        max_records=7,
        ack_interval_seconds=0,
        max_attempts=2,
        retry_pause_seconds=0,
        dead_letter_topic="dead",
        idle_timeout_seconds=0.3,
        session_timeout_seconds=1,
    ) as consumer:
        for record in consumer:
            said = {"partition": record.partition, "offset": record.offset, "value": record.value}
            sys.stdout.write(json.dumps({**said, "attempt": record.attempt}) + "\n")
            sys.stdout.flush()
            if record.value % 10 == 0:
                consumer.nack(record, "a tenth")


if __name__ == "__main__":
    consume_until_idle(json.loads(sys.argv[1])["url"])
