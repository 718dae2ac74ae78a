"""The last words to a client whose connection the host ends, or does not want."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any, Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from duolog.bridge.http.access import HEALTH, METRICS, READY
from duolog.bridge.http.answers import BUSY_RETRY_SECONDS, Refusal
from duolog.reach.protocol import PROTOCOL_HEADER, VERSION

LATE: Final = Refusal(408, "RequestTimeout", "The rest of the request did not arrive in time.")
NO_HTTP: Final = Refusal(400, "NotHttp", "That is no request of HTTP/1.1 that can be read.")
TOO_LONG: Final = Refusal(431, "HeadersTooLarge", "The request's headers are too long.")
STOPPING: Final = Refusal(
    503,
    "LogClosed",
    "The host is stopping, and the request was not there yet: nothing of it was done. Send it "
    "again when the host is back.",
)

_WATCHED: Final = frozenset({HEALTH, READY, METRICS})


def hang_up(connection: Any, refusal: Refusal) -> None:
    """Answer, where nothing has been said yet, and close the connection, one of uvicorn's."""
    cycle, transport = connection.cycle, connection.transport
    if transport.is_closing():
        return
    is_answering = cycle is not None and cycle.response_started and not cycle.response_complete
    is_answering_another = bool(getattr(connection, "pipeline", ()))  # only httptools' has it
    if is_answering or is_answering_another:
        transport.abort()
        return
    if connection.progress.has_spoken:  # else it may be a browser that connects ahead
        status = HTTPStatus(refusal.status)
        body = json.dumps({"error": refusal.error, "code": refusal.code}).encode()
        transport.write(
            b"HTTP/1.1 %d %b\r\ncontent-type: application/json\r\nconnection: close\r\n"
            b"content-length: %d\r\n\r\n%b" % (status, status.phrase.encode(), len(body), body)
        )
    transport.close()


def turning_away(application: ASGIApp, most: int) -> ASGIApp:
    """Answers that there are too many; but who watches over the host is let through."""
    refusal = Refusal(
        503,
        "TooBusy",
        f"The host has {most} connections, as many as it takes. Keep connections and use them "
        "again, or try again in a moment.",
        retry_after_seconds=BUSY_RETRY_SECONDS,
    )

    async def turn_away(scope: Scope, receive: Receive, send: Send) -> None:
        async def last(message: Message) -> None:
            if message["type"] == "http.response.start":
                closing = (b"connection", b"close")
                message = {**message, "headers": [*message.get("headers", ()), closing]}
            await send(message)

        if scope["path"] in _WATCHED:
            await application(scope, receive, last)
            return
        response = refusal.response()
        response.headers[PROTOCOL_HEADER] = str(VERSION)  # other Duolog processes ask again
        await response(scope, receive, last)

    return turn_away
