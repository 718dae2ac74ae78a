"""Raw requests on raw sockets, and the answers in what comes back."""

from __future__ import annotations

import json
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

DEADLINE_SECONDS = 60.0


class NoAnswer(AssertionError):
    """The host neither answered nor hung up within the deadline."""


@dataclass(frozen=True)
class Answer:
    """What came back for one request."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")


def connect(port: int, timeout_seconds: float = DEADLINE_SECONDS) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=timeout_seconds)


def read_to_end(
    client: socket.socket,
    *pieces: bytes,
    within_seconds: float = DEADLINE_SECONDS,
    one_is_enough: bool = False,
) -> bytes:
    """Send the pieces, and read until the host hangs up, or has answered once if that is enough.
    Raises NoAnswer.
    """
    got = bytearray()
    deadline = time.monotonic() + within_seconds
    with suppress(ConnectionError):
        for piece in pieces:
            client.sendall(piece)
    with suppress(ConnectionError):
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise NoAnswer(f"the host kept a connection open, and said {bytes(got[:200])!r}")
            client.settimeout(left)
            try:
                piece = client.recv(1 << 16)
            except TimeoutError:
                continue
            if not piece:
                break
            got += piece
            if one_is_enough and answers_in(bytes(got), only_whole=True):
                break
    return bytes(got)


def answers_in(said: bytes, *, only_whole: bool = False) -> list[Answer]:
    """Every answer in what a connection gave, in order. To HEAD, a length comes without a body."""
    found: list[Answer] = []
    while b"\r\n\r\n" in said:
        head, _, said = said.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        status = int(lines[0].split()[1])
        if status == 100:
            continue
        if "content-length" in headers:
            length = int(headers["content-length"])
            if only_whole and len(said) < length:
                break
            body, said = said[:length], said[length:]
        elif headers.get("transfer-encoding") == "chunked":
            body, said = _unchunked(said)
        else:
            body, said = said, b""
        found.append(Answer(status, headers, body))
    return found


def request(
    method: str, target: str, *headers: str, body: bytes = b"", length: bool = True
) -> bytes:
    """A request as it travels. It asks the host to hang up after its answer."""
    lines = [f"{method} {target} HTTP/1.1", "Host: localhost", "Connection: close", *headers]
    if body and length:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def _unchunked(said: bytes) -> tuple[bytes, bytes]:
    body = bytearray()
    while b"\r\n" in said:
        size, _, said = said.partition(b"\r\n")
        count = int(size, 16)
        body += said[:count]
        said = said[count + 2 :]
        if not count:
            break
    return bytes(body), said
