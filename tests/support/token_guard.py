"""Lets in those who bring a token, in front of any application: as other registries do it."""

from __future__ import annotations

import hmac
import json
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

from pydantic import SecretStr

from duolog.server.authorization import token_in

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_UNAUTHORIZED = json.dumps({"error_code": 401, "message": "Unauthorized"}).encode()


class TokenGuard:
    """Lets only those pass who bring one of the tokens. Without tokens, everybody."""

    def __init__(self, application: Application, tokens: Sequence[SecretStr]) -> None:
        self._application = application
        self._tokens = [token.get_secret_value().encode() for token in tokens]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._tokens and not self._admits(scope):
            await send(
                {
                    "type": "http.response.start",
                    "status": 401,
                    "headers": [
                        (b"content-type", b"application/vnd.schemaregistry.v1+json"),
                        (b"www-authenticate", b'Basic realm="duolog"'),
                        (b"content-length", b"%d" % len(_UNAUTHORIZED)),
                    ],
                }
            )
            await send({"type": "http.response.body", "body": _UNAUTHORIZED})
            return
        await self._application(scope, receive, send)

    def _admits(self, scope: Scope) -> bool:
        token = token_in(scope["headers"])
        if not token:
            return False
        # All are compared, so that the time taken does not tell which one came close.
        brought = token.encode("latin-1")
        return sum(hmac.compare_digest(brought, known) for known in self._tokens) > 0
