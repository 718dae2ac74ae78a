"""The registry as an application of its own, at the root path."""

from __future__ import annotations

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from duolog.avro.registry.rest import MAX_BODY_BYTES, registry_router
from duolog.avro.registry.rest_http import answer_to, http_refusal
from duolog.avro.registry.service import RegistryService


def registry_app(
    service: RegistryService, *, max_body_bytes: int = MAX_BODY_BYTES, cluster: str = "duolog"
) -> FastAPI:
    """Speaks Confluent's REST API. `/openapi.json` describes it; there are no pages."""
    app = FastAPI(
        title="Duolog schema registry",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        exception_handlers={HTTPException: _refused, Exception: _failed},
    )
    app.include_router(registry_router(service, max_body_bytes=max_body_bytes, cluster=cluster))
    return app


async def _refused(_: Request, error: Exception) -> Response:
    return answer_to(error)


async def _failed(_: Request, error: Exception) -> Response:  # noqa: ARG001 - the server logs it
    return http_refusal(500)
