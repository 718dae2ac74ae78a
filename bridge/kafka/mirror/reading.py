"""Batches of the log as they are read for the mirror: decoded, and small ones joined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, Final

import pyarrow as pa

from duolog.bridge.kafka.mirror.pieces import Limits, cut, refused_rows, unskipped
from duolog.bridge.kafka.wire.compression import Compression
from duolog.bridge.kafka.wire.offset_header import with_offset_header
from duolog.bridge.kafka.wire.record_batch import KafkaBatch, encode_batch, sequence_of
from duolog.errors import DamagedBatch
from duolog.log.fetched import EncodedBatch, FetchedEncoded
from duolog.log.mirror_model import Mirror, MirrorProducer

READ_BYTES: Final = 1 << 20  # at once, as stored
_MADE_BYTES: Final = 2 << 20  # at once, of records: what is stored may be a twentieth of them
_JOINED_BYTES: Final = 64 << 10  # as stored: publishes that share no sync make tiny batches


@dataclass(frozen=True, slots=True)
class Stretch:
    """Records that follow one another, from a log offset on."""

    first: int
    records: Any  # pa.RecordBatch
    has_offset_header: bool = False  # as the last one of each record

    @property
    def stop(self) -> int:
        return self.first + int(self.records.num_rows)

    def part(self, first: int, stop: int) -> Stretch:
        """Only those offsets."""
        records = self.records.slice(first - self.first, stop - first)
        return replace(self, first=first, records=records)

    def encoded(
        self, producer: MirrorProducer, skipped: int, compression: Compression
    ) -> KafkaBatch:
        """As one batch for Kafka."""
        sequence = sequence_of(self.first, skipped)
        return encode_batch(self.records, producer, sequence, compression)


@dataclass(frozen=True, slots=True)
class Made:
    """Batches for Kafka, then perhaps a stretch of which it would refuse some.

    `stop`: where to go on, with what was fetched already and is `left`.
    """

    batches: list[tuple[Stretch, KafkaBatch]]
    stop: int
    left: tuple[FetchedEncoded, ...] = ()
    refused: Stretch | None = None

    def behind(self, batches: list[tuple[Stretch, KafkaBatch]]) -> Made:
        """The same, with others before it."""
        return replace(self, batches=[*batches, *self.batches])


@dataclass(frozen=True, slots=True)
class Making:
    """How batches for Kafka are made of what was read: as things are when it is its turn."""

    mirror: Mirror
    limits: Limits
    most_bytes: int
    producer: MirrorProducer
    compression: Compression
    offset_header: str | None = None

    def made_of(self, groups: Sequence[FetchedEncoded], now_ms: int) -> Made:
        """The batches of these groups, up to a bound. Takes a while.

        At once, since handing over from thread to thread takes as long as one of these steps.
        A damaged batch is met when nothing is left before it: DamagedBatch.
        """
        batches: list[tuple[Stretch, KafkaBatch]] = []
        made_bytes = 0
        for nth, group in enumerate(groups, 1):
            left = tuple(groups[nth:])
            try:
                stretch = stretch_of(group, self.offset_header)
            except DamagedBatch as damage:
                before, behind = cut_before(group, damage.first_offset)
                if before is not None:
                    return replace(self.made_of((before,), now_ms), left=(behind, *left)).behind(
                        batches
                    )
                if batches:
                    return Made(batches, group.offset, (group, *left))
                raise
            parts = self.parts_of(stretch)
            if any(refused_rows(part.records, self.limits, now_ms) for part in parts):
                return Made(batches, stretch.stop, left, stretch)
            for part in parts:
                batches += self.batches_of(part)
            made_bytes += int(stretch.records.nbytes)
            if made_bytes >= _MADE_BYTES:
                break
        return Made(batches, stretch.stop, left)

    def parts_of(self, stretch: Stretch) -> list[Stretch]:
        """What is not skipped of it."""
        ranges = unskipped(stretch.first, stretch.stop, self.mirror.skips)
        return [stretch.part(*each) for each in ranges]

    def batches_of(self, part: Stretch) -> list[tuple[Stretch, KafkaBatch]]:
        """Records of which none is skipped nor refused, as batches that Kafka takes."""
        skipped = self.mirror.skipped_before(part.first)
        pieces = [
            part.part(part.first + start, part.first + stop)
            for start, stop in cut(part.records, self.most_bytes)
        ]
        return [(each, each.encoded(self.producer, skipped, self.compression)) for each in pieces]


def groups(fetched: FetchedEncoded) -> list[FetchedEncoded]:
    """What was fetched before the first hole, in portions that become a stretch each.

    Each is decoded when its turn comes: what is stored may be a twentieth of what it holds.
    """
    portions: list[list[EncodedBatch]] = []
    size = 0
    for batch in takewhile(lambda batch: not batch.is_hole, fetched.batches):
        size += len(batch.encoded)
        if not portions or size > _JOINED_BYTES:
            portions.append([])
            size = len(batch.encoded)
        portions[-1].append(batch)
    return [
        replace(fetched, offset=max(fetched.offset, portion[0].base_offset), batches=tuple(portion))
        for portion in portions
    ]


def hole_at_start(fetched: FetchedEncoded) -> EncodedBatch | None:
    """The hole that a read begins with, if it does."""
    first = fetched.batches[0] if fetched.batches else None
    return first if first is not None and first.is_hole else None


def cut_before(group: FetchedEncoded, offset: int) -> tuple[FetchedEncoded | None, FetchedEncoded]:
    """The batches of a group before an offset, if there are some, and the others."""
    before = tuple(batch for batch in group.batches if batch.base_offset < offset)
    behind = replace(group, offset=max(group.offset, offset), batches=group.batches[len(before) :])
    return (replace(group, batches=before) if before else None), behind


def stretch_of(group: FetchedEncoded, offset_header: str | None = None) -> Stretch:
    """The records of a group, with their offset as a header if that is wanted.

    Joining small batches costs less than sending each.
    """
    batches = [batch.records for batch in group.decode()]
    records = batches[0]
    if len(batches) > 1:
        (records,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    if offset_header is None:
        return Stretch(group.offset, records)
    return Stretch(group.offset, with_offset_header(records, group.offset, offset_header), True)
