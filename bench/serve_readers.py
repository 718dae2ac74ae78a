"""In a child: everything is read, over HTTP or from Kafka. All records are unpacked."""

from __future__ import annotations

import http.client
import json
import queue
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

_ARROW = "application/vnd.apache.arrow.stream"
_AHEAD = 1  # answers that are there before they are unpacked, as Kafka's consumer has them too
_KAFKA_RECORDS = 10_000  # at a time


def read_json(pipe: Connection, port: int, topic: str, records: int, limit: int) -> None:
    """For each word heard, read so many records; say how many a second came."""

    def read() -> None:
        at = 0
        while at < records:
            at = int(json.loads(consume(connection, topic, at, limit, {}))["next_offset"])

    with _connected(port) as connection:
        _answer(pipe, records, read)


def read_arrow(pipe: Connection, port: int, topic: str, records: int, limit: int) -> None:
    """The same as Arrow."""
    with _connected(port) as connection:
        _answer(pipe, records, lambda: _arrow(connection, topic, records, limit))


def drain(pipe: Connection, port: int, topic: str, records: int, limit: int) -> None:
    """Read so many records as Arrow, over and over until told to stop."""
    with _connected(port) as connection:
        pipe.send("connected")
        while not pipe.poll():
            _arrow(connection, topic, records, limit)


def _arrow(connection: http.client.HTTPConnection, topic: str, records: int, limit: int) -> None:
    """The next answer comes while one is unpacked."""
    import pyarrow as pa

    fetched: queue.Queue[Any] = queue.Queue(_AHEAD)

    def fetch() -> None:
        at = 0
        while at < records:
            body = consume(connection, topic, at, limit, {"Accept": _ARROW})
            stream = pa.ipc.open_stream(pa.py_buffer(body))
            at = json.loads(stream.schema.metadata[b"next_offsets"])["0"]
            fetched.put(stream)

    fetching = threading.Thread(target=fetch)
    fetching.start()
    got = 0
    while got < records:
        got += sum(batch.num_rows for batch in fetched.get())
    fetching.join()


def read_kafka(pipe: Connection, bootstrap_servers: str, topic: str, records: int) -> None:
    """The same with confluent-kafka's consumer, from when it has its first records."""
    from confluent_kafka import Consumer
    from confluent_kafka.cimpl import TopicPartition

    settings = {
        "bootstrap.servers": bootstrap_servers,
        "group.id": "bench",
        "enable.auto.commit": False,
    }
    pipe.send("connected")
    try:
        while pipe.recv():
            consumer = Consumer(settings)
            consumer.assign([TopicPartition(topic, 0, 0)])
            got = before = len(consumer.consume(1, 60))
            began = time.perf_counter()
            while got < records:
                got += len([each.value() for each in consumer.consume(_KAFKA_RECORDS, 1)])
            pipe.send((got - before) / (time.perf_counter() - began))
            consumer.close()
    except EOFError:  # nobody asks any more
        pass


def consume(
    connection: http.client.HTTPConnection, topic: str, at: int, limit: int, more: dict[str, str]
) -> bytes:
    """The body of one answer, from an offset on."""
    ask = {
        "topic": topic,
        "partition_id": 0,
        "start": {"Offset": at},
        "limit": limit,
        "timeout_seconds": 0,
    }
    headers = {"Content-Type": "application/json", **more}
    connection.request("POST", "/v1/api/topics/consume", json.dumps(ask), headers)
    return connection.getresponse().read()


@contextmanager
def _connected(port: int) -> Iterator[http.client.HTTPConnection]:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    try:
        yield connection
    finally:
        connection.close()


def _answer(pipe: Connection, records: int, read: Any) -> None:
    pipe.send("connected")
    try:
        while pipe.recv():
            began = time.perf_counter()
            read()
            pipe.send(records / (time.perf_counter() - began))
    except EOFError:  # nobody asks any more
        pass
