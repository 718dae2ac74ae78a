"""Runs the endpoints that take JSON, by a shorter way than the framework's.

FastAPI describes these endpoints, and would run them just so; but its way to a function takes 0.1
ms of processor time, as long as all else that the event loop does for a publish.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from duolog.bridge.http.answers import (
    NO_OBJECT,
    UNREADABLE,
    not_json,
    refusal_of,
    refusal_of_body,
)
from duolog.bridge.http.asking import RequestRefused
from duolog.errors import DuologError


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What is asked, and who answers it."""

    model: type[BaseModel]
    run: Callable[[Request, Any], Awaitable[Response]]


class Direct:
    """In front of the framework, and behind what reads bodies: nobody waits here for a client."""

    def __init__(self, application: ASGIApp, endpoints: Mapping[str, Endpoint]) -> None:
        self._application = application
        self._endpoints = endpoints

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoint = None
        if scope["type"] == "http" and scope["method"] == "POST":
            endpoint = self._endpoints.get(scope["path"])
        if endpoint is None:
            await self._application(scope, receive, send)
            return
        try:
            asked = _parsed(endpoint.model, (await receive())["body"])
            response = await endpoint.run(Request(scope, receive), asked)
        except RequestRefused as refused:
            response = refused.refusal.response()
        except DuologError as error:
            response = refusal_of(error).response()
        await response(scope, receive, send)


def _parsed(model: type[BaseModel], body: bytes) -> BaseModel:
    """Raises RequestRefused."""
    try:
        found = json.loads(body) if body else None
    except json.JSONDecodeError as error:
        raise RequestRefused(not_json(error.msg)) from None
    except (ValueError, RecursionError):
        raise RequestRefused(UNREADABLE) from None
    if not isinstance(found, dict):
        raise RequestRefused(NO_OBJECT)
    try:
        return model.model_validate(found)
    except ValidationError as error:
        raise RequestRefused(refusal_of_body(error)) from None
