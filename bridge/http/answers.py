"""What an error looks like over HTTP: a status, and JSON with `error` and `code`."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from duolog.errors import (
    Conflict,
    DamagedBatch,
    DuologError,
    InvalidRequest,
    InvalidSql,
    KafkaUnreachable,
    KafkaWorkerUnavailable,
    LogClosed,
    LogMoved,
    NotFound,
    OffsetOutOfRange,
    OutcomeUnknown,
    PartitionHeld,
    QueryProcessDied,
    QueryStopped,
    RecordTooLarge,
    RegistryUnreachable,
    RequestTooLarge,
    TokenLimitReached,
    TooBusy,
    TooManyOpenFiles,
    TopicRecreated,
    Undecodable,
    WriterFault,
    WritesRefused,
)

JSON_TYPE = "application/json"
RETRY_SECONDS = 5
BUSY_RETRY_SECONDS = 1

_STATUS: tuple[tuple[type[DuologError], int], ...] = (
    (RecordTooLarge, 413),
    (RequestTooLarge, 413),
    (InvalidRequest, 422),
    (Undecodable, 422),
    (NotFound, 404),
    (OffsetOutOfRange, 416),
    (Conflict, 409),
    (WriterFault, 409),
    (QueryProcessDied, 503),
    (QueryStopped, 422),
    (TokenLimitReached, 429),
    (TooBusy, 503),
    (WritesRefused, 503),
    (LogClosed, 503),
    (LogMoved, 503),
    (TooManyOpenFiles, 503),
    (RegistryUnreachable, 503),
    (KafkaUnreachable, 503),
    (KafkaWorkerUnavailable, 503),
)
"""The first that fits; everything else is 500."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer that is no success."""

    status: int
    code: str
    error: str
    more: dict[str, Any] = field(default_factory=dict)  # goes beside error and code
    retry_after_seconds: int | None = None

    def response(self) -> Response:
        response = json_response({"error": self.error, "code": self.code, **self.more}, self.status)
        if self.retry_after_seconds is not None:
            response.headers["retry-after"] = str(self.retry_after_seconds)
        return response


def json_response(content: Any, status: int = 200) -> Response:
    return Response(
        json.dumps(content, separators=(",", ":")).encode(), status, media_type=JSON_TYPE
    )


def refusal_of(error: DuologError) -> Refusal:
    """How an error that was raised on purpose is answered."""
    status = next((number for kind, number in _STATUS if isinstance(error, kind)), 500)
    more: dict[str, Any] = {}
    if isinstance(error, OffsetOutOfRange):
        more = {
            "topic": error.topic,
            "partition_id": error.partition,
            "offset": error.offset,
            "earliest": error.earliest,
            "latest": error.latest,
        }
    elif isinstance(error, DamagedBatch):
        more = {
            "topic": error.topic,
            "partition_id": error.partition,
            "first_offset": error.first_offset,
            "next_offset": error.next_offset,
            "reason": error.reason,
        }
    elif isinstance(error, TopicRecreated):
        more = {"topic": error.topic, "topic_id": error.topic_id}
    elif isinstance(error, PartitionHeld):
        more = {"holder": error.holder}
    elif isinstance(error, InvalidSql) and error.position is not None:
        more = {"position": error.position}
    retry = None
    if status in {HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS}:
        quickly = isinstance(error, TooBusy | OutcomeUnknown | QueryProcessDied)
        retry = BUSY_RETRY_SECONDS if quickly else RETRY_SECONDS
    return Refusal(status, error.code, str(error), more, retry)


NO_OBJECT = Refusal(422, "InvalidRequest", "The body has to be a JSON object.")
UNREADABLE = Refusal(400, "NotJson", "The body is not JSON that can be read.")
NOT_UTF8 = Refusal(400, "NotJson", "The body is not UTF-8, which JSON is written in here.")
NOT_UNICODE = Refusal(400, "NotJson", "The body has a character that is not Unicode.")


def not_json(reason: str) -> Refusal:
    return Refusal(400, "NotJson", f"The body is not JSON: {reason}.")


def refusal_of_body(error: ValidationError, inside: tuple[str | int, ...] = ()) -> Refusal:
    """How a body that is not as described is answered. Never repeats what was sent.

    `inside` says which part of the body was validated.
    """
    problems = error.errors(include_url=False, include_input=False)
    first = problems[0]
    place = ".".join(map(str, (*inside, *first["loc"]))) or "the body"
    reason = first["msg"].removeprefix("Value error, ")
    more = f" ({len(problems) - 1} more mistakes.)" if len(problems) > 1 else ""
    return wrong_body(f"{place}: {reason}.{more}".replace("..", "."))


def wrong_body(why: str) -> Refusal:
    return Refusal(422, "InvalidRequest", why)


def refusal_of_http(error: HTTPException) -> Refusal:
    """How what the framework refuses is answered."""
    status = HTTPStatus(error.status_code)
    match status:
        case HTTPStatus.NOT_FOUND:
            text = "There is no such path. /openapi.json lists all."
        case HTTPStatus.METHOD_NOT_ALLOWED:
            text = "This path takes another method."
        case _:
            text = f"{status.phrase}."
    return Refusal(status, status.phrase.title().replace(" ", ""), text)


NO_SUCH_PATH = refusal_of_http(HTTPException(404))

INTERNAL = Refusal(
    500, "InternalError", "Something failed that should not; the host's log says what."
)
