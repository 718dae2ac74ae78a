"""What the endpoints share: one log, threads for its calls, and who waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from duolog.bridge.http.doorkeeper import Doorkeeper
from duolog.bridge.http.landing import Landing
from duolog.bridge.http.places import Places
from duolog.bridge.http.rules import BodyLimits, TopicRules
from duolog.bridge.http.workers import READ_THREADS, WRITE_THREADS, Workers
from duolog.bridge.journal import Journal
from duolog.bridge.metrics.tally import Tally
from duolog.bridge.sql.rules import SqlRules
from duolog.bridge.waiting import WaitingRoom
from duolog.clock import Clock
from duolog.log import EmbeddedLog


@dataclass(slots=True)
class Host:
    """A log that is served. `open` and `close` run on the event loop that serves it."""

    log: EmbeddedLog
    clock: Clock
    tally: Tally
    journal: Journal
    doorkeeper: Doorkeeper
    topic_rules: TopicRules = field(default_factory=TopicRules)
    body_limits: BodyLimits = field(default_factory=BodyLimits)
    known_as: str | None = None  # its name for others, when that is not one of this machine
    sql_rules: SqlRules = field(default_factory=SqlRules)
    workers_shown: Callable[[], Mapping[str, Any]] = dict  # its worker processes, by name
    places: Places = field(default_factory=Places)
    readers: Workers = field(init=False)
    writers: Workers = field(init=False)
    watchers: Workers = field(init=False)  # health and metrics: never behind others in a queue
    landing: Landing = field(init=False)  # of what is written without a thread
    room: WaitingRoom = field(init=False)
    is_open: bool = False
    _loop: asyncio.AbstractEventLoop = field(init=False)

    def __post_init__(self) -> None:
        self.room = WaitingRoom(self.log)

    def open(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.readers = Workers("read", READ_THREADS)
        self.writers = Workers("write", WRITE_THREADS)
        self.watchers = Workers("watch", 1)
        self.landing = Landing()
        self.is_open = True

    def stop_waiting(self) -> None:
        """Have all polls answered now. May be called from a signal's handler."""
        if self.is_open:
            self._loop.call_soon_threadsafe(self.room.stop)

    def close(self) -> None:
        """Finish what is under way."""
        self.is_open = False
        self.room.close()
        for workers in (self.readers, self.writers, self.watchers):
            workers.close()
