"""Records for an Arrow answer: whole batches are left as they are stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from itertools import groupby
from typing import Final

from duolog.bridge.http.arrow_messages import StoredMessage, stored_message
from duolog.errors import DamagedBatch, DamagedLog
from duolog.log.access import LogAccess
from duolog.log.batch import arrow_message, is_packed
from duolog.log.damage_model import LeftOut
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
    left_out: tuple[LeftOut, ...] = ()

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
    skip_damaged: bool = False,
) -> StoredPage:
    """Like `log.fetch`. Where the bytes end it, it ends behind a batch: the next read then begins
    with a whole one.
    """
    reading = _Reading(log, topic_id, partition, offset, max_records, max_bytes, skip_damaged)
    if max_records < _WORTH_IT:
        reading.unpack(offset + max_records)
    else:
        while reading.goes_on():
            pass
    return StoredPage(partition, reading.at, tuple(reading.taken), tuple(reading.left_out))


class _Kind(Enum):
    HOLE = "hole"
    SMALL = "small"  # of a few single records
    WHOLE = "whole"


def _kind(batch: EncodedBatch) -> _Kind:
    if batch.is_hole:
        return _Kind.HOLE
    return _Kind.SMALL if is_packed(batch.encoded) else _Kind.WHOLE


@dataclass(slots=True)
class _Reading:
    """How far a read has come, and what it may still take."""

    log: LogAccess
    topic_id: int
    partition: int
    at: int
    records_left: int
    bytes_left: int
    skip_damaged: bool = False
    taken: list[FetchedBatch | StoredBatch] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)

    def goes_on(self) -> bool:
        """Take some batches more; whether there may be others."""
        if self.records_left <= 0 or self.bytes_left <= 0:
            return False
        try:
            return self._take_some()
        except DamagedBatch:
            if not self.taken:
                raise
            return False  # the next read begins with it, and says so

    def _take_some(self) -> bool:
        found = self.log.fetch_encoded(
            self.topic_id,
            self.partition,
            self.at,
            max_records=self.records_left,
            max_bytes=max(1, self.bytes_left // _PACKING),
            skip_damaged=self.skip_damaged,
        )
        for kind, batches in groupby(found.batches, _kind):
            match kind:
                case _Kind.HOLE:
                    for hole in batches:
                        self._pass_over(hole)
                case _Kind.SMALL:
                    *_, last = batches
                    if not self.unpack(last.next_offset):
                        return False
                case _Kind.WHOLE:
                    if not all(map(self._pass_on, batches)):
                        return False
        return bool(found.batches)

    def _pass_over(self, hole: EncodedBatch) -> None:
        if self.at < hole.next_offset:
            self.left_out.append(hole.left_out(self.at, hole.next_offset))
            self.at = hole.next_offset

    def _pass_on(self, batch: EncodedBatch) -> bool:
        """Take a batch as it is, or what is wanted of it; whether it was wanted to its end."""
        if batch.next_offset <= self.at:
            return True
        try:
            # What nobody has looked into is unpacked here, not in a client that trusts its host.
            content = arrow_message(batch.encoded) if batch.is_checked else None
            message = None if content is None else stored_message(content)
        except DamagedLog:
            return self.unpack(batch.next_offset)  # which says what is to be said
        is_whole = self.at <= batch.base_offset and batch.count <= self.records_left
        if message is None or message.count != batch.count or not is_whole:
            return self.unpack(batch.next_offset)
        if message.unpacked_bytes > self.bytes_left:
            return not self.taken and self.unpack(batch.next_offset)
        self._take(StoredBatch(self.at, message), batch.next_offset)
        return True

    def unpack(self, upto_offset: int) -> bool:
        """Read on, before this offset; whether it got there. Behind a hole it may get further."""
        if upto_offset <= self.at:
            return True
        if self.records_left <= 0 or self.bytes_left <= 0:
            return False
        page = self.log.fetch(
            self.topic_id,
            self.partition,
            self.at,
            max_records=min(self.records_left, upto_offset - self.at),
            max_bytes=self.bytes_left,
            skip_damaged=self.skip_damaged,
        )
        for batch in page.batches:
            self._take(batch, batch.next_offset)
        self.left_out += page.left_out
        self.at = page.next_offset
        return self.at >= upto_offset

    def _take(self, batch: FetchedBatch | StoredBatch, next_offset: int) -> None:
        self.taken.append(batch)
        self.records_left -= next_offset - batch.base_offset
        self.bytes_left -= batch.nbytes
        self.at = next_offset
