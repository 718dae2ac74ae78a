"""Records for an Arrow answer: whole batches are left as they are stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from duolog.bridge.http.arrow_messages import StoredMessage, stored_message
from duolog.log.access import LogAccess
from duolog.log.batch import arrow_message, is_packed
from duolog.log.fetched import EncodedBatch, FetchedBatch

_WORTH_IT: Final = 1000  # records; fewer are often in the cache, unpacked
_PACKING: Final = 3  # stored bytes are taken to become so many, so that few are read in vain


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """A whole batch, and the offset of its first record."""

    base_offset: int
    message: StoredMessage

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.message.count

    @property
    def nbytes(self) -> int:
        return self.message.unpacked_bytes


@dataclass(frozen=True, slots=True)
class StoredPage:
    """What was read of one partition, as `Fetched` but for batches that are not unpacked."""

    partition: int
    next_offset: int
    batches: tuple[FetchedBatch | StoredBatch, ...]

    @property
    def count(self) -> int:
        return sum(batch.next_offset - batch.base_offset for batch in self.batches)

    @property
    def nbytes(self) -> int:
        return sum(batch.nbytes for batch in self.batches)


def fetch_stored(
    log: LogAccess,
    topic_id: int,
    partition: int,
    offset: int,
    *,
    max_records: int,
    max_bytes: int,
) -> StoredPage:
    """Like `log.fetch`. Where the bytes end it, it ends behind a batch: the next read then begins
    with a whole one.
    """
    reading = _Reading(log, topic_id, partition, offset, max_records, max_bytes)
    if max_records < _WORTH_IT:
        reading.unpack(offset + max_records)
    else:
        while reading.goes_on():
            pass
    return StoredPage(partition, reading.at, tuple(reading.taken))


@dataclass(slots=True)
class _Reading:
    """How far a read has come, and what it may still take."""

    log: LogAccess
    topic_id: int
    partition: int
    at: int
    records_left: int
    bytes_left: int
    taken: list[FetchedBatch | StoredBatch] = field(default_factory=list)

    def goes_on(self) -> bool:
        """Take some batches more; whether there may be others."""
        if self.records_left <= 0 or self.bytes_left <= 0:
            return False
        found = self.log.fetch_encoded(
            self.topic_id,
            self.partition,
            self.at,
            max_records=self.records_left,
            max_bytes=max(1, self.bytes_left // _PACKING),
        )
        for is_small, batches in groupby(found.batches, lambda each: is_packed(each.encoded)):
            if is_small:
                *_, last = batches
                if not self.unpack(last.next_offset):
                    return False
            elif not all(map(self._pass_on, batches)):
                return False
        return bool(found.batches)

    def _pass_on(self, batch: EncodedBatch) -> bool:
        """Take a batch as it is, or what is wanted of it; whether it was wanted to its end."""
        content = arrow_message(batch.encoded)
        message = None if content is None else stored_message(content)
        is_whole = self.at <= batch.base_offset and batch.count <= self.records_left
        if message is None or message.count != batch.count or not is_whole:
            return self.unpack(batch.next_offset)
        if message.unpacked_bytes > self.bytes_left:
            return not self.taken and self.unpack(batch.next_offset)
        self._take(StoredBatch(self.at, message), batch.next_offset)
        return True

    def unpack(self, upto_offset: int) -> bool:
        """Read on, before this offset; whether it got there."""
        page = self.log.fetch(
            self.topic_id,
            self.partition,
            self.at,
            max_records=min(self.records_left, upto_offset - self.at),
            max_bytes=self.bytes_left,
        )
        for batch in page.batches:
            self._take(batch, batch.next_offset)
        return self.at == upto_offset

    def _take(self, batch: FetchedBatch | StoredBatch, next_offset: int) -> None:
        self.taken.append(batch)
        self.records_left -= next_offset - self.at
        self.bytes_left -= batch.nbytes
        self.at = next_offset
