"""Whether a stored batch is too old, also where the index of times is of no help.

The index holds the highest time so far. In a partition that once took a time far ahead (a log from
before such times were refused, a clock that jumped) everything behind it would look young for ever.
There a batch's own highest time counts, and one whose own time is ahead too goes together with the
next batch that is known to be too old, since that one was appended later. Nothing is written down:
a clock that is behind for a while makes batches look ahead, and then they only stay longer.
"""

from __future__ import annotations

from typing import Final

from duolog.errors import DuologError
from duolog.log.batch import read_header
from duolog.log.keys import record_key
from duolog.log.model import TopicPartition
from duolog.log.store import Store
from duolog.log.times import TimedBatch

_READ_BYTES: Final = 256 << 20  # of batches in one sweep, to look at their headers


class BatchAges:
    """Judges the batches of one partition, one after the other."""

    def __init__(
        self, store: Store, where: TopicPartition, oldest_ms: int | None, latest_ms: int
    ) -> None:
        """`oldest_ms`: what is earlier is too old, None for nothing; `latest_ms`: is not ahead."""
        self._store = store
        self._where = where
        self._oldest_ms = oldest_ms
        self._latest_ms = latest_ms
        self._room_bytes = _READ_BYTES
        self._before_ms: int | None = None  # the running maximum up to the last batch

    def is_too_old(self, batch: TimedBatch) -> bool | None:
        """Whether it is too old; None where only a later batch can tell."""
        before_ms, self._before_ms = self._before_ms, batch.running_max_ms
        if self._oldest_ms is None:
            return False
        if batch.running_max_ms <= self._latest_ms:
            return batch.running_max_ms < self._oldest_ms
        if before_ms is not None and batch.running_max_ms > before_ms:
            return None  # it raised the maximum, so its own time is ahead: no need to look
        if self._room_bytes <= 0:
            return None
        self._room_bytes -= batch.size.length
        own_ms = self._own_max_ms(batch.base_offset)
        return None if own_ms is None or own_ms > self._latest_ms else own_ms < self._oldest_ms

    def _own_max_ms(self, base_offset: int) -> int | None:
        encoded = self._store.get("records", record_key(self._where, base_offset))
        try:
            return None if encoded is None else read_header(encoded).max_ts_ms
        except DuologError:  # damaged: whoever reads it hears of it
            return None
