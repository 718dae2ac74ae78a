"""Asking a broker whether it can be used.

By hand, not with a client library: a library would keep asking and complain on stderr while the
broker starts, and none is needed otherwise to run a broker. An open port alone says too little:
the node may still be waiting for its controller, and another broker may have got the port.
"""

from __future__ import annotations

import socket
import struct

from duolog.bridge.kafka.local.properties import LOOPBACK

_METADATA, _VERSION, _CORRELATION = 3, 2, 1
_CLIENT = b"duolog"
_NO_TOPICS = 0
_LONGEST_ANSWER = 1 << 16


def cluster_at(port: int, timeout_seconds: float) -> str | None:
    """The id of the cluster behind a plaintext listener, once it has a broker that takes work."""
    try:
        with socket.create_connection((LOOPBACK, port), timeout_seconds) as connection:
            connection.settimeout(timeout_seconds)
            connection.sendall(metadata_request())
            (length,) = struct.unpack(">i", _read(connection, 4))
            if not 0 < length <= _LONGEST_ANSWER:
                return None
            return cluster_in(_read(connection, length))
    except (OSError, EOFError):
        return None


def metadata_request() -> bytes:
    """A Metadata request for no topic."""
    header = struct.pack(">hhih", _METADATA, _VERSION, _CORRELATION, len(_CLIENT)) + _CLIENT
    body = header + struct.pack(">i", _NO_TOPICS)
    return struct.pack(">i", len(body)) + body


def cluster_in(answer: bytes) -> str | None:
    """The cluster's id in the answer; None when it is another answer or has no broker yet."""
    try:
        correlation, brokers = struct.unpack_from(">ii", answer)
        at = 8
        for _ in range(brokers):
            _, at = _text(answer, at + 4)
            _, at = _text(answer, at + 4)
        cluster, _ = _text(answer, at)
    except (struct.error, UnicodeDecodeError):
        return None
    return cluster if correlation == _CORRELATION and brokers > 0 else None


def _text(answer: bytes, at: int) -> tuple[str | None, int]:
    (length,) = struct.unpack_from(">h", answer, at)
    if length < 0:
        return None, at + 2
    return answer[at + 2 : at + 2 + length].decode(), at + 2 + length


def _read(connection: socket.socket, count: int) -> bytes:
    read = b""
    while len(read) < count:
        come = connection.recv(count - len(read))
        if not come:
            raise EOFError
        read += come
    return read
