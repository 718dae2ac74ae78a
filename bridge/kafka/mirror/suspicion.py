"""Looks at records of others, where there are some: do they copy ours? `copies.py` decides."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duolog.bridge.kafka.mirror.copies import Copies, OurRecord, copies, without_header
from duolog.bridge.kafka.mirror.shared import Shared
from duolog.bridge.kafka.mirror.topic_side import TopicSide
from duolog.bridge.kafka.wire.record_batch import sequence_of
from duolog.bridge.kafka.wire.stored import stored_batches
from duolog.bridge.kafka.wire.unpacked import Content, StoredRecord, stored_records
from duolog.errors import CopiesInKafka, KafkaRefused, OffsetOutOfRange
from duolog.log.access import LogAccess
from duolog.log.mirror_model import Mirror
from duolog.log.model import AtTimestamp, Topic

LOOKED_AT: Final = 256
"""Records of others, at one look."""
_OURS: Final = 2048  # records of the log around each place where theirs could be from
_BEFORE: Final = 512
_BYTES: Final = 1 << 20


class Suspicion:
    """Records of others in one partition that have still to be looked at."""

    def __init__(self, shared: Shared, side: TopicSide) -> None:
        self._shared = shared
        self._side = side
        self._from: int | None = None
        self._due_at = 0.0

    def notice(self, kafka_offset: int) -> None:
        """There are some, from this offset on."""
        if self._from is None:
            self._from = kafka_offset

    async def look(self, mirror: Mirror, *, at_once: bool = False) -> Copies | None:
        """Look at the first of them, if it is time: where others write all day, not at all."""
        now = asyncio.get_running_loop().time()
        if self._from is None or (now < self._due_at and not at_once):
            return None
        at, self._from = max(self._from, mirror.settled_upto), None
        self._due_at = now + self._shared.options.suspect_every_seconds
        if at >= mirror.next_kafka_offset and not at_once:
            return None
        own = self._shared.producer.producer_id
        return await look_for_copies(self._shared, self._side, mirror, at, own=own)


async def look_for_copies(
    shared: Shared, side: TopicSide, mirror: Mirror, kafka_offset: int, *, own: int | None
) -> Copies | None:
    """Look at what lies in Kafka from an offset on and is not written by the producer `own`."""
    place = side.place(mirror.partition)
    try:
        batches = (await shared.port.fetch(place, kafka_offset)).batches
    except KafkaRefused:  # deleted meanwhile
        return None
    names = frozenset(
        {header.name for header in mirror.offset_headers} | {shared.options.offset_header}
    )

    def compare() -> Copies | None:
        theirs = tuple(_theirs(batches, kafka_offset, own, names))
        return copies(theirs, _ours(shared.log, side.topic, mirror, theirs)) if theirs else None

    return await shared.in_thread(compare)


def copied(mirror: Mirror, kafka_offset: int) -> CopiesInKafka:
    """What is to be done, in words."""
    topic, place = mirror.topic, f"'{mirror.target.kafka_topic}' partition {mirror.partition}"
    return CopiesInKafka(
        f"Somebody else writes the records of '{topic}' into Kafka topic {place} too, from offset "
        f"{kafka_offset} on: another mirror of this log or of a copy of it, or a program that "
        f"copies. Stop that one. Then run `duolog mirror resume {topic}` to go on and leave its "
        f"copies where they are, or delete the Kafka topic and run `duolog mirror restart {topic}`."
    )


def copied_before(topic: str, kafka_topic: str, partition: int, found: Copies) -> CopiesInKafka:
    """The same of a topic that no mirror was begun in."""
    return CopiesInKafka(
        f"Kafka topic '{kafka_topic}' partition {partition} has records of '{topic}' already, at "
        f"offset {found.kafka_offset}: another mirror of this log or of a copy of it has written "
        "them, or this one before it was forgotten. Stop the other one, and delete the Kafka "
        f"topic: it is made again, and what the log keeps of '{topic}' is copied."
    )


def _theirs(
    fetched: bytes, kafka_offset: int, own: int | None, names: frozenset[str | None]
) -> Iterator[StoredRecord]:
    left, at = LOOKED_AT, 0
    for batch in stored_batches(fetched):
        stored = fetched[at : at + batch.size]
        at += batch.size
        if batch.producer_id == own or batch.next_offset <= kafka_offset:
            continue
        for record in stored_records(stored, LOOKED_AT + max(0, kafka_offset - batch.base_offset)):
            if record.kafka_offset < kafka_offset:
                continue
            if not left:
                return
            left -= 1
            content = without_header(record.content, names)
            yield StoredRecord(record.kafka_offset, record.sequence, content)


def _ours(
    log: LogAccess, topic: Topic, mirror: Mirror, theirs: Sequence[StoredRecord]
) -> Iterator[OurRecord]:
    """Records of the log that have one of their times, from where theirs could be copies of."""
    times = pa.array({record.content.ts_ms for record in theirs}, pa.int64())
    found: dict[int, OurRecord] = {}
    reached = -1
    for begin in sorted(_candidates(log, topic, mirror, theirs)):
        if begin + _BEFORE <= reached:
            continue
        where = topic.id, mirror.partition, max(begin - _BEFORE, reached)
        try:
            fetched = log.fetch(*where, max_records=_OURS, max_bytes=_BYTES)
        except OffsetOutOfRange:  # gone meanwhile
            continue
        reached = fetched.next_offset
        for batch in fetched.batches:
            is_same = pc.is_in(batch.records.column("ts"), value_set=times)
            rows = np.flatnonzero(is_same.to_numpy(zero_copy_only=False))
            same = batch.records.take(pa.array(rows)).to_pylist()
            for row, offset in zip(same, (rows + batch.base_offset).tolist(), strict=True):
                found[offset] = _our(row, offset, mirror)
    yield from found.values()


def _candidates(
    log: LogAccess, topic: Topic, mirror: Mirror, theirs: Sequence[StoredRecord]
) -> set[int]:
    """Where in the log theirs could be from: by their times, their numbers, and where ours are."""
    head = log.offsets(topic.id)[mirror.partition]
    wanted = {mirror.next_log_offset}
    for record in (theirs[0], theirs[-1]):
        at = AtTimestamp(max(0, record.content.ts_ms))
        wanted.add(log.resolve(topic.id, mirror.partition, at))
        if record.sequence is not None:
            wanted |= {record.sequence, record.sequence + mirror.skipped}
    return {min(max(head.start + _BEFORE, each), head.next_offset + _BEFORE) for each in wanted}


def _our(row: dict[str, Any], offset: int, mirror: Mirror) -> OurRecord:
    headers = tuple((each["name"], each["value"]) for each in row["headers"] or ())
    before = offset - 1
    for skip in reversed(mirror.skips):
        if skip.first_log_offset <= before < skip.next_log_offset:
            before = skip.first_log_offset - 1
    sequence = sequence_of(offset, mirror.skipped_before(offset))
    return OurRecord(
        offset, sequence, before, Content(row["ts"], row["key"], row["value"], headers)
    )
