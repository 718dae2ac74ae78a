"""A host with its Kafka worker, as `duolog serve` runs them, with a mutant in the worker if asked.

`python -m tests.drills.mirror.served '{"folder": …, "bootstrap_servers": …}'` is the host, which
starts this module once more as its worker.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from functools import partial

from duolog.avro.embedded import open_log
from duolog.bridge.journal import Journal
from duolog.bridge.kafka import worker
from duolog.bridge.kafka.mirror.shared import MirrorOptions
from duolog.bridge.serve.child import WorkerCommand
from duolog.bridge.serve.options import HostOptions
from duolog.bridge.serve.process import serve
from duolog.log.options import LogOptions
from duolog.server.address import Address
from tests.drills.mirror.mutants import MUTANTS
from tests.drills.worker import say

MODULE = "tests.drills.mirror.served"
_MUTANT = "DRILL_MUTANT"
_END_WITH_PARENT = 1  # PR_SET_PDEATHSIG
_STORE_EVERY_SECONDS = 10.0  # seldom, so that a kill leaves more to find out
_AHEAD_SECONDS = 86_400.0
_LOCK_WAIT_SECONDS = 60.0  # a sink may have the log meanwhile


def host(folder: str, bootstrap_servers: str, mutant: str | None = None) -> None:
    """Serve until killed."""
    ctypes.CDLL(None).prctl(_END_WITH_PARENT, signal.SIGKILL)
    if mutant is not None:
        os.environ[_MUTANT] = mutant
    # Times that Kafka refuses are written on purpose: as by logs from before they were refused.
    options = LogOptions(
        min_free_bytes=0,
        lock_wait_seconds=_LOCK_WAIT_SECONDS,
        max_timestamp_ahead_seconds=_AHEAD_SECONDS,
    )
    told = {"folder": folder, "bootstrap_servers": bootstrap_servers}
    serve(
        lambda: open_log(folder, options=options),
        HostOptions(Address.of("127.0.0.1:0")),
        Journal(),
        when_started=lambda _: say("started"),
        workers=[WorkerCommand("kafka", MODULE, told)],
    )


def mirror() -> int:
    """The worker."""
    if _MUTANT in os.environ:
        MUTANTS[os.environ[_MUTANT]]()
    seldom = partial(MirrorOptions, store_every_seconds=_STORE_EVERY_SECONDS)
    worker.MirrorOptions = seldom  # type: ignore[attr-defined, assignment]
    return worker.main()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        host(**json.loads(sys.argv[1]))
    else:
        sys.exit(mirror())
