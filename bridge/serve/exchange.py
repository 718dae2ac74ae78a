"""What a host and its worker say to each other after the settings: lines of JSON. Pure.

    host    {"v": 1, "ask": 7, "what": "settle", "seconds": 5.0, "group": "billing"}
    worker  {"answer": 7, "result": …}
    worker  {"answer": 7, "error": "…", "code": "GroupHasMembers", "details": {}}
    worker  {"event": "left", "member": "…"}
    worker  {…} anything else is its status

`v` is in each question, since a worker that is started again may be newer than its host.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from duolog.errors import AnswerTooLarge, DuologError, InvalidRequest
from duolog.reach.failures import error_of, failure_of

VERSION: Final = 1
MAX_LINE_BYTES: Final = 1 << 16
MOST_UNDER_WAY: Final = 256
"""Questions that may be open at once, on either side."""

_OURS: Final = frozenset({"v", "ask", "what", "seconds"})


@dataclass(frozen=True, slots=True)
class Ask:
    """A question. The worker gives up on it after `seconds`, as the host does."""

    number: int
    what: str
    seconds: float
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NotUnderstood:
    """A question that has a number, and nothing else that can be relied on."""

    number: int
    error: DuologError


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a question: an error, or else its result."""

    number: int
    result: Any = None
    error: DuologError | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """Something that the worker tells without being asked."""

    event: str
    fields: Mapping[str, Any] = field(default_factory=dict)


def ask_line(ask: Ask) -> bytes:
    """The line for a question; refused where it cannot be sent."""
    taken = sorted(_OURS & ask.arguments.keys())
    if taken:
        raise InvalidRequest(
            f"A question to the worker cannot have arguments called {', '.join(taken)}: these "
            "words are its own."
        )
    line = _line(
        {
            "v": VERSION,
            "ask": ask.number,
            "what": ask.what,
            "seconds": ask.seconds,
            **ask.arguments,
        }
    )
    if len(line) > MAX_LINE_BYTES:
        raise InvalidRequest(
            f"A question to the worker of {len(line)} bytes is over the limit of "
            f"{MAX_LINE_BYTES}. Ask for less at once."
        )
    return line


def ask_in(line: bytes) -> Ask | NotUnderstood | None:
    """The question in a line; None where nobody can be answered."""
    told = _object_in(line)
    number = None if told is None else told.get("ask")
    if told is None or not isinstance(number, int) or isinstance(number, bool):
        return None
    if told.get("v") != VERSION:
        return NotUnderstood(
            number,
            InvalidRequest(
                f"The host asks in version {told.get('v')!r} and its worker speaks {VERSION}: "
                "Duolog was replaced while the host ran. Start the host again."
            ),
        )
    what, seconds = told.get("what"), told.get("seconds")
    if not isinstance(seconds, int | float) or isinstance(seconds, bool):
        seconds = 0
    if not isinstance(what, str) or not 0 < seconds < math.inf:
        return NotUnderstood(number, InvalidRequest("A question has `what` and `seconds`."))
    arguments = {name: value for name, value in told.items() if name not in _OURS}
    return Ask(number, what, float(seconds), arguments)


def answer_line(answer: Answer) -> bytes:
    """The line for an answer. One that is too long becomes an error that says so."""
    if answer.error is None:
        line = _line({"answer": answer.number, "result": answer.result})
    else:
        line = _line({"answer": answer.number, **failure_of(answer.error)})
    if len(line) <= MAX_LINE_BYTES:
        return line
    return answer_line(
        Answer(
            answer.number,
            error=AnswerTooLarge(
                f"The worker's answer has {len(line)} bytes; at most {MAX_LINE_BYTES} are sent. "
                "Ask for less at once."
            ),
        )
    )


def told_line(told: Told) -> bytes:
    """The line for an event."""
    line = _line({"event": told.event, **told.fields})
    if len(line) > MAX_LINE_BYTES:
        raise InvalidRequest(
            f"The event '{told.event}' has {len(line)} bytes; at most {MAX_LINE_BYTES} are read."
        )
    return line


def heard_in(said: Mapping[str, Any]) -> Answer | Told | None:
    """What an object from the worker is; None for its status."""
    number, event = said.get("answer"), said.get("event")
    if isinstance(number, int) and not isinstance(number, bool):
        return Answer(number, said.get("result"), error_of(said))
    if isinstance(event, str):
        return Told(event, {name: value for name, value in said.items() if name != "event"})
    return None


def _line(said: Mapping[str, Any]) -> bytes:
    return json.dumps(said, separators=(",", ":")).encode() + b"\n"


def _object_in(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
