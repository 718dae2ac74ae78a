"""Records of the log as one Kafka record batch (format 2), made by whole columns.

    base offset i64 | length i32 | leader epoch i32 | magic i8 | crc32c u32 of what follows |
    attributes i16 | last offset delta i32 | first, highest timestamp i64 | producer id i64 |
    producer epoch i16 | base sequence i32 | count i32 | records, compressed as one

    a record: length | attributes i8 | timestamp delta | offset delta | key | value | headers

Lengths and deltas are zigzag varints, -1 is null. Each variable-length piece is made for all
records at once with numpy, and Arrow joins the pieces: 5 M records/s, against 0.3 row by row.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final

import google_crc32c
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duolog.bridge.kafka.wire.compression import Compression
from duolog.log.mirror_model import MirrorProducer

Array = np.ndarray[Any, Any]

BATCH_OVERHEAD_BYTES: Final = 61
_RECORD_OVERHEAD_BYTES: Final = 37  # at most: the varints and the attributes
_HEADER_OVERHEAD_BYTES: Final = 10
SEQUENCES: Final = 1 << 31  # they wrap to 0

_BEFORE_CRC = struct.Struct(">qiibI")
_AFTER_CRC = struct.Struct(">hiqqqhii")
_AFTER_LENGTH: Final = _BEFORE_CRC.size - 12
_MAGIC: Final = 2
_ZSTD_ATTRIBUTE: Final = 4
_NO_ATTRIBUTES: Final = np.uint8(0)


def sequence_of(log_offset: int, skipped_before: int) -> int:
    """The sequence number of a record: a function of the log alone."""
    return (log_offset - skipped_before) % SEQUENCES


@dataclass(frozen=True, slots=True)
class KafkaBatch:
    """A batch in two pieces, since joining them would copy the records once more."""

    head: bytes
    records: memoryview

    def __len__(self) -> int:
        return len(self.head) + len(self.records)

    def __bytes__(self) -> bytes:
        return b"".join((self.head, self.records))


def encode_batch(
    records: Any, producer: MirrorProducer, base_sequence: int, compression: Compression
) -> KafkaBatch:
    """One Kafka batch of a pa.RecordBatch of the log's schema."""
    times = records.column("ts").to_numpy(zero_copy_only=False)
    content = _records(records, times)
    if compression is Compression.ZSTD:
        packed = pa.Codec("zstd", compression_level=1).compress(content, asbytes=True)
        content = pa.py_buffer(packed)
    after = _AFTER_CRC.pack(
        _ZSTD_ATTRIBUTE if compression is Compression.ZSTD else 0,
        len(times) - 1,
        int(times[0]),
        int(times.max()),
        producer.producer_id,
        producer.producer_epoch,
        base_sequence,
        len(times),
    )
    crc = google_crc32c.extend(google_crc32c.value(after), content)
    length = _AFTER_LENGTH + len(after) + content.size
    head = _BEFORE_CRC.pack(0, length, -1, _MAGIC, crc) + after
    return KafkaBatch(head, memoryview(content))


def largest_sizes(records: Any) -> Array:
    """How many bytes each record takes in a batch at most, before compression."""
    sizes = np.full(records.num_rows, _RECORD_OVERHEAD_BYTES, np.int64)
    for name in ("key", "value"):
        sizes += np.diff(_ends(records.column(name)))
    headers = records.column("headers")
    if headers.null_count < len(headers):
        counts, children = _header_children(headers)
        each = np.full(len(children), _HEADER_OVERHEAD_BYTES, np.int64)
        for name in ("name", "value"):
            each += np.diff(_ends(_binary(children.field(name))))
        upto = np.concatenate(([0], np.cumsum(each)))
        ends = np.cumsum(counts)
        sizes += upto[ends] - upto[ends - counts]
    return sizes


def _records(records: Any, times: Array) -> Any:
    """All records one after the other, as a pa.Buffer."""
    count = len(times)
    key, value = records.column("key"), records.column("value")
    key_lengths, value_lengths = np.diff(_ends(key)), np.diff(_ends(value))
    headers, header_lengths = _headers(records.column("headers"))
    deltas = _Varints(times - times[0])
    offsets = _Varints(np.arange(count, dtype=np.int64))
    keys, values = _Varints(_length(key, key_lengths)), _Varints(_length(value, value_lengths))
    body = deltas.sizes + offsets.sizes + keys.sizes + values.sizes
    body = body + key_lengths + value_lengths + header_lengths + 1
    before_key = _joined(_Varints(body), None, deltas, offsets, keys)
    pieces = [before_key, key, _joined(values), value, headers]
    joined = pc.binary_join_element_wise(
        *(piece if isinstance(piece, pa.Scalar) else _filled(piece) for piece in pieces), _EMPTY
    )
    ends = _ends(joined)
    return joined.buffers()[2].slice(int(ends[0]), int(ends[-1] - ends[0]))


class _Varints:
    """Zigzag varints of a column, and how long each is."""

    def __init__(self, numbers: Array) -> None:
        signed = numbers.astype(np.int64, copy=False)
        self.values = ((signed << 1) ^ (signed >> 63)).view(np.uint64)
        self.sizes = np.ones(len(signed), np.int64)
        highest = int(self.values.max(initial=0))
        for shift in range(7, 64, 7):
            if not highest >> shift:
                break
            self.sizes += (self.values >> np.uint64(shift)) > 0

    def put(self, out: Array, positions: Array) -> None:
        """Write each at its position."""
        longest = int(self.sizes.max(initial=0))
        for at in range(longest):
            chosen = slice(None) if at == 0 else self.sizes > at
            seven = (self.values[chosen] >> np.uint64(7 * at)).astype(np.uint8) & np.uint8(127)
            if longest > 1:
                seven |= (self.sizes[chosen] > at + 1).astype(np.uint8) << np.uint8(7)
            out[positions[chosen] + at] = seven


def _joined(*pieces: _Varints | None) -> Any:
    """Varints side by side, as a binary column; None is a zero byte."""
    sizes = [np.int64(1) if piece is None else piece.sizes for piece in pieces]
    ends = np.concatenate(([0], np.cumsum(sum(sizes[1:], sizes[0]))))
    out = np.full(int(ends[-1]), _NO_ATTRIBUTES, np.uint8)
    at = ends[:-1]
    for piece, size in zip(pieces, sizes, strict=True):
        if piece is not None:
            piece.put(out, at)
        at = at + size
    return _column(ends, out)


def _column(ends: Array, content: Any) -> Any:
    offsets = pa.py_buffer(ends.astype(np.int32))
    buffers = [None, offsets, pa.py_buffer(content)]
    return pa.Array.from_buffers(pa.binary(), len(ends) - 1, buffers)


def _headers(headers: Any) -> tuple[Any, Array]:
    """The headers of each record with their number before them; and how long that is."""
    if headers.null_count == len(headers):
        return _NO_HEADERS, np.ones(len(headers), np.int64)
    counts, children = _header_children(headers)
    name, value = _binary(children.field("name")), _binary(children.field("value"))
    names, values = np.diff(_ends(name)), np.diff(_ends(value))
    written = pc.binary_join_element_wise(
        _joined(_Varints(names)),
        name,
        _joined(_Varints(_length(value, values))),
        _filled(value),
        _EMPTY,
    )
    upto, ends = _ends(written), np.concatenate(([0], np.cumsum(counts)))
    each = _column(upto[ends], written.buffers()[2] or b"")
    column = pc.binary_join_element_wise(_joined(_Varints(counts)), each, _EMPTY)
    return column, np.diff(_ends(column))


def _header_children(headers: Any) -> tuple[Array, Any]:
    """How many headers each record has, and all headers one after the other."""
    counts = pc.fill_null(pc.list_value_length(headers), 0).to_numpy(zero_copy_only=False)
    return counts.astype(np.int64), headers.flatten()


def _length(column: Any, lengths: Array) -> Array:
    """The lengths as they are written: -1 for null."""
    if not column.null_count:
        return lengths
    return np.where(column.is_null().to_numpy(zero_copy_only=False), -1, lengths)


def _filled(column: Any) -> Any:
    return column.fill_null(_EMPTY) if column.null_count else column


def _binary(column: Any) -> Any:
    return column.cast(pa.binary())


def _ends(column: Any) -> Array:
    """Where each value begins in the column's bytes, and where the last one ends.

    What is null takes no bytes here, whatever lies below it.
    """
    if column.null_count:
        lengths = pc.fill_null(pc.binary_length(column), 0).to_numpy(zero_copy_only=False)
        return np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
    offsets = np.frombuffer(column.buffers()[1], np.int32)
    return offsets[column.offset : column.offset + len(column) + 1].astype(np.int64)


# Not by pa.scalar, which imports pandas where it is installed: 40 MB and half a second.
_EMPTY: Final = _column(np.array([0, 0]), b"")[0]
_NO_HEADERS: Final = _column(np.array([0, 1]), b"\0")[0]
