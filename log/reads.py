"""Reading by offset and by time. Nothing is readable before its head is published."""

from __future__ import annotations

from typing import Any

import numpy as np

from duolog.errors import DamagedLog, InvalidRequest, OffsetOutOfRange
from duolog.log.batch import decode
from duolog.log.catalogue import partition_of
from duolog.log.fetched import Fetched, FetchedBatch
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
from duolog.log.times import first_reaching

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
        for name, limit in (("max_records", max_records), ("max_bytes", max_bytes)):
            if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
                raise InvalidRequest(f"{name} must be a whole number from 1; got {limit!r}.")
        where = partition_of(topic, partition)
        head = self._state.heads.get(where)
        self._check_in_range(topic, where, offset, head)
        max_records = min(max_records, self._state.options.max_fetch_records)
        batches: list[FetchedBatch] = []
        at = offset
        while at < head.next_offset and max_records > 0 and max_bytes > 0:
            base, whole, size = self._batch_at(topic, where, at)
            records = whole
            most = min(max_records, head.next_offset - at)
            if at > base or whole.num_rows > most or size > max_bytes:
                records, size = _within(
                    whole.slice(at - base, most), max_bytes, at_least_one=not batches
                )
            if records is not whole or head.next_offset - at <= _NEAR_THE_HEAD:
                self._state.cache.add(where, base, whole)
            if not records.num_rows:
                break
            batches.append(FetchedBatch(at, records))
            at += records.num_rows
            max_records -= records.num_rows
            max_bytes -= size
        return Fetched(
            topic.name, partition, at, head.start, head.next_offset, batches=tuple(batches)
        )

    def resolve(self, topic: Topic, partition: int, start: Start) -> int:
        """The offset at which a read that starts there begins."""
        where = partition_of(topic, partition)
        head = self._state.heads.get(where)
        match start:
            case Earliest():
                return head.start
            case Latest():
                return head.next_offset
            case AtOffset(offset):
                self._check_in_range(topic, where, offset, head)
                return offset
            case AtTimestamp(ts_ms):
                return self._offset_at_time(topic, where, ts_ms, head)

    def _offset_at_time(self, topic: Topic, where: TopicPartition, ts_ms: int, head: Head) -> int:
        found = first_reaching(self._state.store, where, max(0, ts_ms))
        if found is None or found.base_offset >= head.next_offset:
            return head.next_offset
        if found.base_offset < head.start:
            return head.start
        base, records, _ = self._batch_at(topic, where, found.base_offset)
        self._state.cache.add(where, base, records)
        row = int(np.argmax(records.column("ts").to_numpy() >= ts_ms))
        return found.base_offset + row

    def _check_in_range(self, topic: Topic, where: TopicPartition, offset: int, head: Head) -> None:
        if isinstance(offset, bool) or not isinstance(offset, int):
            raise InvalidRequest(f"An offset must be a whole number; got {offset!r}.")
        if not head.start <= offset <= head.next_offset:
            raise OffsetOutOfRange(
                topic=topic.name,
                partition=where.partition,
                offset=offset,
                earliest=head.start,
                latest=head.next_offset,
            )

    def _batch_at(self, topic: Topic, where: TopicPartition, offset: int) -> tuple[int, Any, int]:
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
        # Retention or a drop may have been quicker; if not, this is damage.
        self._check_in_range(topic, where, offset, self._state.heads.get(where))
        raise DamagedLog(
            f"Topic '{topic.name}' partition {where.partition} has no record at offset {offset}, "
            "although it was durable. Restore the log from a backup."
        )


def _within(records: Any, max_bytes: int, *, at_least_one: bool) -> tuple[Any, int]:
    """The first records whose keys and values are within the limit, and their bytes."""
    if records.nbytes <= max_bytes:
        return records, int(records.nbytes)
    ends = _ends(records.column("key")) + _ends(records.column("value"))
    total = ends[1:] - ends[0]
    fitting = int(np.searchsorted(total, max_bytes, side="right"))
    if at_least_one:
        fitting = max(1, fitting)
    fitting = min(fitting, records.num_rows)
    return records.slice(0, fitting), int(total[fitting - 1]) if fitting else 0


def _ends(column: Any) -> Any:
    """Where each value of a binary column begins, and where the last one ends."""
    return np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, 4 * column.offset).astype(
        np.int64
    )
