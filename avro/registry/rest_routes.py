"""Tables of routes, and what the description of the API says of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from fastapi import APIRouter

from duolog.avro.registry.rest_http import Answer
from duolog.avro.registry.rest_models import ErrorBody

_CODES: Final = {
    400: "the body is not as described",
    409: "not compatible with what came before",
    413: "the body is too large",
    415: "the body is of another media type",
    40401: "no such subject",
    40402: "no such version",
    40403: "no such schema",
    40404: "the subject is deleted already",
    40405: "the subject has to be deleted softly first",
    40406: "the version is deleted already",
    40407: "the version has to be deleted softly first",
    40408: "it has no config of its own",
    40409: "it has no mode of its own",
    42201: "not a schema, or not one of a known type",
    42202: "not the number of a version",
    42203: "not a compatibility level",
    42204: "not a mode",
    42205: "not permitted in this mode",
    42206: "other schemas refer to it",
    42208: "not a name for a subject",
    42210: "not rules that can be carried out",
    42211: "the context still has subjects",
    50001: "it could not be stored",
}

BODY_CODES: Final = (400, 413, 415)
SCHEMA_CODES: Final = (*BODY_CODES, 42201)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """`call` is a method and a path, `answer` the type of a good answer's body."""

    call: str
    run: Callable[..., Any]
    answer: Any
    codes: tuple[int, ...] = ()  # of errors
    status: int = 200


def add_endpoints(router: APIRouter, endpoints: Iterable[Endpoint]) -> None:
    for endpoint in endpoints:
        method, _, path = endpoint.call.partition(" ")
        router.add_api_route(
            path,
            endpoint.run,
            methods=[method],
            response_model=endpoint.answer,
            response_class=Answer,
            status_code=endpoint.status,
            responses=_refusals(endpoint.codes),
            operation_id=endpoint.run.__name__,
        )


def _refusals(codes: tuple[int, ...]) -> dict[int | str, dict[str, Any]]:
    told: dict[int, list[str]] = {}
    for code in sorted(codes):
        status = code if code < 1000 else code // 100
        told.setdefault(status, []).append(f"{code}: {_CODES[code]}")
    described: dict[int | str, dict[str, Any]] = {
        status: {"model": ErrorBody, "description": "; ".join(parts)}
        for status, parts in told.items()
    }
    return {**described, "default": {"model": ErrorBody, "description": "All other errors."}}
