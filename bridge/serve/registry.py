"""The schema registry of a log by itself, behind the same gate as a host."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from duolog.avro.embedded import registry_of
from duolog.avro.registry.app import registry_app
from duolog.bridge.http.access import REGISTRY
from duolog.bridge.http.doorkeeper import Doorkeeper
from duolog.bridge.http.front import Front
from duolog.bridge.http.gate import Gate
from duolog.bridge.journal import Journal
from duolog.bridge.metrics.tally import Tally
from duolog.bridge.serve.exposed import warn_of_open_folder
from duolog.bridge.serve.exposure import tell_of_exposure
from duolog.bridge.serve.guarded import guarded_server
from duolog.bridge.serve.options import HostOptions
from duolog.log import EmbeddedLog
from duolog.server.listener import listen, taken
from duolog.server.run import (
    allow_many_connections,
    keep_files_private,
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
    tally = Tally()
    doorkeeper = Doorkeeper(options.tokens, tally, journal)
    tell_of_exposure(options, doorkeeper, journal)
    rules = options.connection_rules.within(allow_many_connections())
    with listen(options.listen) as listener, open_log() as log:
        gate = Gate(
            registry_app(registry_of(log)),
            doorkeeper,
            tally,
            users_consume=False,
            advertised=options.advertised_origin(),
        )
        front = Front(gate, tally, journal, lambda _: REGISTRY)
        with guarded_server(front, rules, options, tally, journal) as server:
            when_started(options.url(taken(listener)), str(log.folder))
            warn_of_open_folder(log.folder, journal)
            spare_the_garbage_collector()
            server.run(sockets=[listener])
