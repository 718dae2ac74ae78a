"""What the worker writes into the host's journal: how much an event matters, and how often what it
waits for is repeated.

A stop that only people can end is an error. Waiting is a warning, for as long as it lasts, in lines
that come ever more seldom: Kafka may be away for days, and a log has thousands of partitions.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from duolog.bridge.journal import Journal, Level
from duolog.clock import Clock, SystemClock

LEVELS: Final[Mapping[str, Level]] = {
    "mirror.halted": Level.ERROR,
    "mirror.failed": Level.ERROR,
    "mirror.waits": Level.WARNING,
    "mirror.warning": Level.WARNING,
    "mirror.refused": Level.WARNING,
    "mirror.skipped": Level.WARNING,
    "mirror.gone": Level.WARNING,
    "mirror.cut_back": Level.WARNING,
    "mirror.foreign_records": Level.WARNING,
    "groups.wait": Level.WARNING,
}
"""All others are INFO."""

_WAITS: Final = frozenset({"mirror.waits", "groups.wait"})
_GOES_ON: Final = frozenset({"mirror.begins", "mirror.goes_on", "groups.go_on"})
_OF_THE_CLUSTER: Final = frozenset(
    {"KafkaUnreachable", "KafkaLoginRefused", "KafkaTokenUnavailable", "KafkaUntrusted"}
)
_FIRST_PAUSE_SECONDS: Final = 1.0
_LONGEST_PAUSE_SECONDS: Final = 300.0
_OVER_AFTER_SECONDS: Final = 30.0  # what is waited for is tried every few seconds

Reason = tuple[str, object, object]


@dataclass(frozen=True, slots=True)
class Waiting:
    """One thing that is waited for. `unsaid`: how often it was met since the last line."""

    heard_at: float
    said_at: float
    lines: int = 1
    unsaid: int = 0


def pause_seconds(lines: int) -> float:
    """How long nothing more is said, after so many lines."""
    doubled = _FIRST_PAUSE_SECONDS * 2.0 ** min(lines - 1, 30)
    return min(doubled, _LONGEST_PAUSE_SECONDS)


def after(before: Waiting | None, now: float) -> tuple[Waiting, bool]:
    """What becomes of it when it is met again, and whether to say so."""
    if before is None or now - before.heard_at > _OVER_AFTER_SECONDS:
        return Waiting(now, now), True
    if now - before.said_at < pause_seconds(before.lines):
        return replace(before, heard_at=now, unsaid=before.unsaid + 1), False
    return Waiting(now, now, before.lines + 1), True


def reason_of(fields: Mapping[str, Any]) -> Reason:
    """What is waited for: Kafka itself is one thing, for whatever it is waited for."""
    code = str(fields.get("code"))
    if code in _OF_THE_CLUSTER:
        return code, None, None
    return code, fields.get("topic"), fields.get("partition")


class Events:
    """Called with an event's name and its fields, from any thread."""

    def __init__(self, journal: Journal, clock: Clock | None = None) -> None:
        self._journal = journal
        self._clock = clock or SystemClock()
        self._guard = threading.Lock()
        self._waiting: dict[Reason, Waiting] = {}

    def __call__(self, event: str, **fields: Any) -> None:
        if event in _GOES_ON:
            self._go_on(fields)
        unsaid = self._unsaid(fields) if event in _WAITS else 0
        if unsaid is not None:
            # Before the error, which may be long.
            more = {"not_said_before": unsaid} if unsaid else {}
            self._journal.tell(LEVELS.get(event, Level.INFO), event, **{**more, **fields})

    def _unsaid(self, fields: Mapping[str, Any]) -> int | None:
        """How often it was met and not said; None if it is not to be said now either."""
        now, reason = self._clock.monotonic(), reason_of(fields)
        with self._guard:
            before = self._waiting.get(reason)
            self._waiting[reason], is_said = after(before, now)
            if len(self._waiting) > 1 and is_said:
                self._forget_what_is_over(now)
        if not is_said:
            return None
        return 0 if before is None else before.unsaid

    def _forget_what_is_over(self, now: float) -> None:
        for reason, waiting in list(self._waiting.items()):
            if now - waiting.heard_at > _OVER_AFTER_SECONDS:
                del self._waiting[reason]

    def _go_on(self, fields: Mapping[str, Any]) -> None:
        """Kafka answers again: the next time is a first time."""
        where = fields.get("topic"), fields.get("partition")
        with self._guard:
            for reason in list(self._waiting):
                if reason[1:] in {(None, None), where}:
                    del self._waiting[reason]
