"""The registry as routes that another application includes.

    app.include_router(registry_router(service), prefix="/registry")

Below the prefix every path is the registry's: what it does not know is answered in its own form.
Without a prefix it has to be included last.
Below `/contexts/{context}` all of it is there once more, for the subjects of that context.
"""

from __future__ import annotations

from importlib.metadata import version as installed_version
from typing import Any, Final

from fastapi import APIRouter
from starlette.routing import Match
from starlette.types import Receive, Scope, Send

from duolog.avro.registry.rest_http import RegistryRoute, encoded_path, http_refusal
from duolog.avro.registry.rest_routes import add_endpoints
from duolog.avro.registry.rest_schemas import SchemaRoutes
from duolog.avro.registry.rest_settings import MetadataRoutes, SettingsRoutes
from duolog.avro.registry.rest_subjects import SubjectRoutes
from duolog.avro.registry.service import RegistryService

MAX_BODY_BYTES: Final = 1 << 20

_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "DELETE")


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
    add_endpoints(inner, SubjectRoutes(service).endpoints())
    add_endpoints(inner, schemas.endpoints())
    add_endpoints(inner, SettingsRoutes(service).endpoints())

    router = APIRouter(route_class=route_class)
    add_endpoints(router, MetadataRoutes(installed_version("duolog"), cluster).endpoints())
    router.include_router(inner)
    add_endpoints(router, schemas.context_endpoints())
    router.include_router(inner, prefix="/contexts/{context}", include_in_schema=False)
    unknown: Any = _Unknown(router)  # an ASGI application, which routes may be
    router.add_route("/{rest:path}", unknown, include_in_schema=False)
    return router


class _Unknown:
    """Answers for all other paths below the prefix, and for other methods of those known."""

    def __init__(self, router: APIRouter) -> None:
        self._known = list(router.routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        prefix_characters = len(scope["path"]) - len(scope["path_params"]["rest"])
        path = f"/{encoded_path(scope)[prefix_characters:]}"
        asked = {**scope, "raw_path": path.encode(), "root_path": "", "path_params": {}}
        allowed = [
            method
            for method in _METHODS
            if any(
                route.matches({**asked, "method": method})[0] is Match.FULL for route in self._known
            )
        ]
        answer = http_refusal(405 if allowed else 404)
        if allowed:
            answer.headers["allow"] = ", ".join(allowed)
        await answer(scope, receive, send)
