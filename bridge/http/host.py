"""What the endpoints share: one log, threads for its calls, and who waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from duolog.bridge.http.doorkeeper import Doorkeeper
from duolog.bridge.http.places import Places
from duolog.bridge.http.rules import BodyLimits, TopicRules
from duolog.bridge.http.waiting import WaitingRoom
from duolog.bridge.http.workers import READ_THREADS, WRITE_THREADS, Workers
from duolog.bridge.journal import Journal
from duolog.bridge.metrics.tally import Tally
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
    places: Places = field(default_factory=Places)
    readers: Workers = field(init=False)
    writers: Workers = field(init=False)
    watchers: Workers = field(init=False)  # health and metrics: never behind others in a queue
    room: WaitingRoom = field(init=False)
    is_open: bool = False
    _when_stopping: list[Callable[[], object]] = field(default_factory=list)
    _loop: asyncio.AbstractEventLoop = field(init=False)

    def open(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.readers = Workers("read", READ_THREADS)
        self.writers = Workers("write", WRITE_THREADS)
        self.watchers = Workers("watch", 1)
        self.room = WaitingRoom(self.log)
        self.is_open = True

    def call_when_stopping(self, call: Callable[[], object]) -> None:
        """Call this, on the event loop, when nobody is to wait any more."""
        self._when_stopping.append(call)

    def stop_waiting(self) -> None:
        """Have all polls answered now. May be called from a signal's handler."""
        if self.is_open:
            for call in (self.room.stop, *self._when_stopping):
                self._loop.call_soon_threadsafe(call)

    def close(self) -> None:
        """Finish what is under way."""
        self.is_open = False
        self.room.close()
        for workers in (self.readers, self.writers, self.watchers):
            workers.close()
