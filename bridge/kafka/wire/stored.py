"""Record batches as a broker stores them: what their heads tell, without unpacking a record."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_LENGTH = struct.Struct(">qi")
_HEAD = struct.Struct(">qiibIhiqqqhii")


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """One batch in a Kafka partition: where it lies, and who wrote it as what."""

    base_offset: int
    next_offset: int
    producer_id: int  # -1: somebody without idempotence
    producer_epoch: int
    base_sequence: int
    count: int
    is_control: bool  # the end of a transaction
    size: int  # in bytes, as stored


def stored_batches(fetched: bytes) -> Iterator[StoredBatch]:
    """The batches of a fetch; the last one may be cut off, and is then left out."""
    at = 0
    while at + _LENGTH.size <= len(fetched):
        base_offset, length = _LENGTH.unpack_from(fetched, at)
        end = at + _LENGTH.size + length
        if end > len(fetched):
            return
        fields = _HEAD.unpack_from(fetched, at)
        attributes, last_delta = fields[5], fields[6]
        yield StoredBatch(
            base_offset,
            base_offset + last_delta + 1,
            fields[9],
            fields[10],
            fields[11],
            fields[12],
            bool(attributes & 32),
            end - at,
        )
        at = end
