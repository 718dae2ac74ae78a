"""How far the next micro-batch goes, by the limits that the options set."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from duolog.connector.source.choice import Kept, Place
from duolog.connector.source.limits import limited, waits_for_more

if TYPE_CHECKING:
    from duolog.connector.source.options import SourceOptions

_LOG: Final = logging.getLogger("duolog.connector")


class Pace:
    """The limits of one run of a query."""

    def __init__(self, options: SourceOptions, seconds_now: Callable[[], float]) -> None:
        self._options = options
        self._seconds_now = seconds_now
        self._stop_at: Mapping[Place, int] | None = None  # with availableNow
        self._last_batch_seconds: float | None = None
        self._has_warned = False

    def ends(
        self, positions: Mapping[Place, int], places: Mapping[Place, Kept]
    ) -> Mapping[Place, int]:
        """How far to go from these positions; the same positions to wait."""
        until = self._reachable(positions, places)
        # What retention has removed is not there to be counted.
        begin = {place: max(positions.get(place, 0), places[place].earliest) for place in until}
        available = sum(max(0, until[place] - begin[place]) for place in until)
        if self._waits(available):
            return positions
        most = self._options.max_offsets
        if most is None or available <= most:
            return until
        self._warn_once(available, most)
        return limited(most, begin, until)

    def _reachable(
        self, positions: Mapping[Place, int], places: Mapping[Place, Kept]
    ) -> dict[Place, int]:
        """The end of what there is, never behind where the stream is."""
        latest = {place: kept.latest for place, kept in places.items()}
        if self._options.available_now:
            if self._stop_at is None:
                self._stop_at = latest
            latest = {place: min(self._stop_at.get(place, 0), end) for place, end in latest.items()}
        return {place: max(end, positions.get(place, 0)) for place, end in latest.items()}

    def _waits(self, available: int) -> bool:
        # With availableNow no more is to come that would be worth waiting for.
        least = None if self._options.available_now else self._options.min_offsets
        now, last = self._seconds_now(), self._last_batch_seconds
        since = float("inf") if last is None else now - last
        if waits_for_more(least, available, since, self._options.max_delay_seconds):
            return True
        if available:
            self._last_batch_seconds = now
        return False

    def _warn_once(self, available: int, most: int) -> None:
        if self._has_warned or self._options.available_now:
            return
        self._has_warned = True
        _LOG.warning(
            "maxOffsetsPerTrigger: this micro-batch reads %d of %d records, later ones the rest. "
            "Spark before 4.2 runs only one with Trigger.AvailableNow or Trigger.Once: there, use "
            "option availableNow and duolog.connector.run_available",
            most,
            available,
        )
