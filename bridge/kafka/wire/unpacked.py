"""The records in a batch as a broker stores it, whoever wrote it: only a few, to look at them.

Row by row in Python, which is slow: nobody asks for more than some hundreds at a time.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

_HEAD = struct.Struct(">qiibIhiqqqhii")
_CODEC_MASK: Final = 7
_LOG_APPEND_TIME: Final = 8
_CONTROL: Final = 32
_STREAMED: Final = {3: "lz4", 4: "zstd"}
_GZIP: Final = 1
_SNAPPY: Final = 2
_SNAPPY_FRAMED: Final = b"\x82SNAPPY\x00"
_LONGEST_SHIFT: Final = 63
_MOST_BYTES: Final = 4 << 20  # of a batch, unpacked: what others write may be packed a thousandfold


@dataclass(frozen=True, slots=True)
class Content:
    """What a record says, wherever it lies."""

    ts_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """One record in Kafka. `sequence` is None where its writer does not count."""

    kafka_offset: int
    sequence: int | None
    content: Content


def stored_records(batch: bytes, most: int) -> tuple[StoredRecord, ...]:
    """The first records of one stored batch, none where it cannot be read."""
    fields = _HEAD.unpack_from(batch, 0)
    base_offset, attributes, first_ts, max_ts = fields[0], fields[5], fields[7], fields[8]
    if attributes & _CONTROL:
        return ()
    try:
        content = _unpacked(batch[_HEAD.size :], attributes & _CODEC_MASK)
    except (OSError, ValueError, IndexError, zlib.error, pa.ArrowException):
        return ()
    found: list[StoredRecord] = []
    try:
        for offset_delta, ts_delta, key, value, headers in _records(content):
            if len(found) >= min(most, fields[12]):
                break
            ts_ms = max_ts if attributes & _LOG_APPEND_TIME else first_ts + ts_delta
            sequence = None if fields[11] < 0 else (fields[11] + offset_delta) % (1 << 31)
            content_ = Content(ts_ms, key, value, headers)
            found.append(StoredRecord(base_offset + offset_delta, sequence, content_))
    except (IndexError, UnicodeDecodeError):  # cut off, or nothing that we know
        pass
    return tuple(found)


def _unpacked(packed: bytes, codec: int) -> bytes:
    if codec == 0:
        return packed
    if codec == _GZIP:
        return zlib.decompressobj(31).decompress(packed, _MOST_BYTES)
    if codec == _SNAPPY:
        return b"".join(_snappy_blocks(packed))
    if codec not in _STREAMED:
        raise ValueError(codec)
    stream = pa.CompressedInputStream(pa.BufferReader(packed), _STREAMED[codec])
    unpacked: bytes = stream.read(_MOST_BYTES)
    return unpacked


def _snappy_blocks(packed: bytes) -> Iterator[bytes]:
    """Java's frame around blocks, or one block without a frame."""
    blocks = [packed]
    if packed.startswith(_SNAPPY_FRAMED):
        blocks, at = [], len(_SNAPPY_FRAMED) + 8
        while at + 4 <= len(packed):
            size = int.from_bytes(packed[at : at + 4], "big")
            blocks.append(packed[at + 4 : at + 4 + size])
            at += 4 + size
    codec: Any = pa.Codec("snappy")
    left = _MOST_BYTES
    for block in blocks:
        size = _Reader(block).unsigned() if block else 0
        if not 0 < size <= left:
            return
        left -= size
        yield codec.decompress(block, decompressed_size=size, asbytes=True)


class _Reader:
    def __init__(self, content: bytes) -> None:
        self.content = content
        self.at = 0

    def unsigned(self) -> int:
        number = shift = 0
        while True:
            byte = self.content[self.at]
            self.at += 1
            number |= (byte & 127) << shift
            if byte < 128:
                return number
            shift += 7
            if shift > _LONGEST_SHIFT:
                raise IndexError  # no number that anybody writes

    def signed(self) -> int:
        number = self.unsigned()
        return (number >> 1) ^ -(number & 1)

    def text(self) -> bytes | None:
        length = self.signed()
        if length < 0:
            return None
        if self.at + length > len(self.content):
            raise IndexError
        self.at += length
        return self.content[self.at - length : self.at]


_Fields = tuple[int, int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]


def _records(content: bytes) -> Iterator[_Fields]:
    reader = _Reader(content)
    while reader.at < len(content):
        length = reader.signed()
        end = reader.at + length
        reader.at += 1  # attributes
        ts_delta, offset_delta = reader.signed(), reader.signed()
        key, value = reader.text(), reader.text()
        headers = tuple(
            ((reader.text() or b"").decode(), reader.text()) for _ in range(reader.signed())
        )
        yield offset_delta, ts_delta, key, value, headers
        reader.at = end
