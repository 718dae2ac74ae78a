"""What a host says about itself: one line an event, for people or as JSON. Never a secret."""

from __future__ import annotations

import json
import logging
import re
import sys
import threading
import traceback
from contextlib import suppress
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any, TextIO

from duolog.clock import Clock, SystemClock
from duolog.printable import one_line

_PLAIN = re.compile(r"[^\s\"'=\\]+")


class Level(IntEnum):
    """How much it matters."""

    DEBUG = logging.DEBUG  # each request
    INFO = logging.INFO
    WARNING = logging.WARNING
    ERROR = logging.ERROR


class Journal:
    """Writes events to a stream. Safe to use from many threads."""

    def __init__(
        self,
        out: TextIO | None = None,
        *,
        as_json: bool = False,
        level: Level = Level.INFO,
        clock: Clock | None = None,
    ) -> None:
        self._out = out or sys.stderr
        self._as_json = as_json
        self._level = level
        self._clock = clock or SystemClock()
        self._one_line_at_a_time = threading.Lock()

    def shows(self, level: Level) -> bool:
        """Whether events of this level are written."""
        return level >= self._level

    def show(self, level: Level, *, as_json: bool) -> None:
        """From here on write these, in this form."""
        self._level, self._as_json = level, as_json

    def tell(self, level: Level, event: str, **fields: Any) -> None:
        self._write(level, event, fields)

    def detail(self, event: str, **fields: Any) -> None:
        self._write(Level.DEBUG, event, fields)

    def note(self, event: str, **fields: Any) -> None:
        self._write(Level.INFO, event, fields)

    def warn(self, event: str, **fields: Any) -> None:
        self._write(Level.WARNING, event, fields)

    def error(self, event: str, error: BaseException, **fields: Any) -> None:
        """A failure that nobody expected, with where it came from."""
        came_from = [
            f"{frame.name} ({frame.filename.rpartition('/')[2]}:{frame.lineno})"
            for frame in traceback.extract_tb(error.__traceback__)
        ]
        told = {"error": f"{type(error).__name__}: {error}", "at": " < ".join(came_from[::-1])}
        self._write(Level.ERROR, event, {**fields, **told})

    def _write(self, level: Level, event: str, fields: dict[str, Any]) -> None:
        if level < self._level:
            return
        at = datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC)
        moment = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        told = {name: value for name, value in fields.items() if value is not None}
        if self._as_json:
            line = json.dumps(
                {"time": moment, "level": level.name.lower(), "event": event, **told}, default=str
            )
        else:
            words = [f"{name}={_shown(value)}" for name, value in told.items()]
            line = " ".join([moment, f"{level.name:<7}", event, *words])
        with self._one_line_at_a_time, suppress(OSError, ValueError):  # nobody listens any more
            self._out.write(line + "\n")
            self._out.flush()


class JournalHandler(logging.Handler):
    """Brings what libraries log into the journal."""

    def __init__(self, journal: Journal) -> None:
        super().__init__(logging.WARNING)
        self._journal = journal

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1]:
            self._journal.error(record.name, record.exc_info[1], said=record.getMessage().strip())
        else:
            self._journal.warn(record.name, said=record.getMessage().strip())


def _shown(value: Any) -> str:
    text = str(value)
    return text if _PLAIN.fullmatch(text) and one_line(text) == text else json.dumps(text)
