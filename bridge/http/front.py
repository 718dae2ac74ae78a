"""The first to see a request and the last to see its answer: request ids, counts, the journal."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from duolog.bridge.http.access import CONSUME, endpoint_of
from duolog.bridge.http.answers import INTERNAL
from duolog.bridge.http.callers import ANYBODY
from duolog.bridge.journal import Journal, Level
from duolog.bridge.metrics.names import REQUEST_SECONDS, REQUESTS
from duolog.bridge.metrics.tally import Tally

ENDPOINT = "duolog.endpoint"
REQUEST_ID = "duolog.request_id"
CALLER_NAME = "duolog.caller_name"  # where a route has asked for a token by itself
"""Names in the scope."""

CALLER = "duolog.caller"  # where the gate says who asks
_FORBIDDEN = 403
_WAIT = "/wait"  # the long poll of other Duolog processes
_ID = re.compile(rb"[A-Za-z0-9._:-]{1,128}")


class Front:
    """In front of everything else."""

    def __init__(
        self,
        application: ASGIApp,
        tally: Tally,
        journal: Journal,
        endpoint_of: Callable[[str], str] = endpoint_of,
    ) -> None:
        self._application = application
        self._tally = tally
        self._journal = journal
        self._endpoint_of = endpoint_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        began = time.perf_counter()
        request_id = scope[REQUEST_ID] = _request_id(scope)
        endpoint = scope[ENDPOINT] = self._endpoint_of(scope["path"])
        status = 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                named = (b"x-request-id", request_id.encode())
                message = {**message, "headers": [*message.get("headers", ()), named]}
            await send(message)

        try:
            await self._application(scope, receive, answer)
        except Exception as error:  # noqa: BLE001 - whatever it was, the host goes on
            if not status:  # else it has been told where it was answered
                self._journal.error("request.failed", error, id=request_id, endpoint=endpoint)
                await INTERNAL.response()(scope, receive, answer)
        seconds = time.perf_counter() - began
        self._tally.add(REQUESTS, endpoint, str(status))
        if endpoint != CONSUME and not scope["path"].endswith(_WAIT):
            self._tally.note(REQUEST_SECONDS, endpoint, seconds=seconds)
        caller = _caller_name(scope)
        # By a token that is known: its role is too low, or its limits are in the way.
        is_refused = status == _FORBIDDEN and caller is not None
        level = Level.INFO if is_refused else Level.DEBUG
        if self._journal.shows(level):
            self._journal.tell(
                level,
                "request.refused" if is_refused else "request",
                id=request_id,
                caller=caller,
                method=scope["method"],
                path=scope["path"],
                status=status,
                ms=round(seconds * 1000, 1),
                client=client_of(scope),
            )


def _caller_name(scope: Scope) -> str | None:
    """Whose token it was; None where there was none, or none was needed."""
    caller = scope.get(CALLER, ANYBODY)
    name: str | None = scope.get(CALLER_NAME)
    return name if name is not None or caller is ANYBODY else caller.name


def client_of(scope: Scope) -> str:
    """The address that a request came from."""
    client = scope.get("client")
    return f"{client[0]}:{client[1]}" if client else "unknown"


def _request_id(scope: Scope) -> str:
    """What the client calls its request, or a name for it."""
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _ID.fullmatch(value):
            return str(value.decode())
    return secrets.token_hex(8)
