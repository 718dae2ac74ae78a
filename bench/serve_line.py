"""Connections of a load generator: as little work as can be, so that the host is the limit."""

from __future__ import annotations

import json
import re
import selectors
import socket
from collections.abc import Iterator
from typing import Any, Self

_LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]+)", re.IGNORECASE)
_HEAD_END = b"\r\n\r\n"


class NotAnswered(Exception):
    """The host has refused, or hung up."""


def request_body(content: Any) -> bytes:
    """JSON as most clients write it."""
    return json.dumps(content).encode()


def request_of(path: str, content: Any) -> bytes:
    """A whole POST request, to be sent again and again."""
    body = request_body(content)
    head = (
        f"POST /v1/api/topics/{path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class Line:
    """A connection with at most one request under way. Never blocks."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.setblocking(False)
        self._received = b""

    def fileno(self) -> int:
        return self._socket.fileno()

    def ask(self, request: bytes) -> None:
        if self._socket.send(request) < len(request):
            raise NotAnswered("The host takes no more of a request.")

    def answer(self) -> bytes | None:
        """The answer's body once all of it has come. To be called when there is something."""
        some = self._socket.recv(1 << 16)
        if not some:
            raise NotAnswered("The host has hung up.")
        received = self._received = self._received + some
        head, ended, body = received.partition(_HEAD_END)
        length = _LENGTH.search(head)
        if not ended or length is None or len(body) < int(length[1]):
            return None
        self._received = b""
        if not head.startswith(b"HTTP/1.1 200"):
            raise NotAnswered(body.decode())
        return body

    def close(self) -> None:
        self._socket.close()


class Lines:
    """Some connections, and which of them have something to read."""

    def __init__(self, port: int, count: int) -> None:
        self._lines = [Line(port) for _ in range(count)]
        self._events = selectors.DefaultSelector()
        for nth, line in enumerate(self._lines):
            self._events.register(line.fileno(), selectors.EVENT_READ, nth)

    def __getitem__(self, nth: int) -> Line:
        return self._lines[nth]

    def __len__(self) -> int:
        return len(self._lines)

    def answered(self, within_seconds: float) -> Iterator[int]:
        """The numbers of those whose answers are whole now."""
        for key, _ in self._events.select(max(0.0, within_seconds)):
            if self._lines[key.data].answer() is not None:
                yield key.data

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._events.close()
        for line in self._lines:
            line.close()
