"""What all routes of the registry have in common: paths, media types, limits and errors.

- Paths are matched as they were sent: `/subjects/a%2Fb/versions` is subject `a/b`. A slash at the
  end makes no difference.
- Bodies are JSON, and say so by one of four media types: what says nothing may come from any page
  in a browser. Answers are what `Accept` likes best of three.
- Errors are a JSON object with `error_code` and `message`, also those of the framework.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote, unquote

from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Message, Receive, Scope, Send

from duolog.avro.registry.subject_access import forbidden, is_open_to, may_ask
from duolog.errors import DuologError, RegistryRefused
from duolog.server.json_pieces import (
    SMALL_BYTES,
    NotUnicode,
    check_unicode,
    has_more_values,
    has_surrogates,
)

MEDIA_TYPE: Final = "application/vnd.schemaregistry.v1+json"
_OFFERED: Final = (
    (MEDIA_TYPE, 1.0),
    ("application/vnd.schemaregistry+json", 0.9),
    ("application/json", 0.5),
)
_READ: Final = (*(name for name, _ in _OFFERED), "application/octet-stream")

_MOST_VALUES: Final = 10_000  # of a large body
_MAY_ONLY_READ: Final = (
    "This changes a subject, and takes a token without limits, or one whose subjects are named "
    "(--subjects). This token only reads the subjects of its topics."
)


class Answer(JSONResponse):
    """JSON of the registry's own media type."""

    media_type = MEDIA_TYPE


class TextAnswer(Response):
    """A schema's text as it is, which is JSON too."""

    media_type = MEDIA_TYPE


def refusal(status: int, error_code: int, message: str) -> Answer:
    return Answer({"error_code": error_code, "message": message}, status)


def http_refusal(status: int) -> Answer:
    """As Confluent's server words what no handler saw."""
    return refusal(status, status, f"HTTP {status} {HTTPStatus(status).phrase}")


def answer_to(error: Exception) -> Answer:
    """The answer for an error that was raised on purpose."""
    match error:
        case RegistryRefused():
            return refusal(error.status, error.error_code, str(error))
        case RequestValidationError():
            return _invalid_request(error)
        case HTTPException(status_code=status):
            if status == HTTPStatus.BAD_REQUEST:
                return refusal(status, status, "The request body is not JSON.")
            return http_refusal(status)
        case _:
            return refusal(500, 50001, str(error))


def _invalid_request(error: RequestValidationError) -> Answer:
    for problem in error.errors():
        place = tuple(map(str, problem["loc"]))
        if place[0] != "body":
            # A number that is none, in the path or the query: no such resource.
            return http_refusal(404)
        if place == ("body",) and (problem["type"] == "missing" or problem["input"] is None):
            return refusal(422, 422, "The request body may not be null.")
        if problem["type"] == "json_invalid":
            reason = problem.get("ctx", {}).get("error", "")
            return refusal(400, 400, f"The request body is not JSON: {reason}")
        where = ".".join(place[1:])
        return refusal(400, 400, f"The request body is not right at '{where}': {problem['msg']}")
    return http_refusal(400)


class RegistryRoute(APIRoute):
    """One endpoint. A router sets `max_body_bytes` in a class of its own."""

    max_body_bytes = 1 << 20

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] != "http":
            return Match.NONE, {}
        path = encoded_path(scope)
        for spelling in dict.fromkeys((path, path.rstrip("/"), f"{path}/")):
            match, child = super().matches({**scope, "method": _method(scope), "path": spelling})
            if match is not Match.NONE:
                outer = scope.get("path_params", {})
                child["path_params"] = {
                    name: value if name in outer else unquote(value)
                    for name, value in child["path_params"].items()
                }
                return match, child
        return Match.NONE, {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await super().handle({**scope, "method": _method(scope)}, receive, send)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            media_type = _best_media_type(request.headers.getlist("accept"))
            if media_type is None:
                return http_refusal(406)
            if not is_open_to(request, self.endpoint):
                return answer_to(forbidden("This takes a token that may use all subjects."))
            if not may_ask(request, self.endpoint):
                return answer_to(forbidden(_MAY_ONLY_READ))
            try:
                if self.body_field is not None:
                    request = await self._with_body(request)
                answer = await handler(request)
            except (DuologError, RequestValidationError, HTTPException) as error:
                answer = answer_to(error)
                _let_go_of_frames(error)
            except ClientDisconnect:
                return Response(status_code=400)  # nobody reads it
            if "content-type" in answer.headers:
                answer.headers["content-type"] = media_type
            return answer

        return handle

    async def _with_body(self, request: Request) -> Request:
        """The same request with its body read, and known to be JSON."""
        sent_as = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if sent_as and sent_as not in _READ:
            raise HTTPException(415)
        if _declared_bytes(request) > self.max_body_bytes:
            raise self._too_large()
        chunks: list[bytes] = []
        size = 0
        async for chunk in request.stream():
            size += len(chunk)
            if size > self.max_body_bytes:
                raise self._too_large()
            chunks.append(chunk)
        body = b"".join(chunks)
        if body and not sent_as:
            raise HTTPException(415)
        if len(body) <= SMALL_BYTES:
            _check_small(body)
        else:
            await run_in_threadpool(_check_large, body)
        others = [header for header in request.scope["headers"] if header[0] != b"content-type"]
        scope = {**request.scope, "headers": [*others, (b"content-type", b"application/json")]}
        return Request(scope, _replay(body))

    def _too_large(self) -> RegistryRefused:
        return RegistryRefused(
            f"The request body is larger than {self.max_body_bytes} bytes.",
            status=413,
            error_code=413,
        )


def _let_go_of_frames(error: BaseException) -> None:
    """What was raised in a thread holds the frames of its call, and they hold it: the body and all
    that was made of it would stay until garbage is looked for, which a host seldom does.
    """
    linked: BaseException | None = error
    while linked is not None:
        linked.__traceback__ = None
        linked = linked.__cause__ or linked.__context__


def _method(scope: Scope) -> str:
    """HEAD is GET; that the body is left out is the server's work."""
    method: str = scope["method"]
    return "GET" if method == "HEAD" else method


def encoded_path(scope: Scope) -> str:
    """The path as it was sent."""
    raw = scope.get("raw_path")
    if raw is None:
        return quote(scope["path"])
    return bytes(raw).partition(b"?")[0].decode("latin-1")


def _declared_bytes(request: Request) -> int:
    written = request.headers.get("content-length", "")
    return int(written) if written.isascii() and written.isdigit() else 0


def _check_large(body: bytes) -> None:
    """A schema is one text: a body with many values is no schema, and would be long in parsing."""
    if has_more_values(body, _MOST_VALUES):
        raise RegistryRefused(
            f"The request body has more than {_MOST_VALUES} JSON values.",
            status=400,
            error_code=400,
        )
    _check_small(body)


def _check_small(body: bytes) -> None:
    """Halves of surrogate pairs can be written in JSON, but not stored or sent."""
    if not has_surrogates(body):
        return
    try:
        check_unicode(json.loads(body))
    except NotUnicode:
        raise RegistryRefused(
            "The request body has a character that is not Unicode.", status=400, error_code=400
        ) from None
    except (ValueError, RecursionError):
        return  # no JSON: said elsewhere


def _replay(body: bytes) -> Receive:
    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


def _best_media_type(accept: list[str]) -> str | None:
    """None: what we can send is not what the client takes."""
    ranges = [part for line in accept for part in line.split(",") if part.strip()]
    if not ranges:
        return MEDIA_TYPE
    weights: dict[str, float] = {}
    for part in ranges:
        name, _, parameters = part.partition(";")
        quality = re.search(r"(?:^|;)\s*q\s*=\s*([0-9.]+)", parameters)
        try:
            weights[name.strip().lower()] = float(quality[1]) if quality else 1.0
        except ValueError:
            weights[name.strip().lower()] = 1.0
    best = max(_OFFERED, key=lambda offer: offer[1] * _liking(offer[0], weights))
    return best[0] if _liking(best[0], weights) > 0 else None


def _liking(media_type: str, weights: dict[str, float]) -> float:
    for name in (media_type, "application/*", "*/*"):
        if name in weights:
            return weights[name]
    return 0.0
