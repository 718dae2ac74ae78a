"""How answers go to those who asked, and how it shows that they have left."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive

from duolog.bridge.http.shown_arrow import MEDIA_TYPE

_PIECE_BYTES: Final = 256 << 10


def wants_arrow(request: Request) -> bool:
    return any(MEDIA_TYPE in line.lower() for line in request.headers.getlist("accept"))


def arrow_response(*body: Any) -> Response:
    """An Arrow stream, in buffers that follow one another."""
    length = {"content-length": str(sum(map(len, body)))}
    return StreamingResponse(_pieces(body), media_type=MEDIA_TYPE, headers=length)


async def client_left(receive: Receive) -> None:
    """Returns when the client has hung up."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _pieces(body: Sequence[Any]) -> AsyncIterator[memoryview]:
    """In pieces, so that what a slow client has not taken does not pile up twice."""
    for buffer in body:
        view = memoryview(buffer)
        for at in range(0, len(view), _PIECE_BYTES):
            yield view[at : at + _PIECE_BYTES]
