"""One encoded batch of records: a small header and a body.

    offset  size  field
         0     1  format (2)
         1     1  body: 1 an Arrow IPC record batch, lz4, without schema; 2 packed (packed.py)
         2     2  reserved, zero
         4     4  crc32 of all the rest: what is before it, then what follows
         8     4  number of records
        12     8  timestamp of the first record
        20     8  highest timestamp
        28     .  body

All big endian. The checksum is made by whoever encodes and is checked by whoever decodes, so it
covers the way through staging, the log, caches and copies. A batch does not know its offsets:
what a task has staged is stored byte by byte.

Format 1 is still read. Its checksum leaves out what is before it, so there the kind of body has to
agree with how the body begins.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from duolog.errors import DamagedLog, InvalidRecord, UnsupportedFormat
from duolog.log.arrow_body import ArrowBody
from duolog.log.arrow_metadata import WrongBatch
from duolog.log.batch_values import check_values
from duolog.log.model import Record
from duolog.log.packed import pack, unpack

FORMAT = 2
TARGET_BYTES = 512 << 10  # of the records in a batch, before compression
MAX_RECORDS = 2**31 - 1
MAX_UNPACKED_BYTES = 1 << 30
"""No batch becomes larger, whatever it claims; `LogOptions.max_record_bytes` is far below."""

RECORD_SCHEMA = pa.schema(
    [
        pa.field("ts", pa.int64(), nullable=False),  # milliseconds since 1970
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field(
            "headers",
            pa.list_(
                pa.struct([pa.field("name", pa.string(), nullable=False), ("value", pa.binary())])
            ),
        ),
        pa.field("op", pa.int8(), nullable=False),  # model.Op
        pa.field("table", pa.string()),
        pa.field("payload", pa.int8(), nullable=False),  # model.PayloadMode
    ]
)

_HEADER = struct.Struct(">BBHIIQQ")
_BEFORE_SUM = struct.Struct(">BBH")
_AFTER_SUM = struct.Struct(">IQQ")
_ARROW, _PACKED = 1, 2
HEADER_BYTES = _HEADER.size


@dataclass(frozen=True, slots=True)
class BatchHeader:
    """What can be known of a batch without decoding it."""

    written_as: int
    body: int
    crc32: int
    count: int
    first_ts_ms: int
    max_ts_ms: int


def encode(records: Any) -> bytes:
    """The batch of these records, a pa.RecordBatch of RECORD_SCHEMA."""
    if records.num_rows == 0:
        raise InvalidRecord("A batch needs at least one record.")
    times = records.column("ts")
    bounds = pc.min_max(times)
    if bounds["min"].as_py() is None or times.null_count or bounds["min"].as_py() < 0:
        raise InvalidRecord("A record's timestamp must be 0 or more milliseconds since 1970.")
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, RECORD_SCHEMA, options=_LZ4) as stream:
        stream.write_batch(_without_hidden_headers(records))
    message = memoryview(sink.getvalue())[len(_SCHEMA) : -_END_BYTES]
    return _framed(_ARROW, records.num_rows, times[0].as_py(), bounds["max"].as_py(), message)


def _without_hidden_headers(records: Any) -> Any:
    """The same records. A list column that Arrow made of nulls has large buffers behind it.

    Arrow writes them whole with each slice of the column, and every reader unpacks them.
    """
    at = RECORD_SCHEMA.get_field_index("headers")
    headers = records.column(at)
    rows = len(headers)
    if headers.null_count < rows:
        return records
    nothing = [pa.py_buffer(bytes(-(-rows // 8))), pa.py_buffer(bytes(4 * (rows + 1)))]
    empty = pa.Array.from_buffers(headers.type, rows, nothing, children=[_NO_HEADER])
    return records.set_column(at, RECORD_SCHEMA.field(at), empty)


def encode_small(records: Sequence[Record], now_ms: int) -> tuple[bytes, int]:
    """The batch of a few single records, and its highest timestamp."""
    body, times = pack(records, now_ms)
    highest = max(times)
    return _framed(_PACKED, len(records), times[0], highest, body), highest


def _framed(body: int, count: int, first_ts_ms: int, max_ts_ms: int, content: Any) -> bytes:
    before = _BEFORE_SUM.pack(FORMAT, body, 0)
    after = _AFTER_SUM.pack(count, first_ts_ms, max_ts_ms)
    crc32 = zlib.crc32(content, zlib.crc32(before + after))
    return b"".join((before, crc32.to_bytes(4), after, content))


def read_header(encoded: bytes | memoryview) -> BatchHeader:
    """The header alone, unchecked but for its format."""
    try:
        return header_of(encoded)
    except WrongBatch as wrong:
        raise _damaged(wrong) from None


def header_of(encoded: bytes | memoryview) -> BatchHeader:
    """Like `read_header`, but what is not right raises WrongBatch."""
    if len(encoded) < HEADER_BYTES:
        raise WrongBatch(f"it is cut short: it has {len(encoded)} bytes")
    written_as, body, reserved, crc32, count, first, highest = _HEADER.unpack_from(encoded)
    if written_as > FORMAT:
        if not _has_sum(encoded, crc32):
            raise WrongBatch(f"its format is {written_as}, and it fails its checksum")
        raise UnsupportedFormat(
            f"A batch has format {written_as}; this Duolog reads up to {FORMAT}. Use a newer one."
        )
    if not written_as or reserved or body not in (_ARROW, _PACKED) or not count:
        raise WrongBatch("it has no readable header")
    return BatchHeader(written_as, body, crc32, count, first, highest)


def _has_sum(encoded: bytes | memoryview, crc32: int) -> bool:
    """Whether this is the checksum of all the rest, as it is of every format from 2 on."""
    return zlib.crc32(encoded[8:], zlib.crc32(encoded[:4])) == crc32


def decode(encoded: bytes, *, max_unpacked_bytes: int = MAX_UNPACKED_BYTES) -> Any:
    """The records of a batch, checked whole: DamagedLog for what is not right in any way.

    Whoever encodes makes the checksum too, so a right one alone proves nothing.
    """
    try:
        checked = _checked(encoded)
    except WrongBatch as wrong:
        raise _damaged(wrong) from None
    try:
        return _unpacked(*checked, max_unpacked_bytes)
    except WrongBatch as wrong:
        raise _made_wrong(wrong) from None


def unpacked(encoded: bytes, max_unpacked_bytes: int) -> Any:
    """Like `decode`, but what is not right raises WrongBatch."""
    return _unpacked(*_checked(encoded), max_unpacked_bytes)


def _unpacked(header: BatchHeader, content: memoryview, max_unpacked_bytes: int) -> Any:
    if header.body == _PACKED:
        records = unpack(content, header.count, RECORD_SCHEMA)
    else:
        records = _BODY.read(content, header.count, max_unpacked_bytes)
    check_values(records, header.count, header.first_ts_ms, header.max_ts_ms)
    return records


def decode_checked(encoded: bytes) -> Any:
    """The records of a batch that was checked whole a moment ago, for half of what `decode` takes.

    Only for bytes that nobody could change since: others may be decoded to anything.
    """
    try:
        header, content = _checked(encoded)
    except WrongBatch as wrong:
        raise _damaged(wrong) from None
    if header.body == _PACKED:
        return unpack(content, header.count, RECORD_SCHEMA)
    return _BODY.read_checked(content)


def check(encoded: bytes) -> BatchHeader:
    """The header of a batch that matches its checksum; what does not is refused."""
    try:
        return _checked(encoded)[0]
    except WrongBatch as wrong:
        raise _damaged(wrong) from None


def is_packed(batch: bytes | BatchHeader) -> bool:
    """Whether the body is that of a few single records."""
    header = batch if isinstance(batch, BatchHeader) else read_header(batch)
    return header.body == _PACKED


def arrow_message(encoded: bytes) -> memoryview | None:
    """The body as the Arrow message that it is, not unpacked; None where it is none.

    Its checksum and what it declares are checked, but not the values that are packed in it.
    """
    try:
        header, content = _checked(encoded)
    except WrongBatch as wrong:
        raise _damaged(wrong) from None
    if header.body != _ARROW:
        return None
    try:
        _BODY.check(content, header.count, MAX_UNPACKED_BYTES)
    except WrongBatch as wrong:
        raise _made_wrong(wrong) from None
    return content


def _checked(encoded: bytes) -> tuple[BatchHeader, memoryview]:
    header = header_of(encoded)
    view = memoryview(encoded)
    content = view[HEADER_BYTES:]
    crc32 = zlib.crc32(view[8:], zlib.crc32(view[:4]) if header.written_as > 1 else 0)
    if crc32 != header.crc32 or (header.written_as == 1 and not _begins_as(header, content)):
        raise WrongBatch(f"its {header.count} records fail its checksum")
    return header, content


def _begins_as(header: BatchHeader, content: memoryview) -> bool:
    """Whether a body of format 1 begins as its kind does, which no checksum covers."""
    if header.body == _PACKED:
        return content[:8] == header.first_ts_ms.to_bytes(8, "little")
    return content[:4] == _CONTINUATION


def _damaged(wrong: WrongBatch) -> DamagedLog:
    return DamagedLog(
        f"A batch cannot be read: {wrong}. The disk or a copy has damaged it: restore the log from "
        "a backup."
    )


def _made_wrong(wrong: WrongBatch) -> DamagedLog:
    return DamagedLog(
        f"A batch cannot be read: {wrong}. Its checksum is right, so it came in like this, by a "
        "Duolog that did not look into batches yet: no backup has it otherwise. Read on behind it."
    )


_NO_HEADER = pa.array([], RECORD_SCHEMA.field("headers").type.value_type)
# Without Arrow's thread pool: on batches of this size, handing each buffer over and waiting for it
# takes longer than the packing itself (measured: 277 us against 175 to decode, worse when busy).
_LZ4 = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_END_BYTES = 8  # of an IPC stream
_CONTINUATION = b"\xff\xff\xff\xff"  # before each message of one


def _schema_message() -> bytes:
    """The part of an IPC stream that batches are stored without."""
    empty = pa.BufferOutputStream()
    with pa.ipc.new_stream(empty, RECORD_SCHEMA, options=_LZ4):
        pass
    return bytes(memoryview(empty.getvalue())[:-_END_BYTES])


_SCHEMA = _schema_message()
_BODY = ArrowBody(RECORD_SCHEMA, _SCHEMA)
