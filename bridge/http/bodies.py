"""Reads the bodies of the API's requests whole, within limits, before anything looks at them."""

from __future__ import annotations

import asyncio
from collections import Counter

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from duolog.bridge.http.access import API
from duolog.bridge.http.answers import BUSY_RETRY_SECONDS, Refusal
from duolog.bridge.http.asking import token_name
from duolog.bridge.http.rules import BodyLimits
from duolog.server.json_pieces import SMALL_BYTES

_WITH_BODY = ("POST", "PUT", "PATCH")


class _Refused(Exception):
    def __init__(self, refusal: Refusal) -> None:
        self.refusal = refusal


class _ClientLeft(Exception):
    pass


class _HeldBodies:
    """How many bytes of large bodies are there at once. Small ones are bounded by connections, and
    do not wait for what others send.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._by_token: Counter[str | None] = Counter()  # None: where there are no tokens

    def add(self, token: str | None, size: int) -> None:
        """So much more comes. Refused where there are too many."""
        held = self._by_token
        if held.total() + size > self._most_bytes:
            raise _Refused(
                Refusal(
                    503,
                    "TooBusy",
                    "The host has as many bytes of requests under way as it takes. Try again.",
                    retry_after_seconds=BUSY_RETRY_SECONDS,
                )
            )
        if token is not None and 2 * (held[token] + size) > self._most_bytes:
            raise _Refused(
                Refusal(
                    429,
                    "TokenLimitReached",
                    "The requests of this token that are under way are as large as one token's "
                    "may be. Send the next when one was answered.",
                    retry_after_seconds=BUSY_RETRY_SECONDS,
                )
            )
        held[token] += size

    def drop(self, token: str | None, size: int) -> None:
        self._by_token[token] -= size
        if not self._by_token[token]:
            del self._by_token[token]


class _Body:
    """A body that comes in, and what of it counts."""

    def __init__(self, held: _HeldBodies, token: str | None) -> None:
        self._held = held
        self._token = token
        self._pieces: list[bytes] = []
        self._counted = 0
        self.size = 0

    def add(self, piece: bytes) -> None:
        self.size += len(piece)
        self._pieces.append(piece)
        if self.size > SMALL_BYTES:
            self._held.add(self._token, self.size - self._counted)
            self._counted = self.size

    def joined(self) -> bytes:
        """The whole of it, once."""
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)

    def drop(self) -> None:
        self._held.drop(self._token, self._counted)


class Bodies:
    """In front of the endpoints below /v1/api/. Others have limits of their own."""

    def __init__(self, application: ASGIApp, limits: BodyLimits) -> None:
        self._application = application
        self._limits = limits
        self._held = _HeldBodies(limits.max_bytes_at_once)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (
            scope["type"] != "http"
            or not scope["path"].startswith(API)
            or scope["method"] not in _WITH_BODY
        ):
            await self._application(scope, receive, send)
            return
        body = _Body(self._held, token_name(scope))
        try:
            await self._read(scope, receive, body)
            await self._application(scope, _replay(body.joined(), receive), send)
        except _Refused as error:
            await error.refusal.response()(scope, receive, send)
        except _ClientLeft:
            return
        finally:
            body.drop()

    async def _read(self, scope: Scope, receive: Receive, body: _Body) -> None:
        headers = dict(scope["headers"])
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if kind != b"application/json":
            raise _Refused(
                Refusal(
                    415,
                    "UnsupportedMediaType",
                    "The body has to be JSON, and say so: Content-Type: application/json (with "
                    "curl: --json instead of -d).",
                )
            )
        declared = headers.get(b"content-length", b"")
        self._check_size(int(declared) if declared.isdigit() else 0)
        try:
            async with asyncio.timeout(self._limits.read_within_seconds):
                while await self._take(receive, body):
                    pass
        except TimeoutError:
            raise _Refused(
                Refusal(408, "RequestTimeout", "The body did not arrive in time. Send it again.")
            ) from None

    async def _take(self, receive: Receive, body: _Body) -> bool:
        """Read on; whether there is more."""
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _ClientLeft
        piece: bytes = message.get("body", b"")
        self._check_size(body.size + len(piece))
        body.add(piece)
        return bool(message.get("more_body"))

    def _check_size(self, size: int) -> None:
        if size > self._limits.max_body_bytes:
            raise _Refused(
                Refusal(
                    413,
                    "BodyTooLarge",
                    f"The body is larger than {self._limits.max_body_bytes} bytes. Send it in "
                    "several requests.",
                )
            )


def _replay(body: bytes, receive: Receive) -> Receive:
    """What was read, and then what comes after it: that the client has left."""
    given: bytes | None = body

    async def again() -> Message:
        nonlocal given
        if given is None:
            return await receive()
        content, given = given, None
        return {"type": "http.request", "body": content, "more_body": False}

    return again
