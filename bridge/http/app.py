"""All endpoints of a host as one application."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import APIRouter, FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from duolog.avro.registry.rest import registry_router
from duolog.bridge.http import access
from duolog.bridge.http.answers import (
    INTERNAL,
    Refusal,
    refusal_of,
    refusal_of_http,
)
from duolog.bridge.http.begun import GroupsCounted
from duolog.bridge.http.bodies import Bodies
from duolog.bridge.http.consuming import Consuming
from duolog.bridge.http.direct import Direct, Endpoint
from duolog.bridge.http.front import ENDPOINT, REQUEST_ID, Front
from duolog.bridge.http.gate import Gate
from duolog.bridge.http.host import Host
from duolog.bridge.http.models import (
    AckAnswer,
    AckRequest,
    ConsumeAnswer,
    ConsumeRequest,
    ErrorAnswer,
    Health,
    HeartbeatRequest,
    LastSequenceAnswer,
    LastSequenceRequest,
    LeaveRequest,
    MemberAnswer,
    OffsetsAnswer,
    OffsetsRequest,
    PublishAnswer,
    PublishRequest,
    SqlAnswer,
    SqlAnswers,
    SqlRequest,
)
from duolog.bridge.http.shown_arrow import MEDIA_TYPE as ARROW_TYPE
from duolog.bridge.http.sql import Sql
from duolog.bridge.http.topics import Topics
from duolog.bridge.http.watching import Watching
from duolog.errors import DuologError

_TOPIC_ERRORS = {
    400: "The body is not JSON.",
    401: "No token, or one that is not known.",
    403: "The token's role is too low, or it may not use the topic or the group.",
    404: "No such topic or partition.",
    408: "The body did not arrive in time.",
    413: "The body or a record is too large.",
    415: "The body is not said to be JSON.",
    422: "The body is not as described.",
    500: "Something failed that should not.",
    429: "The token has as many groups, or members of groups, as it may; Retry-After says when to "
    "try again.",
    503: "Not now; Retry-After says when to try again.",
}


def host_app(host: Host, *, registry: Any, internal: APIRouter | None = None) -> ASGIApp:
    """`registry` is the log's own; `internal` the routes for other Duolog processes."""
    consuming, topics, watching = Consuming(host), Topics(host), Watching(host)
    sql = Sql(host)
    app = FastAPI(
        title="Duolog",
        version=version("duolog"),
        summary="One topic log, for native consumers over HTTP.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_lifespan(host, sql),
        exception_handlers={
            DuologError: _answered(lambda error: refusal_of(error)),
            HTTPException: _refused_by_the_framework,
            Exception: _failed(host),
        },
    )
    _add_topic_routes(app, consuming, topics, sql)
    _add_watching_routes(app, watching)
    if internal is not None:
        app.include_router(internal, include_in_schema=False)
    app.include_router(registry_router(registry), prefix=access.REGISTRY, include_in_schema=False)
    direct = Direct(
        app,
        host,
        {
            access.CONSUME: Endpoint(ConsumeRequest, consuming.consume),
            access.ACK: Endpoint(AckRequest, topics.ack),
            access.HEARTBEAT: Endpoint(HeartbeatRequest, topics.heartbeat),
            access.LEAVE: Endpoint(LeaveRequest, topics.leave),
            access.OFFSETS: Endpoint(OffsetsRequest, topics.latest_offsets),
            access.PUBLISH: Endpoint(PublishRequest, topics.publish, keeps_content=True),
            access.LAST_SEQUENCE: Endpoint(LastSequenceRequest, topics.last_sequence),
            access.SQL: Endpoint(SqlRequest, sql.sql),
        },
    )
    counted = GroupsCounted(direct, host.doorkeeper, host.member_rules.max_stored_groups_of_token)
    bodies = Bodies(counted, host.body_limits)
    gate = Gate(
        bodies,
        host.doorkeeper,
        host.tally,
        users_consume=host.topic_rules.allow_user_role_consume,
        advertised=host.advertised,
    )
    return Front(gate, host.tally, host.journal)


def _add_topic_routes(app: FastAPI, consuming: Consuming, topics: Topics, sql: Sql) -> None:
    arrow: dict[str, Any] = {ARROW_TYPE: {"schema": {"type": "string", "format": "binary"}}}
    for path, run, answer, content, more in (
        (
            access.CONSUME,
            consuming.consume,
            ConsumeAnswer,
            arrow,
            {
                409: "Another consumer of the group has the partition (PartitionHeld), or the "
                "member is to ask again which ones it has (StaleGeneration, UnknownMember).",
                416: "The offset is not kept (OffsetOutOfRange).",
            },
        ),
        (
            access.ACK,
            topics.ack,
            AckAnswer,
            {},
            {
                409: "The offset was never written, or the partition is not the member's "
                "(StaleGeneration, UnknownMember, PartitionRevoked).",
            },
        ),
        (
            access.HEARTBEAT,
            topics.heartbeat,
            MemberAnswer,
            {},
            {409: "The member is to ask again which partitions it has."},
        ),
        (access.LEAVE, topics.leave, MemberAnswer, {}, {409: "TopicRecreated."}),
        (access.OFFSETS, topics.latest_offsets, OffsetsAnswer, {}, {409: "TopicRecreated."}),
        (
            access.PUBLISH,
            topics.publish,
            PublishAnswer,
            {},
            {409: "The writer's sequence does not go on from what it sent."},
        ),
        (access.LAST_SEQUENCE, topics.last_sequence, LastSequenceAnswer, {}, {}),
        (
            access.SQL,
            sql.sql,
            SqlAnswer | SqlAnswers,
            arrow,
            {
                404: "No such topic, partition, group or route.",
                409: "A name that is taken, a group that is being answered, and the like.",
                416: "The offset is not kept (OffsetOutOfRange).",
                422: "A mistake in a statement; position says where. Or a query beyond its limits.",
            },
        ),
    ):
        app.add_api_route(
            path,
            run,
            methods=["POST"],
            operation_id=run.__name__,
            response_model=None,
            responses={
                200: {"model": answer, "content": content, "description": "Done."},
                **_refusals({**_TOPIC_ERRORS, **more}),
            },
        )


def _add_watching_routes(app: FastAPI, watching: Watching) -> None:
    described: dict[str, dict[int | str, dict[str, Any]]] = {
        access.HEALTH: {200: {"model": Health}},
        access.READY: {200: {"model": Health}, **_refusals({503: "Not ready, and why."})},
        access.METRICS: {
            200: {"content": {"text/plain": {"schema": {"type": "string"}}}},
            **_refusals({each: _TOPIC_ERRORS[each] for each in (401, 403, 503)}),
        },
    }
    for path, run in (
        (access.HEALTH, watching.health),
        (access.READY, watching.ready),
        (access.METRICS, watching.metrics),
    ):
        app.add_api_route(
            path,
            run,
            methods=["GET"],
            operation_id=run.__name__,
            response_model=None,
            response_class=Response,
            responses=described[path],
        )
    for path, run in ((access.HEALTH, watching.health), (access.READY, watching.ready)):
        # The server leaves the body out.
        app.add_api_route(path, run, methods=["HEAD"], response_model=None, include_in_schema=False)


def _refusals(described: dict[int, str]) -> dict[int | str, dict[str, Any]]:
    return {
        status: {"model": ErrorAnswer, "description": text} for status, text in described.items()
    }


def _answered(refusal: Callable[[Any], Refusal]) -> Callable[[Request, Exception], Any]:
    async def answer(_: Request, error: Exception) -> Response:
        return refusal(error).response()

    return answer


def _failed(host: Host) -> Callable[[Request, Exception], Any]:
    async def answer(request: Request, error: Exception) -> Response:
        scope = request.scope
        host.journal.error("request.failed", error, id=scope[REQUEST_ID], endpoint=scope[ENDPOINT])
        return INTERNAL.response()

    return answer


async def _refused_by_the_framework(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for these
    response = refusal_of_http(error).response()
    response.headers.update(error.headers or {})
    return response


def _lifespan(host: Host, sql: Sql) -> Callable[[FastAPI], Any]:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        host.open()
        try:
            yield
        finally:
            await sql.close()
            host.close()

    return lifespan
