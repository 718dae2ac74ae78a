"""Keeps the tokens in force, and reads their file again when it has changed."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from duolog.bridge.http.callers import ANYBODY, THIS_MACHINE, Caller
from duolog.bridge.http.tokens import StoredToken, caller_of, read_tokens
from duolog.bridge.journal import Journal
from duolog.bridge.local_callers import LocalCallers
from duolog.bridge.metrics.names import TOKEN_RELOAD_FAILURES, TOKENS
from duolog.bridge.metrics.tally import Samples, Tally
from duolog.clock import Clock, SystemClock
from duolog.errors import InvalidSetting

_State = tuple[int, int, int]


class Doorkeeper:
    """Says whose token it is. Without a token file, everybody may do everything."""

    def __init__(
        self, path: Path | None, tally: Tally, journal: Journal, clock: Clock | None = None
    ) -> None:
        self._path = path
        self._clock = clock or SystemClock()
        self._tally = tally
        self._journal = journal
        self._guard = threading.Lock()
        self._tokens: tuple[StoredToken, ...] = ()
        self._seen: _State | None = None
        self._local: LocalCallers | None = None
        if path is not None:
            self._seen = _state_of(path)
            self._tokens = read_tokens(path)
        tally.ask(self._samples)

    @property
    def wants_tokens(self) -> bool:
        return self._path is not None

    def trust(self, local: LocalCallers) -> None:
        """Let these in too: who knows the log's secret can read its folder anyway."""
        self._local = local

    def caller(self, token: str | None) -> Caller | None:
        """Who brings this token; None when nobody does."""
        if self._path is None:
            return ANYBODY
        if token is None:
            return None
        if self._local is not None and self._local.knows(token):
            return THIS_MACHINE
        return caller_of(token, self._current(self._path), self._clock.now_ms() / 1000)

    def in_force(self) -> int:
        """How many tokens are taken now: one ends by itself, while the file stays as it is."""
        if self._path is None:
            return 0
        now = self._clock.now_ms() / 1000
        return sum(any(each.hashes(now)) for each in self._current(self._path))

    def _current(self, path: Path) -> tuple[StoredToken, ...]:
        """The tokens in force. A file that cannot be read leaves those before it as they are, so
        that an editor that writes in two steps locks nobody out; the journal says so.
        """
        state = _state_of(path)
        if state == self._seen:
            return self._tokens
        with self._guard:
            if state != self._seen:
                self._seen = state
                try:
                    self._tokens = read_tokens(path)
                    self._journal.note("tokens.reloaded", tokens=len(self._tokens))
                except InvalidSetting as error:
                    self._tally.add(TOKEN_RELOAD_FAILURES)
                    self._journal.warn("tokens.not_reloaded", error=str(error))
            return self._tokens

    def _samples(self) -> Samples:
        return {TOKENS: [((), self.in_force())]}


def _state_of(path: Path) -> _State | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - for each request
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
