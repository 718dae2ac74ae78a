"""Runs the endpoints that take JSON, by a shorter way than the framework's.

FastAPI describes these endpoints, and would run them just so; but its way to a function takes 0.1
ms of processor time, as long as all else that the event loop does for a publish.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from duolog.bridge.http.answers import refusal_of
from duolog.bridge.http.asking import RequestRefused
from duolog.bridge.http.host import Host
from duolog.bridge.http.parsing import parsed_large, parsed_small
from duolog.errors import DuologError
from duolog.server.json_pieces import SMALL_BYTES


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What is asked, and who answers it."""

    model: type[BaseModel]
    run: Callable[[Request, Any], Awaitable[Response]]


class Direct:
    """In front of the framework, and behind what reads bodies: nobody waits here for a client."""

    def __init__(self, application: ASGIApp, host: Host, endpoints: Mapping[str, Endpoint]) -> None:
        self._application = application
        self._host = host
        self._endpoints = endpoints

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoint = None
        if scope["type"] == "http" and scope["method"] == "POST":
            endpoint = self._endpoints.get(scope["path"])
        if endpoint is None:
            await self._application(scope, receive, send)
            return
        try:
            asked = await self._parsed(endpoint.model, (await receive())["body"])
            response = await endpoint.run(Request(scope, receive), asked)
        except RequestRefused as refused:
            response = refused.refusal.response()
        except DuologError as error:
            response = refusal_of(error).response()
        await response(scope, receive, send)

    async def _parsed(self, model: type[BaseModel], body: bytes) -> BaseModel:
        """Raises RequestRefused and InvalidRequest; TooBusy where too many are large."""
        limits = self._host.body_limits
        if len(body) <= SMALL_BYTES:
            return parsed_small(model, body, limits)
        return await self._host.parsers.run(lambda: parsed_large(model, body, limits))
