"""Batches as an attacker would make them: wrong inside, with a right checksum.

The numbers of an Arrow message are found by a reader of its metadata of our own, which is not the
one that the log checks with.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

import pyarrow as pa

from duolog.bridge.http.arrow_messages import Metadata
from duolog.log.batch import HEADER_BYTES

_HEADER = struct.Struct(">BBHIIQQ")
_PREFIX = 8


def summed(encoded: bytes) -> bytes:
    """The same bytes with the checksum that they should have."""
    begin = zlib.crc32(encoded[:4]) if encoded[:1] != b"\x01" else 0
    return encoded[:4] + zlib.crc32(encoded[8:], begin).to_bytes(4) + encoded[8:]


def with_header(
    encoded: bytes,
    *,
    count: int | None = None,
    first_ts_ms: int | None = None,
    max_ts_ms: int | None = None,
    body: int | None = None,
    reserved: int | None = None,
) -> bytes:
    """Another header before the same body."""
    fields = list(_HEADER.unpack_from(encoded))
    for at, value in ((1, body), (2, reserved), (4, count), (5, first_ts_ms), (6, max_ts_ms)):
        if value is not None:
            fields[at] = value
    return summed(_HEADER.pack(*fields) + encoded[HEADER_BYTES:])


def with_bytes(encoded: bytes, at: int, content: bytes) -> bytes:
    """Other bytes at a place of the body."""
    at += HEADER_BYTES
    return summed(encoded[:at] + content + encoded[at + len(content) :])


def with_body(encoded: bytes, body: bytes) -> bytes:
    """Another body behind the same header."""
    return summed(encoded[:HEADER_BYTES] + body)


@dataclass(frozen=True, slots=True)
class ArrowPlaces:
    """Where the numbers of an Arrow body lie in it."""

    version_byte: int
    kind: int
    body_length: int
    length: int
    nodes: tuple[int, ...]  # of each: where its count lies; that of its nulls is 8 behind
    buffers: tuple[int, ...]  # of each: where its place lies; its length is 8 behind
    body: int

    @classmethod
    def of(cls, encoded: bytes) -> ArrowPlaces:
        content = encoded[HEADER_BYTES:]
        size = int.from_bytes(content[4:8], "little")
        metadata = content[_PREFIX : _PREFIX + size]
        places = Metadata.of(metadata)
        assert places is not None
        assert max(places.nodes, places.buffers) < 100
        return cls(
            _PREFIX + _field(metadata, 0),
            _PREFIX + _field(metadata, 1),
            _PREFIX + places.body_length_at,
            _PREFIX + places.length_at,
            tuple(_PREFIX + places.nodes_at + 16 * nth for nth in range(places.nodes)),
            tuple(_PREFIX + places.buffers_at + 16 * nth for nth in range(places.buffers)),
            _PREFIX + size,
        )


def number_at(encoded: bytes, at: int) -> int:
    """The i64 at a place of the body."""
    return int(struct.unpack_from("<q", encoded, HEADER_BYTES + at)[0])


def with_number(encoded: bytes, at: int, number: int) -> bytes:
    """Another i64 at a place of the body."""
    return with_bytes(encoded, at, struct.pack("<q", number))


def _field(metadata: bytes, nth: int) -> int:
    table = int.from_bytes(metadata[:4], "little")
    fields = table - struct.unpack_from("<i", metadata, table)[0]
    return int(table + struct.unpack_from("<H", metadata, fields + 4 + 2 * nth)[0])


def laid_open(encoded: bytes) -> bytes:
    """The same batch, an Arrow one, with no buffer packed: what is in them can be changed."""
    places = ArrowPlaces.of(encoded)
    content = encoded[HEADER_BYTES:]
    lz4 = pa.Codec("lz4")
    metadata = bytearray(content[: places.body])
    body = b""
    for at in places.buffers:
        begin, length = struct.unpack_from("<qq", metadata, at)
        if length:
            (size,) = struct.unpack_from("<q", content, places.body + begin)
            packed = content[places.body + begin + 8 : places.body + begin + length]
            raw = packed if size < 0 else lz4.decompress(packed, size, asbytes=True)
            struct.pack_into("<qq", metadata, at, len(body), len(raw) + 8)
            body += struct.pack("<q", -1) + raw + bytes(-len(raw) % 8)
        else:
            struct.pack_into("<qq", metadata, at, len(body), 0)
    struct.pack_into("<q", metadata, places.body_length, len(body))
    return with_body(encoded, bytes(metadata) + body)
