"""How answers go to those who asked, and how it shows that they have left."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive

from duolog.bridge.http.answers import JSON_TYPE
from duolog.bridge.http.shown_arrow import MEDIA_TYPE

_PIECE_BYTES: Final = 256 << 10


def wants_arrow(request: Request) -> bool:
    return any(MEDIA_TYPE in line.lower() for line in request.headers.getlist("accept"))


def arrow_response(*body: Any) -> Response:
    """An Arrow stream, in buffers that follow one another."""
    return _in_pieces(body, MEDIA_TYPE)


def json_text_response(body: bytes) -> Response:
    """JSON that is written already."""
    if len(body) <= _PIECE_BYTES:
        return Response(body, media_type=JSON_TYPE)
    return _in_pieces((body,), JSON_TYPE)


async def client_left(receive: Receive) -> None:
    """Returns when the client has hung up."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _in_pieces(body: Sequence[Any], media_type: str) -> Response:
    """Each piece is sent when the client has taken those before: then the answer is over, and what
    it has of the memory is free, not before all of it has left this process.
    """
    length = {"content-length": str(sum(map(len, body)))}
    return StreamingResponse(_pieces(body), media_type=media_type, headers=length)


async def _pieces(body: Sequence[Any]) -> AsyncIterator[memoryview]:
    """In pieces, so that what a slow client has not taken does not pile up twice."""
    for buffer in body:
        view = memoryview(buffer)
        for at in range(0, len(view), _PIECE_BYTES):
            yield view[at : at + _PIECE_BYTES]
