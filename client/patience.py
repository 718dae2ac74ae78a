"""Whether a request is sent again, and when. Pure.

All that a client asks may be asked again: reading changes nothing, an acknowledgement never goes
back, and a record that is published again has the same writer and sequence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from duolog.errors import DuologError

_FIRST_PAUSE_SECONDS: Final = 0.05
_LONGEST_PAUSE_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class Failure:
    """Why one try gave no answer, or a no for now."""

    reason: str
    may_be_done: bool  # whether the host may have seen it and done it
    error: DuologError | None = None  # the host's own word for it
    retry_after_seconds: float = 0.0


class Patience:
    """Of one request. The deadline counts from the first failure: until then it was answered."""

    def __init__(self, deadline_seconds: float, share: Callable[[], float]) -> None:
        self._deadline_seconds = deadline_seconds
        self._share = share  # a random number from 0 to 1, so that many do not come back together
        self._until: float | None = None
        self._pause = _FIRST_PAUSE_SECONDS
        self.may_be_done = False

    def pause_after(self, failure: Failure, now: float) -> float | None:
        """How long to wait before the next try; None when there is no time for one."""
        self.may_be_done |= failure.may_be_done
        if self._until is None:
            self._until = now + self._deadline_seconds
        pause = self._pause * (0.5 + self._share() / 2)
        pause = max(pause, failure.retry_after_seconds * (1 + self._share() / 4))
        self._pause = min(2 * self._pause, _LONGEST_PAUSE_SECONDS)
        return pause if now + pause < self._until else None
