"""Reading by offset and by time. Nothing is readable before its head is published."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from duolog.errors import (
    DamagedBatch,
    DamagedLog,
    InvalidRequest,
    OffsetOutOfRange,
    UnknownTopic,
)
from duolog.log.batch import decode, read_header
from duolog.log.catalogue import partition_of
from duolog.log.damage import Damage, damage_at
from duolog.log.damage_model import DamagedOffsets, LeftOut
from duolog.log.fetched import EncodedBatch, Fetched, FetchedEncoded
from duolog.log.hole import MOST_OFFSETS, HoleNote, decode_hole, encode_hole, is_hole
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
from duolog.log.stored_batches import batch_at, batches_from
from duolog.log.taking import check_in_range, check_limits, take
from duolog.log.times import timed_batches
from duolog.log.timestamps import LATEST_TIME_MS

# What a reader takes whole, far behind the head, is not kept: whoever catches up passes once, and
# would push out what many read at the head.
_NEAR_THE_HEAD = 200_000
_TRIES = 3  # of reading what retention or a skip changes at the same moment


class Reader:
    """Reads an opened log."""

    def __init__(self, state: State) -> None:
        self._state = state

    def fetch(
        self,
        topic: Topic,
        partition: int,
        offset: int,
        max_records: int,
        max_bytes: int,
        *,
        skip_damaged: bool = False,
    ) -> Fetched:
        """Records from an offset on; at least one if there is one, however large it is."""
        check_limits(max_records, max_bytes)
        where = partition_of(topic, partition)
        head = self.head(topic, where)
        self._check_in_range(topic, where, offset, head)

        def keep(base: int, records: Any, all_taken: bool) -> None:
            if not all_taken or head.next_offset - base <= _NEAR_THE_HEAD:
                self._state.cache.add(where, base, records)

        taken = take(
            lambda at: self._batch_at(topic, where, at, asked=offset),
            keep,
            offset,
            head.next_offset,
            min(max_records, self._state.options.max_fetch_records),
            max_bytes,
            skip_damaged=skip_damaged,
        )
        return Fetched(
            topic.name,
            partition,
            taken.next_offset,
            head.start,
            head.next_offset,
            batches=taken.batches,
            left_out=taken.left_out,
        )

    def fetch_encoded(
        self,
        topic: Topic,
        partition: int,
        offset: int,
        max_records: int,
        max_bytes: int,
        *,
        skip_damaged: bool = False,
    ) -> FetchedEncoded:
        """Whole batches as they are stored; at least one if there is one."""
        check_limits(max_records, max_bytes)
        where = partition_of(topic, partition)
        head = self.head(topic, where)
        self._check_in_range(topic, where, offset, head)
        end = min(
            head.next_offset, offset + min(max_records, self._state.options.max_fetch_records)
        )
        batches: tuple[EncodedBatch, ...] = ()
        if offset < end:
            try:
                batches = self._encoded(topic, where, offset, end, max_bytes)
            except DamagedBatch as damage:
                if not skip_damaged:
                    raise
                batches = (_in_place_of(damage),)
        return FetchedEncoded(
            topic.name, topic.id, partition, offset, head.start, head.next_offset, batches
        )

    def _encoded(
        self, topic: Topic, where: TopicPartition, offset: int, end: int, max_bytes: int
    ) -> tuple[EncodedBatch, ...]:
        store = self._state.store
        checked_from = self._state.checked.get(where, 0)

        def read_first() -> EncodedBatch | None:
            before = batch_at(store, where, offset)
            batch = None if before is None else _encoded_batch(before, checked_from)
            return batch if batch is not None and offset < batch.next_offset else None

        first: EncodedBatch = self._sound(topic, where, offset, offset, read_first)
        batches = [first]
        room = max_bytes - len(first.encoded)
        if first.next_offset < end and room > 0:
            for entry in self._from(where, first.next_offset, end, room):
                try:
                    batch = _encoded_batch(entry, checked_from)
                except DamagedLog:  # the next read begins with it, and says so
                    break
                if batch.base_offset != batches[-1].next_offset:
                    break  # merged meanwhile, or gone: the next read begins there, and sees
                room -= len(batch.encoded)
                if room < 0:
                    break
                batches.append(batch)
        return tuple(batches)

    def _from(
        self, where: TopicPartition, offset: int, end: int, max_bytes: int
    ) -> list[tuple[int, bytes]]:
        """Stored batches from an offset on; none where the disk does not give them back."""
        try:
            return batches_from(self._state.store, where, offset, end, max_bytes=max_bytes)
        except DamagedLog:  # the next read begins there, and says so
            return []

    def record_times(
        self, topic: Topic, partition: int, offsets: Collection[int]
    ) -> dict[int, int]:
        """When the first record at or after each offset was made that can be read; nothing for one
        without such. Each batch is decoded once, and pushes nothing out of the cache.
        """
        where = partition_of(topic, partition)
        head = self.head(topic, where)
        found: dict[int, int] = {}
        first, beyond, times = 0, 0, None
        for offset in sorted(each for each in offsets if head.start <= each < head.next_offset):
            at = offset
            while at < head.next_offset:
                if not first <= at < beyond:
                    first, beyond, times = self._times_around(topic, where, at)
                if times is not None:
                    found[offset] = int(times[at - first])
                    break
                at = beyond
        return found

    def _times_around(self, topic: Topic, where: TopicPartition, at: int) -> tuple[int, int, Any]:
        """The offsets of the batch that holds this one, and its times; None for what has none."""
        try:
            found = self._batch_at(topic, where, at, asked=at)
        except DamagedBatch as damage:
            return at, damage.next_offset, None
        except OffsetOutOfRange as gone:  # retention was quicker
            return at, gone.earliest, None
        if isinstance(found, LeftOut):
            return at, found.next_offset, None
        base, records, _ = found
        return base, base + int(records.num_rows), records.column("ts").to_numpy()

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
            case _:
                raise InvalidRequest(f"A read starts at a Start; got {start!a:.40}.")

    def _offset_at_time(self, topic: Topic, where: TopicPartition, ts_ms: int, head: Head) -> int:
        reached = min(max(0, ts_ms), LATEST_TIME_MS)
        for entry in timed_batches(self._state.store, where, reached):
            if entry.base_offset >= head.next_offset:
                break
            beyond = entry.base_offset + entry.size.records
            if beyond <= head.start:  # its removal is under way
                continue
            at = max(entry.base_offset, head.start)
            while at < min(beyond, head.next_offset):
                try:
                    batch = self._batch_at(topic, where, at, entry.base_offset)
                except DamagedBatch:  # whoever reads from there is told
                    return at
                if isinstance(batch, LeftOut):  # it may have had one as late; behind it all is kept
                    return min(batch.next_offset, head.next_offset)
                base, records, _ = batch
                self._state.cache.add(where, base, records)
                late = records.column("ts").to_numpy() >= ts_ms
                late[: max(0, at - base)] = False
                if late.any():
                    return base + int(np.argmax(late))
                # In the cache a merged batch may still be the parts that it was made of.
                at = base + int(records.num_rows)
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

    def look_for_damage(
        self, topic: Topic, partition: int, offset: int
    ) -> tuple[Damage, int] | None:
        """The damage at an offset, and when it was met first; None where there is none."""
        where = partition_of(topic, partition)
        head = self.head(topic, where)
        self._check_in_range(topic, where, offset, head)
        if offset == head.next_offset:
            return None
        damage = damage_at(self._state.store, where, head, offset)
        if damage is None:
            return None
        known = self._state.damage.note(where, damage, self._state.options.clock.now_ms())
        return known.damage, known.found_at_ms

    def known_damage(self, topics: Sequence[Topic]) -> tuple[DamagedOffsets, ...]:
        """What readers have met and is still there."""
        by_id = {topic.id: topic for topic in topics}
        found = []
        for where, known in self._state.damage.all():
            topic, first = by_id.get(where.topic_id), known.damage.first_offset
            head = self._state.heads.get(where)
            damage = None
            if topic is not None and head.start < known.damage.next_offset:
                damage = damage_at(self._state.store, where, head, first)
            if topic is not None and damage is not None:
                found.append(
                    damaged_offsets(topic.name, where.partition, damage, known.found_at_ms)
                )
            elif topic is not None or where.topic_id not in self._state.catalogue.by_id:
                self._state.damage.forget(where, first)
        return tuple(found)

    def _batch_at(
        self, topic: Topic, where: TopicPartition, offset: int, asked: int
    ) -> tuple[int, Any, int] | LeftOut:
        """The batch that holds a published offset: its base offset, records and bytes."""
        cached = self._state.cache.find(where, offset)
        if cached is not None:
            return cached

        def read() -> tuple[int, Any, int] | LeftOut | None:
            found = batch_at(self._state.store, where, offset)
            if found is None:
                return None
            base, encoded = found
            if is_hole(encoded):
                count, note = decode_hole(encoded)
                left_out = LeftOut(offset, base + count, False, note.reason)
                return left_out if offset < base + count else None
            records = decode(encoded)
            if offset >= base + records.num_rows:
                return None
            return base, records, int(records.nbytes)

        found: tuple[int, Any, int] | LeftOut = self._sound(topic, where, offset, asked, read)
        return found

    def _sound(
        self,
        topic: Topic,
        where: TopicPartition,
        offset: int,
        asked: int,
        read: Callable[[], Any],
    ) -> Any:
        """What `read` finds at an offset; DamagedBatch when it finds nothing that can be decoded,
        although retention, a drop, a merge or a skip were not quicker.

        Records go only after the head without them was published (`removals.py`).
        """
        for _ in range(_TRIES):
            try:
                found = read()
            except DamagedLog:
                found = None
            if found is not None:
                return found
            head = self.head(topic, where)
            if offset < head.start:
                self._check_in_range(topic, where, asked, head)
            damage = self.look_for_damage(topic, where.partition, offset)
            if damage is not None:
                raise damage[0].error(topic.name, where.partition)
        raise DamagedLog(
            f"Topic '{topic.name}' partition {where.partition} cannot be read at offset {offset}. "
            "Restore the log from a backup."
        )


def damaged_offsets(topic: str, partition: int, damage: Damage, found_at_ms: int) -> DamagedOffsets:
    """A damage, as users see it."""
    first, stop = damage.first_offset, damage.next_offset
    return DamagedOffsets(topic, partition, first, stop, damage.reason, found_at_ms)


def _in_place_of(damage: DamagedBatch) -> EncodedBatch:
    """A hole on the way to one reader, for a batch that is still stored as it is."""
    count = min(damage.next_offset - damage.first_offset, MOST_OFFSETS)
    note = HoleNote(reason=damage.reason, is_damaged=True)
    return EncodedBatch(damage.first_offset, count, encode_hole(count, note))


def _encoded_batch(entry: tuple[int, bytes], checked_from: int) -> EncodedBatch:
    base, encoded = entry
    count = decode_hole(encoded)[0] if is_hole(encoded) else read_header(encoded).count
    return EncodedBatch(base, count, encoded, base >= checked_from)
