"""The schema registry of a log by itself, behind the same gate as a host."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from duolog.avro.embedded import registry_of
from duolog.avro.registry.app import registry_app
from duolog.bridge.http.access import HEALTH, READY, REGISTRY
from duolog.bridge.http.answers import Refusal, json_response
from duolog.bridge.http.doorkeeper import Doorkeeper
from duolog.bridge.http.front import ENDPOINT, Front
from duolog.bridge.http.gate import Gate
from duolog.bridge.journal import Journal
from duolog.bridge.metrics.tally import Tally
from duolog.bridge.serve.exposure import tell_of_exposure, warn_of_open_folder
from duolog.bridge.serve.guarded import guarded_server
from duolog.bridge.serve.options import HostOptions
from duolog.log import EmbeddedLog
from duolog.server.listener import listen, taken
from duolog.server.run import (
    allow_many_connections,
    keep_files_private,
    keep_memory_together,
    spare_the_garbage_collector,
)


def serve_registry(
    open_log: Callable[[], AbstractContextManager[EmbeddedLog]],
    options: HostOptions,
    journal: Journal,
    *,
    when_started: Callable[[str, str], object],
) -> None:
    """Serve it at the root path until SIGINT or SIGTERM; `when_started` is told url and folder."""
    options.check()
    keep_files_private()
    keep_memory_together()
    tally = Tally()
    doorkeeper = Doorkeeper(options.tokens, tally, journal)
    tell_of_exposure(options, doorkeeper, journal)
    rules = options.connection_rules.within(allow_many_connections())
    with listen(options.listen) as listener, open_log() as log:
        registry = registry_of(log)
        registry.limit(options.max_schemas_bytes)
        gate = Gate(
            _Probes(registry_app(registry), log),
            doorkeeper,
            tally,
            users_consume=False,
            advertised=options.advertised_origin(),
        )
        front = Front(gate, tally, journal, _endpoint_of)
        with guarded_server(front, rules, options, tally, journal) as server:
            when_started(options.url(taken(listener)), str(log.folder))
            warn_of_open_folder(log.folder, journal)
            spare_the_garbage_collector()
            server.run(sockets=[listener])


def _endpoint_of(path: str) -> str:
    return path if path in (HEALTH, READY) else REGISTRY


class _Probes:
    """Answers whoever probes: /healthz and /readyz, without a token. All else is the registry's."""

    def __init__(self, registry: ASGIApp, log: EmbeddedLog) -> None:
        self._registry = registry
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = self._registry
        if scope["type"] == "http" and scope["method"] == "GET":
            if scope[ENDPOINT] == HEALTH:
                answer = json_response({"status": "ok"})
            elif scope[ENDPOINT] == READY:
                answer = self._ready()
        await answer(scope, receive, send)

    def _ready(self) -> Response:
        if self._log.is_in_place():
            return json_response({"status": "ready"})
        why = "The log's folder was moved, removed or replaced while it was served."
        return Refusal(503, "NotReady", why, retry_after_seconds=1).response()
