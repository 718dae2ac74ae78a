"""The Kafka worker as a child that a drill can kill: the product's own, with a mutant if asked."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from duolog.bridge.journal import Journal
from duolog.bridge.kafka.mirror import mirroring, reading, recovering, shared
from duolog.bridge.kafka.mirror.recovery import GoOn
from duolog.bridge.kafka.worker import WorkerSettings, work

MUTANTS: dict[str, Callable[[], None]] = {}


def _mutant(apply: Callable[[], None]) -> Callable[[], None]:
    MUTANTS[apply.__name__] = apply
    return apply


@_mutant
def new_producer_each_time() -> None:
    """Each worker takes a fresh producer id, and believes what was stored."""
    recovering.first_step = lambda *_: GoOn()
    recovering.Recovery._check_target = lambda *_: None  # type: ignore[method-assign]
    begin = mirroring.KafkaMirror._begin

    async def begin_afresh(self: Any, port: Any, heads: Any, threads: Any) -> Any:
        shared = await begin(self, port, heads, threads)
        return replace(shared, producer=await port.new_producer(self.cluster_id))

    mirroring.KafkaMirror._begin = begin_afresh  # type: ignore[method-assign]


@_mutant
def without_a_producer() -> None:
    """Batches are sent as by a producer without idempotence, and what was stored is believed."""
    recovering.first_step = lambda *_: GoOn()
    encode = reading.encode_batch

    def anonymous(records: Any, producer: Any, sequence: int, compression: Any) -> bytes:
        nobody = replace(producer, producer_id=-1, producer_epoch=-1)
        return encode(records, nobody, -1, compression)

    reading.encode_batch = anonymous


def main(arguments: dict[str, Any]) -> int:
    """Mirror until it is killed or told to end; says how it is in lines of JSON."""
    if arguments.get("mutant"):
        MUTANTS[arguments["mutant"]]()
    settings = WorkerSettings.of(arguments["settings"])
    options = shared.MirrorOptions(store_every_seconds=arguments.get("store_every_seconds", 0.2))
    settings = replace(settings, options=options)

    def tell(status: Any) -> None:
        print(json.dumps(status), flush=True)

    return asyncio.run(work(settings, Journal(), tell))


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
