"""The registry as routes that another application includes.

    app.include_router(registry_router(service), prefix="/registry")

Below the prefix every path is the registry's: what it does not know is answered in its own form.
Below `/contexts/{context}` all of it is there once more, for the subjects of that context.
"""

from __future__ import annotations

from importlib.metadata import version as installed_version
from typing import Final

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match

from duolog.avro.registry.rest_http import RegistryRoute, http_refusal
from duolog.avro.registry.rest_schemas import SchemaRoutes
from duolog.avro.registry.rest_settings import MetadataRoutes, SettingsRoutes
from duolog.avro.registry.rest_subjects import SubjectRoutes
from duolog.avro.registry.service import RegistryService

MAX_BODY_BYTES: Final = 1 << 20

_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE")


def registry_router(
    service: RegistryService,
    *,
    max_body_bytes: int = MAX_BODY_BYTES,
    cluster: str = "duolog",
) -> APIRouter:
    """`cluster` is what the registry calls the Kafka cluster that it stands beside."""
    route_class = type("Route", (RegistryRoute,), {"max_body_bytes": max_body_bytes})
    inner = APIRouter(route_class=route_class)
    schemas = SchemaRoutes(service)
    SubjectRoutes(service).add_to(inner)
    schemas.add_to(inner)
    SettingsRoutes(service).add_to(inner)

    router = APIRouter(route_class=route_class)
    MetadataRoutes(installed_version("duolog"), cluster).add_to(router)
    router.include_router(inner)
    schemas.add_contexts_to(router)
    router.include_router(inner, prefix="/contexts/{context}", include_in_schema=False)
    _add_rest(router)
    return router


def _add_rest(router: APIRouter) -> None:
    """All other paths below the prefix."""
    known = list(router.routes)

    async def refuse(request: Request, rest: str) -> Response:
        scope = {**request.scope, "path": f"/{rest}", "raw_path": None, "root_path": ""}
        for route in known:
            if route.matches(scope)[0] is not Match.NONE:
                return http_refusal(405)
        return http_refusal(404)

    router.add_api_route("/{rest:path}", refuse, methods=list(_METHODS), include_in_schema=False)
