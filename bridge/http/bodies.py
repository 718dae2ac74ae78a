"""Reads the bodies of the API's requests whole, within limits, before anything looks at them."""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from duolog.bridge.http.access import API
from duolog.bridge.http.answers import BUSY_RETRY_SECONDS, Refusal
from duolog.bridge.http.rules import BodyLimits

_WITH_BODY = ("POST", "PUT", "PATCH")


class _Refused(Exception):
    def __init__(self, refusal: Refusal) -> None:
        self.refusal = refusal


class _ClientLeft(Exception):
    pass


class Bodies:
    """In front of the endpoints below /v1/api/. Others have limits of their own."""

    def __init__(self, application: ASGIApp, limits: BodyLimits) -> None:
        self._application = application
        self._limits = limits
        self._held_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (
            scope["type"] != "http"
            or not scope["path"].startswith(API)
            or scope["method"] not in _WITH_BODY
        ):
            await self._application(scope, receive, send)
            return
        body = bytearray()
        try:
            await self._read(scope, receive, body)
            await self._application(scope, _replay(bytes(body), receive), send)
        except _Refused as error:
            await error.refusal.response()(scope, receive, send)
        except _ClientLeft:
            return
        finally:
            self._held_bytes -= len(body)

    async def _read(self, scope: Scope, receive: Receive, body: bytearray) -> None:
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

    async def _take(self, receive: Receive, body: bytearray) -> bool:
        """Read on; whether there is more."""
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _ClientLeft
        piece: bytes = message.get("body", b"")
        self._check_size(len(body) + len(piece))
        if self._held_bytes + len(piece) > self._limits.max_bytes_at_once:
            raise _Refused(
                Refusal(
                    503,
                    "TooBusy",
                    "The host has as many bytes of requests under way as it takes. Try again.",
                    retry_after_seconds=BUSY_RETRY_SECONDS,
                )
            )
        self._held_bytes += len(piece)
        body += piece
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
    is_given = False

    async def again() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
