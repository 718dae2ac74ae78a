"""A stream on the driver: where it is, how far the next micro-batch goes, and what its tasks read.

Spark 4.1 tells a Python source little. It asks for the latest offset and takes all up to there, so
limits hold by answering less. It says where a stream was only by planning an empty range from there
to there, after a restart; and in a new stream it asks how far to go before it asks where to begin.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from duolog.connector.source.choice import Kept, Place, chosen_places
from duolog.connector.source.losses import WAY_OUT, losses
from duolog.connector.source.offset import StreamOffset
from duolog.connector.source.pace import Pace
from duolog.connector.source.ranges import Range, split
from duolog.connector.source.resolving import starts
from duolog.errors import InvalidSetting, RecordsLost, UnknownTopic

if TYPE_CHECKING:
    from duolog.connector.source.options import SourceOptions
    from duolog.log.access import LogAccess

_LOG: Final = logging.getLogger("duolog.connector")
_WAIT_SECONDS: Final = 0.1


class Stream:
    """One run of a query. Spark calls it from one thread."""

    def __init__(self, options: SourceOptions, seconds_now: Callable[[], float]) -> None:
        self._options = options
        self._place = options.place
        self._pace = Pace(options, seconds_now)
        self._begin: StreamOffset | None = None
        self._seen: StreamOffset | None = None  # the end of the batch that was planned last
        self._acknowledged: Mapping[Place, int] = {}
        self._glance: bytes | None = None
        self._log_id = ""
        self._places: Mapping[Place, Kept] = {}

    def initial(self) -> dict[str, Any]:
        """Where the query begins, the same in all of its runs."""
        return self._beginning().to_json()

    def latest(self) -> dict[str, Any]:
        """How far the next micro-batch goes."""
        self._look()
        if self._seen is None:
            begin = self._beginning().positions
            ends = self._pace.ends(begin, self._places)
            return StreamOffset(self._log_id, ends, begin=begin).to_json()
        seen = self._seen
        ends = self._pace.ends(seen.positions, self._places)
        if ends == seen.positions and self._log_id == seen.log_id:
            return seen.to_json()  # to the letter, or Spark would take it for news
        return StreamOffset(self._log_id, ends).to_json()

    def ranges(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[Range]:
        """What the tasks of a micro-batch read. From now on the stream is at its end."""
        begin, until = StreamOffset.of(start), StreamOffset.of(end)
        positions = begin.positions
        if begin.is_initial and until.begin is not None:
            positions = until.begin
        ranges = []
        for place, offset in until.positions.items():
            since = positions.get(place, 0)
            if offset < since:
                raise _went_back(place, since, offset)
            ranges.append(Range(place, since, offset))
        self._seen = until
        return split(ranges, self._options.min_partitions, self._options.max_records)

    def commit(self, end: Mapping[str, Any]) -> None:
        """Spark will not ask for this again. Mostly it is acknowledged already: see `_look`."""
        positions = StreamOffset.of(end).positions
        if self._options.group is not None and self._is_news(positions):
            with self._place.opened() as log:
                self._acknowledge(log, self._options.group, positions)

    def _look(self) -> None:
        """See what the log has, unless nothing was committed since; and acknowledge what is done.

        Spark asks again only when the batch before is done, so all up to `_seen` is.
        """
        glance = self._place.glance()
        group = self._options.group
        done = self._seen.positions if self._seen is not None else {}
        is_known = glance is not None and glance == self._glance
        if is_known and (group is None or not self._is_news(done)):
            return
        with self._place.opened() as log:
            is_hosted = self._place.is_hosted(log)
            if is_hosted and self._log_id and not self._has_more(done):
                self._wait(log, done)
            self._log_id = log.log_id
            self._places = chosen_places(log, self._options.choice)
            self._report_losses()
            if group is not None:
                self._acknowledge(log, group, done)
        self._glance = None if is_hosted else glance

    def _has_more(self, positions: Mapping[Place, int]) -> bool:
        return any(kept.latest > positions.get(at, 0) for at, kept in self._places.items())

    def _wait(self, log: LogAccess, positions: Mapping[Place, int]) -> None:
        """Let the host say when there is more, rather than ask it all the time."""
        known = {(at.topic_id, at.partition): positions.get(at, 0) for at in self._places}
        # A topic that was dropped meanwhile is found by who looks next.
        with suppress(UnknownTopic):
            log.wait_for_append(known, _WAIT_SECONDS)

    def _beginning(self) -> StreamOffset:
        if self._begin is None and self._seen is not None and self._seen.begin is not None:
            self._begin = StreamOffset(self._seen.log_id, self._seen.begin, is_initial=True)
        if self._begin is None:
            with self._place.opened() as log:
                positions = starts(
                    log,
                    self._options.starting,
                    chosen_places(log, self._options.choice),
                    error_without_match=self._options.error_without_match,
                    fail_on_data_loss=self._options.fail_on_data_loss,
                )
                self._begin = StreamOffset(log.log_id, positions, is_initial=True)
        return self._begin

    def _report_losses(self) -> None:
        if self._seen is None:
            return
        for loss in losses(self._seen, self._log_id, self._places):
            if self._options.fail_on_data_loss:
                raise RecordsLost(f"{loss}. {WAY_OUT}")
            _LOG.warning("%s", loss)

    def _is_news(self, positions: Mapping[Place, int]) -> bool:
        return any(
            position > self._acknowledged.get(place, 0) for place, position in positions.items()
        )

    def _acknowledge(self, log: LogAccess, group: str, positions: Mapping[Place, int]) -> None:
        for place, position in positions.items():
            kept = self._places.get(place)
            is_there = kept is not None and position <= kept.latest
            if is_there and position > self._acknowledged.get(place, 0):
                log.ack(group, place.topic_id, _upto(position), place.partition)
        self._acknowledged = {**self._acknowledged, **positions}


def _upto(position: int) -> int:
    """The last offset before a position, as an ACK names it."""
    return position - 1


def _went_back(place: Place, since: int, offset: int) -> InvalidSetting:
    return InvalidSetting(
        f"A micro-batch would read {place} from {since} back to {offset}. Spark's wrapper for "
        "Trigger.AvailableNow (spark.sql.streaming.triggerAvailableNowWrapper.enabled) asks how "
        "far to go before it says where the stream is, so maxOffsetsPerTrigger cannot hold there: "
        "use option availableNow and duolog.connector.run_available, or leave the limit out."
    )
