"""Batches of the log as they are read for the mirror: decoded, and small ones joined."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from duolog.bridge.kafka.wire.compression import Compression
from duolog.bridge.kafka.wire.record_batch import encode_batch, sequence_of
from duolog.log.fetched import EncodedBatch, FetchedEncoded
from duolog.log.mirror_model import MirrorProducer

READ_BYTES: Final = 1 << 20  # at once, as stored
_JOINED_BYTES: Final = 64 << 10  # as stored: publishes that share no sync make tiny batches


@dataclass(frozen=True, slots=True)
class Stretch:
    """Records that follow one another, from a log offset on."""

    first: int
    records: Any  # pa.RecordBatch

    @property
    def stop(self) -> int:
        return self.first + int(self.records.num_rows)

    def part(self, first: int, stop: int) -> Stretch:
        """Only those offsets."""
        return Stretch(first, self.records.slice(first - self.first, stop - first))

    def encoded(self, producer: MirrorProducer, skipped: int, compression: Compression) -> bytes:
        """As one batch for Kafka."""
        sequence = sequence_of(self.first, skipped)
        return encode_batch(self.records, producer, sequence, compression)


def groups(fetched: FetchedEncoded) -> list[FetchedEncoded]:
    """What was fetched, in portions that become a stretch each.

    Each is decoded when its turn comes: what is stored may be a twentieth of what it holds.
    """
    portions: list[list[EncodedBatch]] = []
    size = 0
    for batch in fetched.batches:
        size += len(batch.encoded)
        if not portions or size > _JOINED_BYTES:
            portions.append([])
            size = len(batch.encoded)
        portions[-1].append(batch)
    return [
        replace(fetched, offset=max(fetched.offset, portion[0].base_offset), batches=tuple(portion))
        for portion in portions
    ]


def stretch_of(group: FetchedEncoded) -> Stretch:
    """The records of a group. Joining small batches costs less than sending each."""
    batches = [batch.records for batch in group.decode()]
    if len(batches) == 1:
        return Stretch(group.offset, batches[0])
    (records,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return Stretch(group.offset, records)
