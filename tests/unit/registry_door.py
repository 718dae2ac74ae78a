"""Registries that answer by a script, and a client of them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from duolog.avro.registry.client import RegistryClient
from duolog.avro.registry.options import RegistryOptions
from duolog.avro.registry.port import RegisteredSchema, SchemaText

SCHEMA = SchemaText('{"type":"record","name":"r","fields":[]}')
GUID = UUID("89791762-2336-4186-9674-299b90a802e2")
URL = "http://registry.test"
VERSION = {"subject": "s", "version": 3, "id": 7, "schema": SCHEMA.text}
REGISTERED = RegisteredSchema("s", 3, 7, SCHEMA)


def client_of(url: str, *, transport: Any = None, **more: Any) -> RegistryClient:
    given = {"retries.wait.ms": "1", "retries.max.wait.ms": "2"}
    given |= {name.replace("_", "."): value for name, value in more.items()}
    options = RegistryOptions.of({"schema.registry.url": url} | given).connection
    assert options is not None
    return RegistryClient(options, transport=transport)


@dataclass
class Seen:
    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Scripted:
    """An ASGI application that answers by a list, its last answer for ever."""

    answers: list[tuple[int, Any]]
    extra: list[tuple[bytes, bytes]] = field(default_factory=list)
    before: Callable[[], None] = lambda: None
    seen: list[Seen] = field(default_factory=list)

    async def __call__(
        self,
        scope: dict[str, Any],
        receive: Callable[[], Awaitable[dict[str, Any]]],
        send: Callable[[dict[str, Any]], Awaitable[None]],
    ) -> None:
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        path, query = scope["raw_path"].decode(), scope["query_string"].decode()
        self.seen.append(Seen(scope["method"], path, query, headers, body))
        self.before()
        status, answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        length = (b"content-length", str(len(content)).encode())
        await send(
            {"type": "http.response.start", "status": status, "headers": [length, *self.extra]}
        )
        await send({"type": "http.response.body", "body": content})


class Door:
    """Many applications behind one server, each below a path of its own."""

    def __init__(self) -> None:
        self._behind: dict[str, Any] = {}
        self.url = ""

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        name, _, path = scope["raw_path"].decode()[1:].partition("/")
        await self._behind[name]({**scope, "raw_path": f"/{path}".encode()}, receive, send)

    def behind(self, application: Any) -> str:
        """Where this application is reached."""
        name = str(len(self._behind))
        self._behind[name] = application
        return f"{self.url}/{name}"
