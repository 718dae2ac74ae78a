"""How many clients may be connected, and how long they may leave a request unfinished.

uvicorn ends a connection that is silent between two requests, and has no limit of time within one:
a client that sends a byte now and then keeps its place for ever. Here one look a second passes over
all connections, so that a request costs nothing but noting the time. A host that stops waits for
no client either: uvicorn would, for requests that are half there and answers that nobody takes.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import Any, Final

from duolog.bridge.journal import Journal
from duolog.bridge.metrics.names import CONNECTIONS, CONNECTIONS_LATE, CONNECTIONS_REFUSED
from duolog.bridge.metrics.tally import Tally
from duolog.bridge.serve.hanging_up import LATE, STOPPING, hang_up, turning_away
from duolog.errors import InvalidSetting

_LOOK_EVERY_SECONDS: Final = 1.0
_TELL_EVERY_SECONDS: Final = 60.0
_LEAST_MARGIN: Final = 16
_LOOK_WHILE_STOPPING_EVERY_SECONDS: Final = 0.1
_TAKE_LAST_ANSWER_WITHIN_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class ConnectionRules:
    """What clients are held to, whoever they are."""

    max_connections: int = 10_000
    headers_within_seconds: float = 10.0  # from the first byte, or from connecting
    body_silence_seconds: float = 30.0  # between two pieces of a body

    def __post_init__(self) -> None:
        if self.max_connections < 1:
            raise InvalidSetting(f"max_connections must be 1 or more; got {self.max_connections}.")
        for name in ("headers_within_seconds", "body_silence_seconds"):
            if not 0 < getattr(self, name) < float("inf"):
                raise InvalidSetting(f"{name} must be above 0; got {getattr(self, name)}.")

    def within(self, open_files: int) -> ConnectionRules:
        """The same where a process may open so many files: some are for the log."""
        if open_files < 0:  # as many as it likes
            return self
        most = max(1, open_files * 3 // 4)
        return replace(self, max_connections=min(self.max_connections, most))


@dataclass(slots=True)
class Progress:
    """How far a client has come; times are the event loop's."""

    begun_at: float  # connected, or the first byte of its next request
    heard_at: float
    has_spoken: bool = False
    undigested_bytes: int = 0  # came since the last headers, or piece of a body, were whole
    untaken_bytes: int = 0  # of an answer, when we looked last
    taken_at: float = 0.0  # when the client took some of it last, or had nothing to take

    def forgive(self, seconds: float) -> None:
        """For so long the host was busy itself, and what the client had sent lay unread."""
        self.begun_at += seconds
        self.heard_at += seconds
        self.taken_at += seconds

    def look_at_untaken(self, size: int, now: float) -> None:
        """So much of an answer waits for the client to take it."""
        if not size or size != self.untaken_bytes:
            self.taken_at = now
        self.untaken_bytes = size


def missing(
    progress: Progress,
    rules: ConnectionRules,
    now: float,
    *,
    is_answering: bool,
    is_resting: bool,
    has_more_body: bool,
) -> str | None:
    """What should have come by now: "headers", "body", or that it takes its answer ("taking").

    `is_resting`: between two requests, which the keep-alive limit is for.
    """
    if progress.untaken_bytes and now - progress.taken_at >= rules.body_silence_seconds:
        return "taking"
    if is_answering:
        is_silent = now - progress.heard_at >= rules.body_silence_seconds
        return "body" if has_more_body and is_silent else None
    is_late = now - progress.begun_at >= rules.headers_within_seconds
    return "headers" if is_late and not is_resting else None


class Connections:
    """All connections of one server. Used on its event loop."""

    def __init__(self, rules: ConnectionRules, tally: Tally, journal: Journal) -> None:
        self._rules = rules
        self._tally = tally
        self._journal = journal
        self._open: set[Any] = set()
        self._turned_away: set[Any] = set()
        self._is_looking = False
        self._due_at = 0.0
        self._told_at = float("-inf")
        self._kept_since: dict[Any, float] = {}  # while the host stops, by clients alone

    def made(self, connection: Any) -> None:
        """A client has connected."""
        open_before = len(self._open)
        self._open.add(connection)
        self._tally.put(CONNECTIONS, number=len(self._open))
        most = self._rules.max_connections
        if open_before - len(self._turned_away) >= most:
            self._turn_away(connection, most)
        if not self._is_looking:
            self._look_later(connection.loop)

    def lost(self, connection: Any) -> None:
        self._open.discard(connection)
        self._turned_away.discard(connection)
        self._kept_since.pop(connection, None)
        self._tally.put(CONNECTIONS, number=len(self._open))

    def stop(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let no client keep the host from its end, from now on: hang up on those whose request is
        still coming, and in time on those that do not take their answer.
        """
        now = loop.time()
        for connection in tuple(self._open):
            if _is_being_asked(connection):
                hang_up(connection, STOPPING)
            if not _is_kept_by_client(connection):
                self._kept_since.pop(connection, None)
            elif now - self._kept_since.setdefault(connection, now) >= (
                _TAKE_LAST_ANSWER_WITHIN_SECONDS
            ):
                connection.transport.abort()
        loop.call_later(_LOOK_WHILE_STOPPING_EVERY_SECONDS, self.stop, loop)

    def _turn_away(self, connection: Any, most: int) -> None:
        self._tally.add(CONNECTIONS_REFUSED)
        self._tell(connection.loop.time(), most)
        if len(self._turned_away) >= max(_LEAST_MARGIN, most // 10):
            connection.transport.abort()
            return
        # Its request is still read: who is hung up on in the middle of sending sees no answer.
        self._turned_away.add(connection)
        connection.app = turning_away(connection.app, most)

    def _tell(self, now: float, most: int) -> None:
        if now - self._told_at >= _TELL_EVERY_SECONDS:
            self._told_at = now
            self._journal.warn("connections.full", most=most)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        own_delay = now - self._due_at
        for connection in tuple(self._open):
            connection.progress.forgive(own_delay)
            cycle = connection.cycle
            is_answering = cycle is not None and not cycle.response_complete
            if connection.flow.read_paused or _waits_for_leave(cycle):  # it is we who keep it
                connection.progress.heard_at = now
            untaken = connection.transport.get_write_buffer_size()
            connection.progress.look_at_untaken(untaken, now)
            found = missing(
                connection.progress,
                self._rules,
                now,
                is_answering=is_answering,
                is_resting=connection.timeout_keep_alive_task is not None,
                has_more_body=is_answering and cycle.more_body,
            )
            if found == "taking" or (found and not connection.transport.is_closing()):
                self._tally.add(CONNECTIONS_LATE, found)
                if found == "taking":
                    connection.transport.abort()  # it would not take a last word either
                else:
                    hang_up(connection, LATE)
        self._is_looking = False
        if self._open:
            self._look_later(loop)

    def _look_later(self, loop: asyncio.AbstractEventLoop) -> None:
        self._is_looking = True
        self._due_at = loop.time() + _LOOK_EVERY_SECONDS
        loop.call_at(self._due_at, self._look, loop)


def _is_being_asked(connection: Any) -> bool:
    """Whether the headers of its request are there, and not all of the body."""
    cycle = connection.cycle
    return cycle is not None and not cycle.response_complete and bool(cycle.more_body)


def _is_kept_by_client(connection: Any) -> bool:
    """Whether bytes wait for it to read on, or the host has hung up and it has not."""
    transport = connection.transport
    return bool(transport.is_closing() or transport.get_write_buffer_size() > 0)


def _waits_for_leave(cycle: Any) -> bool:
    """Whether the client sends its body only once it is told to (Expect: 100-continue)."""
    return cycle is not None and bool(cycle.waiting_for_100_continue)
