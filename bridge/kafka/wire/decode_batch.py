"""A record batch of Kafka (format 2) as Arrow columns: `record_batch.py`, the other way.

Only where each record begins is found one after the other, since each length says where the next
one is; all the rest is done for all records at once. What others may have written and we never do
(transactions, other compressions, times of the broker) is left to a client library: None.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final

import google_crc32c
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duolog.log.batch import RECORD_SCHEMA

Array = np.ndarray[Any, Any]

COLUMNS: Final = ("ts", "key", "value", "headers")
SCHEMA: Final = pa.schema([RECORD_SCHEMA.field(name) for name in COLUMNS])

_HEAD: Final = struct.Struct(">qiibIhiqqqhii")
_CHECKED_FROM: Final = 21  # the checksum covers what follows it
_MAGIC: Final = 2
_PLAIN: Final = {0: None, 4: "zstd"}
_MOST_BYTES: Final = 128 << 20  # unpacked


class DamagedKafkaBatch(Exception):
    """A batch that does not match its checksum, or is not what its head says."""


@dataclass(frozen=True, slots=True)
class DecodedBatch:
    """The records of one batch, and where each lies."""

    offsets: Array
    columns: Any  # a pa.RecordBatch of SCHEMA


def decode_batch(batch: bytes | memoryview) -> DecodedBatch | None:
    """The records of one whole batch; None when it is not of the plain kind."""
    fields = _HEAD.unpack_from(batch)
    base_offset, magic, crc, attributes = fields[0], fields[3], fields[4], fields[5]
    if magic != _MAGIC or attributes not in _PLAIN:
        return None
    if google_crc32c.value(bytes(batch[_CHECKED_FROM:])) != crc:
        raise DamagedKafkaBatch(f"The batch at offset {base_offset} does not match its checksum.")
    content = bytes(batch[_HEAD.size :])
    if _PLAIN[attributes] is not None:
        with pa.CompressedInputStream(pa.BufferReader(content), _PLAIN[attributes]) as unpacked:
            content = unpacked.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            return None
    try:
        return _decode(content, fields[12], base_offset, fields[7])
    except IndexError:
        raise DamagedKafkaBatch(f"The batch at offset {base_offset} is cut short.") from None


def _decode(content: bytes, count: int, base_offset: int, first_ts_ms: int) -> DecodedBatch:
    octets = np.frombuffer(content, np.uint8)
    deltas, at = _varints(octets, _starts(content, count) + 1)  # behind the attributes
    offsets, at = _varints(octets, at)
    key_lengths, key_at = _varints(octets, at)
    value_lengths, value_at = _varints(octets, key_at + np.maximum(key_lengths, 0))
    header_counts, header_at = _varints(octets, value_at + np.maximum(value_lengths, 0))
    columns = pa.RecordBatch.from_arrays(
        [
            pa.array(deltas + first_ts_ms),
            _slices(content, key_at, key_lengths),
            _slices(content, value_at, value_lengths),
            _headers(content, header_at, header_counts),
        ],
        schema=SCHEMA,
    )
    return DecodedBatch(offsets + base_offset, columns)


def _starts(content: bytes, count: int) -> Array:
    """Where each record begins, behind its length."""
    starts = np.empty(count, np.int64)
    at = 0
    for number in range(count):  # each says where the next one is: 0.2 us a record
        length, at = _varint(content, at)
        starts[number] = at
        at += length
    if at > len(content):
        raise IndexError
    return starts


def _varint(content: bytes, at: int) -> tuple[int, int]:
    octet = content[at]
    at += 1
    value, shift = octet & 127, 7
    while octet & 128:
        octet = content[at]
        at += 1
        value |= (octet & 127) << shift
        shift += 7
    return (value >> 1) ^ -(value & 1), at


def _varints(octets: Array, at: Array) -> tuple[Array, Array]:
    """The zigzag varints at these places, and the places behind them."""
    values = np.zeros(len(at), np.uint64)
    at = at.copy()
    rows = np.arange(len(at))
    shift = 0
    while len(rows):
        found = octets[at[rows]]
        values[rows] |= (found & 127).astype(np.uint64) << np.uint64(shift)
        at[rows] += 1
        rows = rows[found >= 128]
        shift += 7
    return (values >> np.uint64(1)).view(np.int64) ^ -(values & np.uint64(1)).view(np.int64), at


def _slices(content: bytes, at: Array, lengths: Array) -> Any:
    """Pieces of the content as a column; a negative length is null."""
    count = len(at)
    ends = np.empty(2 * count, np.int32)  # pieces and what lies between them, in turns
    ends[0::2] = at
    ends[1::2] = at + np.maximum(lengths, 0)
    # Arrow trusts these places: what lies beyond the content is memory of others.
    if (lengths > len(content)).any() or ends[-1] > len(content) or (np.diff(ends) < 0).any():
        raise IndexError
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(content)]
    turns = pa.Array.from_buffers(pa.binary(), 2 * count - 1, buffers)
    pieces = turns.take(pa.array(np.arange(0, 2 * count - 1, 2)))
    if (lengths >= 0).all():
        return pieces
    return pc.if_else(pa.array(lengths >= 0), pieces, pa.scalar(None, pa.binary()))


def _headers(content: bytes, at: Array, counts: Array) -> Any:
    kind = SCHEMA.field("headers").type
    if not counts.any():
        return pa.nulls(len(counts), kind)
    rows: list[list[dict[str, Any]] | None] = [None] * len(counts)
    for row in np.flatnonzero(counts).tolist():  # one by one: few records have any
        place, found = int(at[row]), []
        for _ in range(int(counts[row])):
            name, place = _piece(content, place)
            value, place = _piece(content, place)
            found.append({"name": (name or b"").decode(errors="replace"), "value": value})
        rows[row] = found
    return pa.array(rows, kind)


def _piece(content: bytes, at: int) -> tuple[bytes | None, int]:
    length, at = _varint(content, at)
    if length < 0:
        return None, at
    if at + length > len(content):
        raise IndexError
    return content[at : at + length], at + length
