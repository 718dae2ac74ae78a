"""What comes in and goes out: JSON within a limit, errors by their names."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

import anyio.to_thread
from anyio import CapacityLimiter
from starlette.requests import Request
from starlette.responses import Response

from duolog.errors import DuologError, InvalidRequest, RecordTooLarge, TooManyValues
from duolog.reach.failures import failure_of, status_of
from duolog.reach.protocol import PROTOCOL_HEADER, VERSION
from duolog.server import json_pieces
from duolog.server.json_pieces import SMALL_BYTES, count_values
from duolog.server.request_memory import BYTES_A_VALUE, LargeRequest, memory_of, memory_of_bytes
from duolog.server.text import is_utf8

_READ_WITHIN_SECONDS: Final = 60.0
OUR_HEADERS: Final = {PROTOCOL_HEADER: str(VERSION), "Cache-Control": "no-store"}


class JsonBodies:
    """Reads and parses bodies: small ones at once, large ones in a few threads. These do not wait
    for memory: a client that is told to come again knows that the host lives.

    Used from one event loop.
    """

    def __init__(self, threads: int, max_bytes: int) -> None:
        self._limit = CapacityLimiter(threads)
        self._max_bytes = max_bytes

    async def of(
        self, request: Request, memory: LargeRequest, bytes_a_value: int = BYTES_A_VALUE
    ) -> dict[str, Any]:
        """The JSON object of a request; no server lets a body be longer than it was declared."""
        declared = self._declared(request)
        if declared <= SMALL_BYTES:
            return parsed_object(await request.body())
        body = await _read(request, memory)
        values = await anyio.to_thread.run_sync(count_values, body, limiter=self._limit)
        memory.take_now(memory_of(body, values, bytes_a_value))
        return await anyio.to_thread.run_sync(parsed_large_object, body, limiter=self._limit)

    def _declared(self, request: Request) -> int:
        declared = declared_bytes(request)
        if declared is None:
            raise InvalidRequest("A request comes with its Content-Length.")
        if declared > self._max_bytes:
            raise RecordTooLarge(
                f"A request of {declared} bytes is over the limit of {self._max_bytes}. Send fewer "
                "records at once."
            )
        return declared


async def _read(request: Request, memory: LargeRequest) -> bytes:
    """A body, with memory for as much of it as has come."""
    body = bytearray()
    try:
        async with asyncio.timeout(_READ_WITHIN_SECONDS):
            async for piece in request.stream():
                memory.take_now(memory_of_bytes(len(body) + len(piece)))
                body += piece
    except TimeoutError:
        raise InvalidRequest("The request's body did not arrive in time. Send it again.") from None
    return bytes(body)


def parsed_object(content: bytes | str) -> dict[str, Any]:
    """The JSON object that a small text holds."""
    if isinstance(content, bytes) and not is_utf8(content):
        raise InvalidRequest("The request must be JSON in UTF-8.")
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InvalidRequest("The request must be a JSON object.")
    return value


def parsed_large_object(body: bytes) -> dict[str, Any]:
    """The JSON object that a text holds, for a thread: it lets other threads run in between."""
    try:
        return json_pieces.read_object(body, lambda _, __, item: item)
    except json_pieces.NotUtf8:
        raise InvalidRequest("The request must be JSON in UTF-8.") from None
    except json_pieces.TooManyValues as error:
        raise TooManyValues(
            f"{error.place} has more than {json_pieces.MOST_VALUES_IN_A_PIECE} JSON values inside. "
            "Send it in several requests."
        ) from None
    except (ValueError, RecursionError):
        raise InvalidRequest("The request must be a JSON object.") from None


def declared_bytes(request: Request) -> int | None:
    """What Content-Length says."""
    written = request.headers.get("content-length", "")
    return int(written) if written.isascii() and written.isdigit() else None


def json_answer(value: dict[str, Any], status: int = 200) -> Response:
    return Response(json_text(value), status, OUR_HEADERS, "application/json")


def json_text(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def refusal(error: DuologError) -> Response:
    return json_answer(failure_of(error), status_of(error))
