"""The host as `duolog serve` runs it, in a process that can be told where to die."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

from duolog.avro.embedded import open_log
from duolog.bridge.internal.parts import StagedUploads
from duolog.bridge.journal import Journal
from duolog.bridge.serve.options import HostOptions
from duolog.bridge.serve.process import Started, serve
from duolog.log.options import LogOptions
from duolog.server.address import Address
from tests.drills.host.mutants import MUTANTS
from tests.drills.worker import say

_LOCK_WAIT_SECONDS = 60.0
PART_RECEIVED = "part.received"
"""A place to die beside those of the log: a part was uploaded, its append has not come."""


def host(
    folder: str,
    listen: str,
    die_at: tuple[str, int] | None = None,
    mutant: str | None = None,
) -> None:
    """The role: serve until a signal ends it, or until it passes a place for the nth time."""
    if mutant is not None:
        MUTANTS[mutant]()
    pass_by = _dying(*die_at) if die_at is not None else _nothing
    _watch_uploads(pass_by)
    # Without a cache, so that reads see what is stored; several threads may want the lock too.
    options = LogOptions(
        fault=pass_by, min_free_bytes=0, cache_bytes=0, lock_wait_seconds=_LOCK_WAIT_SECONDS
    )

    def started(running: Started) -> None:
        say(["started", running.url])

    serve(
        lambda: open_log(folder, options=options),
        HostOptions(Address.of(listen)),
        Journal(),
        when_started=started,
    )


def _dying(place: str, nth: int) -> Any:
    """kill -9 by itself, at the nth time."""
    left = nth
    guard = threading.Lock()  # of `left`: appends and uploads run in several threads

    def pass_by(reached: str) -> None:
        nonlocal left
        if reached != place:
            return
        with guard:
            left -= 1
            if left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return pass_by


def _nothing(_: str) -> None:
    pass


def _watch_uploads(pass_by: Any) -> None:
    receive = StagedUploads.receive

    async def received(self: StagedUploads, *arguments: Any) -> None:
        await receive(self, *arguments)
        pass_by(PART_RECEIVED)

    StagedUploads.receive = received  # type: ignore[assignment, method-assign]
