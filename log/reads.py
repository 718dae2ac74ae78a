"""Reading by offset and by time. Nothing is readable before its head is published."""

from __future__ import annotations

from typing import Any

import numpy as np

from duolog.errors import (
    DamagedLog,
    DuologError,
    InvalidRequest,
    OffsetOutOfRange,
    UnknownTopic,
)
from duolog.log.batch import decode, read_header
from duolog.log.catalogue import partition_of
from duolog.log.fetched import EncodedBatch, Fetched, FetchedEncoded
from duolog.log.keys import record_base_offset, record_key
from duolog.log.model import (
    AtOffset,
    AtTimestamp,
    Earliest,
    Head,
    Latest,
    Start,
    Topic,
    TopicPartition,
)
from duolog.log.state import State
from duolog.log.taking import check_in_range, check_limits, take
from duolog.log.times import timed_batches
from duolog.log.timestamps import LATEST_TIME_MS

# What a reader takes whole, far behind the head, is not kept: whoever catches up passes once, and
# would push out what many read at the head.
_NEAR_THE_HEAD = 200_000


class Reader:
    """Reads an opened log."""

    def __init__(self, state: State) -> None:
        self._state = state

    def fetch(
        self, topic: Topic, partition: int, offset: int, max_records: int, max_bytes: int
    ) -> Fetched:
        """Records from an offset on; at least one if there is one, however large it is."""
        check_limits(max_records, max_bytes)
        where = partition_of(topic, partition)
        head = self.head(topic, where)
        self._check_in_range(topic, where, offset, head)

        def keep(base: int, records: Any, all_taken: bool) -> None:
            if not all_taken or head.next_offset - base <= _NEAR_THE_HEAD:
                self._state.cache.add(where, base, records)

        batches = take(
            lambda at: self._batch_at(topic, where, at, asked=offset),
            keep,
            offset,
            head.next_offset,
            min(max_records, self._state.options.max_fetch_records),
            max_bytes,
        )
        return Fetched(
            topic.name,
            partition,
            batches[-1].next_offset if batches else offset,
            head.start,
            head.next_offset,
            batches=tuple(batches),
        )

    def fetch_encoded(
        self, topic: Topic, partition: int, offset: int, max_records: int, max_bytes: int
    ) -> FetchedEncoded:
        """Whole batches as they are stored; at least one if there is one."""
        check_limits(max_records, max_bytes)
        where = partition_of(topic, partition)
        head = self.head(topic, where)
        self._check_in_range(topic, where, offset, head)
        end = min(
            head.next_offset, offset + min(max_records, self._state.options.max_fetch_records)
        )
        batches = self._encoded(topic, where, offset, end, max_bytes) if offset < end else ()
        return FetchedEncoded(
            topic.name, topic.id, partition, offset, head.start, head.next_offset, batches
        )

    def _encoded(
        self, topic: Topic, where: TopicPartition, offset: int, end: int, max_bytes: int
    ) -> tuple[EncodedBatch, ...]:
        store = self._state.store
        lower = record_key(where, offset)
        before = store.last_at_or_before("records", lower, record_key(where, 0))
        first = _encoded_batch(before) if before is not None else None
        if first is None or first.next_offset <= offset:
            raise self._not_there(topic, where, offset, offset)
        batches = [first]
        room = max_bytes - len(first.encoded)
        if first.next_offset < end and room > 0:
            found = store.scan(
                "records",
                record_key(where, first.next_offset),
                record_key(where, end),
                max_bytes=room,
            )
            for batch in map(_encoded_batch, found):
                if batch.base_offset != batches[-1].next_offset:
                    break  # merged meanwhile, or gone: the next read begins there, and sees
                room -= len(batch.encoded)
                if room < 0:
                    break
                batches.append(batch)
        return tuple(batches)

    def resolve(self, topic: Topic, partition: int, start: Start) -> int:
        """The offset at which a read that starts there begins."""
        where = partition_of(topic, partition)
        head = self.head(topic, where)
        match start:
            case Earliest():
                return head.start
            case Latest():
                return head.next_offset
            case AtOffset(offset):
                self._check_in_range(topic, where, offset, head)
                return offset
            case AtTimestamp(ts_ms):
                if isinstance(ts_ms, bool) or not isinstance(ts_ms, int):
                    raise InvalidRequest(f"A time is a whole number of ms; got {ts_ms!a:.40}.")
                while True:
                    try:
                        return self._offset_at_time(topic, where, ts_ms, head)
                    except OffsetOutOfRange:  # retention was quicker: there is a later start now
                        head = self.head(topic, where)

    def _offset_at_time(self, topic: Topic, where: TopicPartition, ts_ms: int, head: Head) -> int:
        reached = min(max(0, ts_ms), LATEST_TIME_MS)
        for entry in timed_batches(self._state.store, where, reached):
            if entry.base_offset >= head.next_offset:
                break
            beyond = entry.base_offset + entry.size.records
            if beyond <= head.start:  # its removal is under way
                continue
            base, records, _ = self._batch_at(
                topic, where, max(entry.base_offset, head.start), entry.base_offset
            )
            self._state.cache.add(where, base, records)
            late = records.column("ts").to_numpy() >= ts_ms
            late[: max(0, head.start - base)] = False
            if late.any():
                return base + int(np.argmax(late))
            # The record whose time is the running maximum lay before the start, and is gone.
        return head.next_offset

    def _check_in_range(self, topic: Topic, where: TopicPartition, offset: int, head: Head) -> None:
        check_in_range(topic.name, where.partition, offset, head.start, head.next_offset)

    def head(self, topic: Topic, where: TopicPartition) -> Head:
        """How far the partition reaches; UnknownTopic when the topic was dropped meanwhile."""
        head = self._state.heads.get(where)
        # In this order: a topic leaves the catalogue before its heads are forgotten.
        if topic.id not in self._state.catalogue.by_id:
            raise UnknownTopic(f"Topic '{topic.name}' has been dropped.")
        return head

    def _batch_at(
        self, topic: Topic, where: TopicPartition, offset: int, asked: int
    ) -> tuple[int, Any, int]:
        """The batch that holds a published offset: its base offset, records and bytes."""
        cached = self._state.cache.find(where, offset)
        if cached is not None:
            return cached
        found = self._state.store.last_at_or_before(
            "records", record_key(where, offset), record_key(where, 0)
        )
        if found is not None:
            base = record_base_offset(found[0])
            records = decode(found[1])
            if offset < base + records.num_rows:
                return base, records, int(records.nbytes)
        raise self._not_there(topic, where, offset, asked)

    def _not_there(
        self, topic: Topic, where: TopicPartition, offset: int, asked: int
    ) -> DuologError:
        """Retention or a drop was quicker, as the head says then; if not, this is damage.

        Records go only after the head without them was published (`removals.py`).
        """
        head = self.head(topic, where)
        if offset < head.start:
            self._check_in_range(topic, where, asked, head)
        return DamagedLog(
            f"Topic '{topic.name}' partition {where.partition} has no record at offset {offset}, "
            "although it was durable. Restore the log from a backup."
        )


def _encoded_batch(entry: tuple[bytes, bytes]) -> EncodedBatch:
    key, encoded = entry
    return EncodedBatch(record_base_offset(key), read_header(encoded).count, encoded)
