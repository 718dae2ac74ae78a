"""A clock that stands still until a test moves it."""

from __future__ import annotations

import time


class ManualClock:
    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self.at_ms = now_ms

    def advance(self, *, seconds: float) -> None:
        self.at_ms += int(seconds * 1000)

    def now_ms(self) -> int:
        return self.at_ms

    def monotonic(self) -> float:
        return time.monotonic()  # deadlines are real: a test must not hang
