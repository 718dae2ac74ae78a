"""Batches over a connection of aiokafka, one after the other and without copying them.

Its own `send` joins a request three times over and hands all of it to the transport, whatever waits
there already: in the event loop, which costs more than making the batch did. Here the pieces are
written as they are, when what was written before is on its way. aiokafka takes the answers as ever.
"""

from __future__ import annotations

import asyncio
import struct
from asyncio import Future
from typing import Any, Final, Protocol, TypeVar

from aiokafka import errors as kafka_errors

from duolog.bridge.kafka.wire.requests import Prepared, Versions

A = TypeVar("A")

_JOINED_BYTES: Final = 32 << 10  # below, one write costs less than several
_SIZE: Final = struct.Struct(">i")


class Request(Protocol[A]):
    """One of `wire/requests.py`."""

    def prepare(self, versions: Versions) -> Prepared[A]: ...


class InTurn:
    """Sends over one connection, in the order of the calls."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self._one_writes = asyncio.Lock()

    async def send(self, request: Request[A]) -> A:
        """The answer to a request."""
        async with self._one_writes:
            answer = await self._write(request)
        async with asyncio.timeout(self.connection._request_timeout):  # noqa: SLF001
            return await answer

    async def _write(self, request: Request[A]) -> Future[A]:
        connection = self.connection  # what it keeps to itself is used as by its own `send`
        if connection._writer is not None:  # noqa: SLF001
            await connection._writer.drain()  # noqa: SLF001
        writer = connection._writer  # noqa: SLF001
        if writer is None:
            raise kafka_errors.KafkaConnectionError("The connection has been closed.")
        prepared = request.prepare(connection._versions)  # noqa: SLF001
        number = connection._next_correlation_id()  # noqa: SLF001
        head = prepared.build_request_header(number, connection._client_id).encode()  # noqa: SLF001
        pieces = prepared.pieces()
        size = len(head) + sum(map(len, pieces))
        before = b"".join((_SIZE.pack(size), head, pieces[0]))
        if size < _JOINED_BYTES:
            writer.write(b"".join((before, *pieces[1:])))
        else:
            for piece in (before, *pieces[1:]):
                writer.write(piece)
        answer: Future[A] = asyncio.get_running_loop().create_future()
        connection._requests.append((number, prepared.without_body(), answer))  # noqa: SLF001
        return answer
