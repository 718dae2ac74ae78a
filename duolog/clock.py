"""Time as something that is handed in, so that tests own it."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Where times come from."""

    def now_ms(self) -> int:
        """Milliseconds since 1970, as written into records."""

    def monotonic(self) -> float:
        """Seconds that never go back, for deadlines."""


class SystemClock:
    """The machine's own clocks."""

    def now_ms(self) -> int:
        return max(0, time.time_ns() // 1_000_000)

    def monotonic(self) -> float:
        return time.monotonic()
