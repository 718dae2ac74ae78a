"""What comes in and goes out: JSON within a limit, errors by their names."""

from __future__ import annotations

import json
from typing import Any, Final

import anyio.to_thread
from anyio import CapacityLimiter
from starlette.requests import Request
from starlette.responses import Response

from duolog.errors import DuologError, InvalidRequest, RecordTooLarge, TooBusy, TooManyValues
from duolog.reach.failures import failure_of, status_of
from duolog.reach.protocol import PROTOCOL_HEADER, VERSION
from duolog.server import json_pieces
from duolog.server.json_pieces import SMALL_BYTES
from duolog.server.text import is_utf8

OUR_HEADERS: Final = {PROTOCOL_HEADER: str(VERSION), "Cache-Control": "no-store"}


class BodyRoom:
    """How many bytes of bodies are worked on at once. Used from one event loop only."""

    def __init__(self, max_bytes: int, max_together_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._room_bytes = max_together_bytes

    def take(self, request: Request) -> int:
        """Make room for a request's body, to be given back; how much it is."""
        declared = declared_bytes(request)
        if declared is None:
            raise InvalidRequest("A request comes with its Content-Length.")
        if declared > self._max_bytes:
            raise RecordTooLarge(
                f"A request of {declared} bytes is over the limit of {self._max_bytes}. Send fewer "
                "records at once."
            )
        if declared > self._room_bytes:
            raise TooBusy("The host has its hands full of large requests. Try again soon.")
        self._room_bytes -= declared
        return declared

    def give_back(self, taken_bytes: int) -> None:
        self._room_bytes += taken_bytes


class JsonBodies:
    """Parses bodies: small ones at once, large ones in a few threads. Used from one event loop."""

    def __init__(self, threads: int) -> None:
        self._limit = CapacityLimiter(threads)

    async def of(self, request: Request) -> dict[str, Any]:
        """The JSON object of a request; no server lets a body be longer than it was declared."""
        body = await request.body()
        if len(body) <= SMALL_BYTES:
            return parsed_object(body)
        return await anyio.to_thread.run_sync(parsed_large_object, body, limiter=self._limit)


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
