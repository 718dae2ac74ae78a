"""The Kafka worker as a child that a drill can kill: the product's own, with a mutant if asked."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from dataclasses import replace
from typing import Any

from duolog.bridge.journal import Journal
from duolog.bridge.kafka.mirror import mirroring, port, shared
from duolog.bridge.kafka.worker import WorkerSettings, work
from duolog.clock import SystemClock
from tests.drills.mirror.mutants import MUTANTS


def main(arguments: dict[str, Any]) -> int:
    """Mirror until it is killed or told to end; says how it is in lines of JSON."""
    if arguments.get("mutant"):
        MUTANTS[arguments["mutant"]]()
    if arguments.get("clock_ahead_ms"):
        _set_clock(arguments["clock_ahead_ms"])
    if arguments.get("freezes_with"):
        _freeze_once(arguments["freezes_with"])
    settings = WorkerSettings.of(arguments["settings"])
    options = shared.MirrorOptions(
        store_every_seconds=arguments.get("store_every_seconds", 0.2),
        look_every_seconds=0.2,
        retry_halted_seconds=0.3,
        longest_pause_seconds=0.5,
    )
    settings = replace(settings, options=options)

    def tell(status: Any) -> None:
        print(json.dumps(status), flush=True)

    return asyncio.run(work(settings, Journal(), tell))


def _set_clock(ahead_ms: int) -> None:
    class Ahead(SystemClock):
        """The machine's clock is wrong."""

        def now_ms(self) -> int:
            return super().now_ms() + ahead_ms

    mirroring.SystemClock = Ahead  # type: ignore[attr-defined]


def _freeze_once(batches: int) -> None:
    """Stand still, as by SIGSTOP, before a batch is sent while so many others have no answer."""
    produce, under_way, frozen = port.KafkaPort.produce, 0, False

    async def send(self: port.KafkaPort, *sent: Any) -> Any:
        nonlocal under_way, frozen
        under_way += 1
        try:
            if under_way > batches and not frozen:
                frozen = True
                os.kill(os.getpid(), signal.SIGSTOP)
            return await produce(self, *sent)
        finally:
            under_way -= 1

    port.KafkaPort.produce = send  # type: ignore[method-assign, assignment]


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
