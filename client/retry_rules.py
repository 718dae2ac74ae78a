"""How often a record is tried, and what is waited in between. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_LONGEST_PAUSE_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class RetryRules:
    """Of records that were given back."""

    max_attempts: int = 5
    first_pause_seconds: float = 1.0

    def is_last(self, attempt: int) -> bool:
        """Whether an attempt that failed was the last one; attempts count from 1."""
        return attempt >= self.max_attempts

    def pause_seconds(self, attempt: int, share: float) -> float:
        """How long to wait after an attempt. `share`, from 0 to 1, spreads those who wait."""
        whole = min(_LONGEST_PAUSE_SECONDS, self.first_pause_seconds * 2.0 ** min(attempt - 1, 30))
        return whole * (0.5 + share / 2)
