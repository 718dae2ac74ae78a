"""What all partitions of a mirror share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, ParamSpec, TypeVar

from duolog.bridge.kafka.mirror.budget import Budget
from duolog.bridge.kafka.mirror.heads import Heads
from duolog.bridge.kafka.mirror.pieces import Fuse
from duolog.bridge.kafka.mirror.port import KafkaPort
from duolog.bridge.kafka.mirror.topics import KafkaTopics
from duolog.bridge.kafka.settings import KafkaSettings
from duolog.clock import Clock, SystemClock
from duolog.log.access import LogAccess
from duolog.log.mirror_model import MirrorProducer

_PORTIONS: Final = 16

T = TypeVar("T")
P = ParamSpec("P")


class WhenRefused(StrEnum):
    """What becomes of records that Kafka does not take."""

    DLQ = "dlq"  # they go to a topic of the log, and the mirror goes on
    HALT = "halt"


@dataclass(frozen=True, slots=True)
class MirrorOptions:
    """How a mirror works."""

    when_refused: WhenRefused = WhenRefused.DLQ
    offset_header: str | None = None  # which header has a record's log offset, if any
    fuse: Fuse = field(default_factory=Fuse)
    bytes_in_flight: int = 32 << 20
    batches_in_flight: int = 5  # of a partition: so many a broker remembers
    store_every_seconds: float = 0.5
    look_every_seconds: float = 1.0  # for new topics and partitions
    suspect_every_seconds: float = 5.0  # records of others are looked at for copies of ours
    retry_halted_seconds: float = 5.0
    longest_pause_seconds: float = 2.0


Say = Callable[..., object]
"""Called with an event's name and its fields."""


@dataclass(frozen=True, slots=True)
class Shared:
    """One log, one cluster, and the means between them."""

    log: LogAccess
    port: KafkaPort
    topics: KafkaTopics
    settings: KafkaSettings
    options: MirrorOptions
    producer: MirrorProducer
    heads: Heads
    budget: Budget
    threads: ThreadPoolExecutor
    asking: ThreadPoolExecutor  # what may wait for Kafka for long, while the others go on
    say: Say
    clock: Clock = field(default_factory=SystemClock)
    portions: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_PORTIONS))
    """Of what is read and not sent yet, over all partitions: each takes a few MiB."""

    async def in_thread(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do what blocks, or what takes the processor for long."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.threads, lambda: work(*args, **kwargs))

    async def in_asking_thread(self, ask: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Ask Kafka what only its blocking client can ask."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.asking, lambda: ask(*args, **kwargs))


def shown(error: BaseException) -> dict[str, Any]:
    """An error as an event carries it."""
    return {"code": type(error).__name__, "error": str(error)}
