"""How long a consumer waits for another one of its group to leave a partition. Pure."""

from __future__ import annotations

from duolog.client.model import Source

LONGEST_PAUSE_SECONDS = 1.0


class HeldWaits:
    """Since when each source is held."""

    def __init__(self, wait_seconds: float) -> None:
        self._wait_seconds = wait_seconds
        self._since: dict[Source, float] = {}

    def is_over(self, source: Source, now: float) -> bool:
        """Whether it has been held for too long; then the wait begins anew."""
        since = self._since.setdefault(source, now)
        if now - since < self._wait_seconds:
            return False
        del self._since[source]
        return True

    def pause_seconds(self, share: float) -> float:
        """Until the next look; `share`, from 0 to 1, spreads those who wait."""
        return LONGEST_PAUSE_SECONDS * (0.1 + 0.9 * share)

    def is_free(self, source: Source) -> None:
        self._since.pop(source, None)
