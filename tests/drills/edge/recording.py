"""Requests as real clients send them: recorded on their way to a host."""

from __future__ import annotations

import contextlib
import json
import re
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from duolog.client import Admin, Consumer, Publisher
from duolog.log.model import Earliest, Op, Record, Route
from duolog.reach import reach
from tests.drills.edge.hosting import Process
from tests.drills.edge.requests import GUARDED
from tests.drills.edge.wire import request

_LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]+)", re.IGNORECASE)
_PIECE = 1 << 16


def recorded(host: Process, token: str) -> list[bytes]:
    """Each request of clients of every kind, once per path and method, and those of this drill."""
    kept: list[bytearray] = []
    with _recorder(host.port, kept) as url:
        with reach(url=url, token=token) as log:
            log.create_topic("orders_rec", if_not_exists=True)
            log.add_route("orders_rec", Route("shop.rec", frozenset({Op.INSERT})))
            log.publish("orders_rec", [Record(b"a", key=b"k"), Record(b"b")])
            log.publish("orders_rec", [Record(b"c")], writer="rec", sequence=0)
            log.offsets("orders_rec")
            log.resolve("orders_rec", 0, Earliest())
            log.fetch("orders_rec", 0, 0)
            log.ack("rec", "orders_rec", 0, 0)
            log.group_positions("rec")
            log.topics()
            log.last_sequence("rec")
            log.drop_route("orders_rec", "shop.rec")
        with Publisher(url=url, token=token) as publisher:
            publisher.publish("orders", "recorded")
        with Admin(url=url, token=token) as admin:
            admin.sql("SELECT topic, count(*) AS n FROM system.topics GROUP BY topic")
            admin.sql("CONSUME FROM orders LIMIT 1")
        with Consumer("orders", url=url, token=token, group="mine-rec") as consumer:
            consumer.poll(timeout_seconds=0)
    own = [
        request(
            each.method,
            each.path,
            f"Authorization: Bearer {token}",
            *(f"{name}: {value}" for name, value in each.headers.items()),
            body=_body(each.content),
        )
        for each in GUARDED
    ]
    return [*_once_each(split for stream in kept for split in _split(bytes(stream))), *own]


def _body(content: object) -> bytes:
    if content is None or isinstance(content, bytes):
        return content or b""
    return json.dumps(content).encode()


def _split(stream: bytes) -> Iterator[bytes]:
    """The requests that a client sent on one connection, one after the other."""
    while b"\r\n\r\n" in stream:
        head, _, rest = stream.partition(b"\r\n\r\n")
        found = _LENGTH.search(head)
        length = int(found[1]) if found else 0
        yield head + b"\r\n\r\n" + rest[:length]
        stream = rest[length:]


def _once_each(requests: Iterator[bytes]) -> list[bytes]:
    return list(
        {each.partition(b" HTTP/")[0].partition(b"?")[0]: each for each in requests}.values()
    )


@contextmanager
def _recorder(port: int, kept: list[bytearray]) -> Iterator[str]:
    """Passes connections on to a port, and keeps what clients send."""
    stop = threading.Event()
    threads: list[threading.Thread] = []

    def begin(serve: object, *arguments: object) -> None:
        thread = threading.Thread(target=serve, args=arguments, name="recorder")  # type: ignore[arg-type]
        threads.append(thread)
        thread.start()

    def pass_on(client: socket.socket) -> None:
        stream = bytearray()
        kept.append(stream)
        with (
            client,
            socket.create_connection(("127.0.0.1", port)) as host,
            contextlib.suppress(OSError),
        ):
            while not stop.is_set():
                for ready in select.select([client, host], [], [], 0.05)[0]:
                    piece = ready.recv(_PIECE)
                    if not piece:
                        return
                    if ready is client:
                        stream += piece
                    (host if ready is client else client).sendall(piece)

    def accept() -> None:
        while not stop.is_set():
            if select.select([listening], [], [], 0.05)[0]:
                begin(pass_on, listening.accept()[0])

    with socket.create_server(("127.0.0.1", 0)) as listening:
        begin(accept)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            stop.set()
            for thread in list(threads):
                thread.join()
