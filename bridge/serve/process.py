"""A host from its start to its end."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

from duolog.avro.embedded import registry_of
from duolog.bridge.http.access import lacks_for_call
from duolog.bridge.http.app import host_app
from duolog.bridge.http.doorkeeper import Doorkeeper
from duolog.bridge.http.host import Host
from duolog.bridge.internal.router import internal_router
from duolog.bridge.journal import Journal, Level
from duolog.bridge.local_callers import LocalCallers
from duolog.bridge.metrics.mirrored import MIRROR_WORKER, Mirrored
from duolog.bridge.metrics.tally import Tally
from duolog.bridge.serve.child import WorkerCommand
from duolog.bridge.serve.duties import Duties
from duolog.bridge.serve.exposure import tell_of_exposure, warn_of_open_folder
from duolog.bridge.serve.group_retention import GroupRetention
from duolog.bridge.serve.guarded import guarded_server
from duolog.bridge.serve.options import HostOptions
from duolog.bridge.serve.worker import Worker
from duolog.clock import Clock
from duolog.errors import HostRefused
from duolog.log import EmbeddedLog
from duolog.log.damage_model import DamagedOffsets
from duolog.server.listener import listen, taken
from duolog.server.run import (
    allow_many_connections,
    keep_files_private,
    keep_memory_together,
    spare_the_garbage_collector,
)

_SWITCH_SECONDS = 0.0001  # of Python's lock: a publish takes it five times, between reads of others


@dataclass(frozen=True, slots=True)
class Started:
    """What is said once a host can be asked."""

    url: str
    listen: str  # the address that it took: another one than in `url` where one is advertised
    log: str
    log_id: str


def serve(
    open_log: Callable[[], AbstractContextManager[EmbeddedLog]],
    options: HostOptions,
    journal: Journal,
    *,
    when_started: Callable[[Started], object],
    workers: Sequence[WorkerCommand] = (),
) -> None:
    """Serve a log until SIGINT or SIGTERM. Whoever asks while it starts is answered once it has.

    `workers` run beside it, for as long as it does. Ends in the opposite order: workers and polls,
    no new requests, writes finished, log closed.
    """
    options.check()
    keep_files_private()
    keep_memory_together()
    tally = Tally(options.metric_rules)
    doorkeeper = Doorkeeper(options.tokens, tally, journal)
    tell_of_exposure(options, doorkeeper, journal)
    rules = options.connection_rules.within(allow_many_connections())
    sys.setswitchinterval(_SWITCH_SECONDS)
    with ExitStack() as ending, listen(options.listen) as listener:
        log = ending.enter_context(open_log())
        clock = log.options.clock
        host = Host(
            log,
            clock,
            tally,
            journal,
            doorkeeper,
            options.topic_rules,
            options.body_limits,
            options.advertised_origin(),
            sql_rules=options.sql_rules,
            member_rules=options.member_rules,
            metric_rules=options.metric_rules,
        )
        running = [_worker(command, clock, tally, journal) for command in workers]
        host.ready_when_degraded = options.ready_when_degraded
        log.when_damage_is_found(partial(_tell_of_damage, journal))
        host.workers_shown = partial(_shown, running)
        host.kafka_worker = next((w.asking for w in running if w.name == MIRROR_WORKER), None)
        local = LocalCallers(log.log_id, log.secret())
        doorkeeper.trust(local)
        registry = registry_of(log)
        registry.limit(options.max_schemas_bytes)
        application = host_app(
            host,
            registry=registry,
            internal=internal_router(
                log,
                local=local,
                admits=partial(_admits, doorkeeper, journal),
                room=host.room,
                memory=host.request_memory,
                groups=host.groups,
            ),
        )
        server = ending.enter_context(
            guarded_server(
                application,
                rules,
                options,
                tally,
                journal,
                when_stopping=partial(_stop_waiting, host, running),
                before_stopping=partial(asyncio.to_thread, _stop, running),
                lifespan="on",
            )
        )
        ending.enter_context(
            Duties(
                log,
                clock,
                tally,
                journal,
                retention_every_seconds=options.retention_every_seconds,
                groups=GroupRetention(
                    log,
                    clock,
                    tally,
                    journal,
                    keep_seconds=options.group_retention_seconds,
                    with_members=host.groups_with_members,
                    both_sides=host.both_sides,
                ),
            )
        )
        bound = taken(listener)
        started = Started(options.url(bound), str(bound), str(log.folder), log.log_id)
        log.announce(started.url)
        when_started(started)
        journal.note(
            "host.started",
            url=started.url,
            listen=started.listen,
            log=started.log,
            log_id=started.log_id,
            max_connections=rules.max_connections,  # fewer than set where few files may be open
        )
        warn_of_open_folder(log.folder, journal)
        for worker in running:
            ending.enter_context(worker)
        spare_the_garbage_collector()
        server.run(sockets=[listener])
        journal.note("host.stopping")
    journal.note("host.stopped", log=started.log)


def _worker(command: WorkerCommand, clock: Clock, tally: Tally, journal: Journal) -> Worker:
    if command.name != MIRROR_WORKER:
        return Worker(command.name, command.start, clock, tally, journal)
    mirrored = Mirrored(clock)
    tally.ask(mirrored.samples)
    return Worker(command.name, command.start, clock, tally, journal, heard=mirrored.hear)


def _stop_waiting(host: Host, workers: Sequence[Worker]) -> None:
    host.stop_waiting()
    for worker in workers:
        worker.ask_to_stop()


def _stop(workers: Sequence[Worker]) -> None:
    """While the host still answers: they may have something to write down."""
    for worker in workers:
        worker.stop()


def _tell_of_damage(journal: Journal, damage: DamagedOffsets) -> None:
    journal.tell(
        Level.ERROR,
        "damage.found",
        topic=damage.topic,
        partition=damage.partition,
        first_offset=damage.first_offset,
        next_offset=damage.next_offset,
        error=damage.reason,
        said="Its records cannot be read; all others can. See `duolog topic describe` and "
        "`duolog topic skip`.",
    )


def _shown(workers: Sequence[Worker]) -> dict[str, Any]:
    return {worker.state.name: worker.state.shown() for worker in workers}


def _admits(doorkeeper: Doorkeeper, journal: Journal, token: str, call: str) -> str | None:
    """The name of a token that is enough for a call of another Duolog process. Whoever brings one
    that is known is told what it lacks, by HostRefused.
    """
    caller = doorkeeper.caller(token or None)
    if caller is None:
        return None
    why = lacks_for_call(caller, call)
    if why is not None:
        journal.note("call.refused", caller=caller.name, call=call, said=why)
        raise HostRefused(why)
    return caller.name
