"""Runs the endpoints that take JSON, by a shorter way than the framework's.

FastAPI describes these endpoints, and would run them just so; but its way to a function takes 0.1
ms of processor time, as long as all else that the event loop does for a publish.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from duolog.bridge.http.answers import refusal_of
from duolog.bridge.http.asking import ANSWER, RequestRefused, token_name
from duolog.bridge.http.host import Host
from duolog.bridge.http.parsing import memory_of_large, parsed_large, parsed_small
from duolog.errors import DuologError
from duolog.server.json_pieces import SMALL_BYTES


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What is asked, and who answers it."""

    model: type[BaseModel]
    run: Callable[[Request, Any], Awaitable[Response]]
    keeps_content: bool = False  # until it has answered; others wait with little of a large body


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
        with self._host.answers.answer(token_name(scope)) as answer:
            scope[ANSWER] = answer
            response = await self._response(endpoint, Request(scope, receive))
            await response(scope, receive, send)

    async def _response(self, endpoint: Endpoint, request: Request) -> Response:
        try:
            body: bytes = (await request.receive())["body"]
            if len(body) <= SMALL_BYTES:
                asked = parsed_small(endpoint.model, body, self._host.body_limits)
                return await endpoint.run(request, asked)
            return await self._answer_to_large(endpoint, request, body)
        except RequestRefused as refused:
            return refused.refusal.response()
        except DuologError as error:
            return refusal_of(error).response()

    async def _answer_to_large(self, endpoint: Endpoint, request: Request, body: bytes) -> Response:
        host = self._host
        parse = partial(parsed_large, endpoint.model, body, host.body_limits)
        with host.request_memory.request(token_name(request.scope)) as memory:
            size = await host.parsers.run(partial(memory_of_large, body, host.body_limits))
            await memory.wait_for(size)
            asked = await host.parsers.run(parse)
            if endpoint.keeps_content:
                return await endpoint.run(request, asked)
        return await endpoint.run(request, asked)
