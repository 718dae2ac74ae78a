"""Batches over one connection: in the order of the calls, whole, and not all at once."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest
from aiokafka import errors as kafka_errors

from duolog.bridge.kafka.mirror.in_turn import InTurn
from duolog.bridge.kafka.wire.record_batch import KafkaBatch
from duolog.bridge.kafka.wire.requests import Place, Produce, Produced

PLACE = Place("orders", UUID(int=7), 0)
VERSIONS = {0: (0, 13)}
SIZES = (10, 40_000, 30_000_000, 0, 31_000, 33_000)  # the third: far more than sockets hold


@dataclass
class Connection:
    """What is used of aiokafka's, over a real socket."""

    _writer: Any
    _requests: list[Any] = field(default_factory=list)
    _versions: Any = field(default_factory=lambda: VERSIONS)
    _client_id: str = "mirror"
    _request_timeout: float = 30.0

    def _next_correlation_id(self) -> int:
        return len(self._requests) + 1


def batches() -> list[KafkaBatch]:
    content = random.Random(1)
    return [KafkaBatch(b"h" * 61, memoryview(content.randbytes(size))) for size in SIZES]


def test_requests_arrive_whole_and_in_the_order_of_the_calls() -> None:
    async def history() -> None:
        read_now = asyncio.Event()
        received: list[bytes] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await read_now.wait()
            for _ in SIZES:
                received.append(
                    await reader.readexactly(int.from_bytes(await reader.readexactly(4)))
                )
            writer.close()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            connection = Connection(writer)
            turn = InTurn(connection)
            requests = [Produce(PLACE, batch, 1000) for batch in batches()]
            asked = [asyncio.create_task(turn.send(request)) for request in requests]
            while len(connection._requests) < 3:
                await asyncio.sleep(0)
            for _ in range(100):
                await asyncio.sleep(0)
            assert len(connection._requests) == 3  # the rest waits, as the large one is on its way
            read_now.set()
            while len(connection._requests) < len(SIZES):
                await asyncio.sleep(0.001)
            await writer.drain()
            for number, (_, _, answer) in enumerate(connection._requests):
                answer.set_result(Produced(0, number, 0, None, ()))
            assert [(await each).base_offset for each in asked] == list(range(len(SIZES)))
            while len(received) < len(SIZES):
                await asyncio.sleep(0.001)
            writer.close()

        for number, (request, found) in enumerate(zip(requests, received, strict=True), 1):
            prepared = request.prepare(VERSIONS)
            header = prepared.build_request_header(number, "mirror").encode()
            assert found == header + prepared.encode()

    asyncio.run(asyncio.wait_for(history(), 60))


def test_a_closed_connection_says_so() -> None:
    async def history() -> None:
        with pytest.raises(kafka_errors.KafkaConnectionError, match="closed"):
            await InTurn(Connection(None)).send(Produce(PLACE, batches()[0], 1000))

    asyncio.run(history())
