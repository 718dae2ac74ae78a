"""Stored batches as messages of an answer's Arrow stream, without unpacking them.

A stored batch is an Arrow message already, compressed; an answer has two columns more, and others
in between. A message is metadata, which says for each column how many values there are and where
in the body its buffers lie, and the body. So the body goes out as it is stored, behind the buffers
of the new columns, and only the metadata is made anew: that of a sample, with other numbers in it.
Unpacking and packing again would take ten times as long, and that much more memory.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, chain
from typing import Any, Final

import pyarrow as pa

from duolog.log.batch import RECORD_SCHEMA

Buffers = list[tuple[int, int]]  # of each, where in the body it begins, and how long it is

_PREFIX: Final = 8  # of a message: four bytes of ones, and the length of its metadata
_ALIGNMENT: Final = 64
_AS_IT_IS: Final = (-1).to_bytes(8, "little", signed=True)  # before a buffer: not compressed
_TABLE_FIELDS: Final = 4  # where in its table of places a table's fields begin


@dataclass(frozen=True, slots=True)
class Metadata:
    """Where the numbers of a record batch lie in its message's metadata (a flatbuffer)."""

    body_length_at: int
    length_at: int
    nodes_at: int
    nodes: int
    buffers_at: int
    buffers: int
    compression: bytes  # the codec, and how it is used

    @classmethod
    def of(cls, metadata: Any) -> Metadata | None:
        """None when it is not of a record batch with all of these."""
        message = _indirect(metadata, 0)
        body_length, header = _field(metadata, message, 3), _field(metadata, message, 2)
        if not body_length or not header:
            return None
        batch = _indirect(metadata, header)
        length, nodes, buffers, compression = (_field(metadata, batch, nth) for nth in range(4))
        if not (length and nodes and buffers and compression):
            return None
        nodes, buffers = _indirect(metadata, nodes), _indirect(metadata, buffers)
        how = _indirect(metadata, compression)
        return cls(
            body_length,
            length,
            nodes + 4,
            _u32(metadata, nodes),
            buffers + 4,
            _u32(metadata, buffers),
            _codec(metadata, how),
        )


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A stored batch as it is: the numbers of its metadata, and its body."""

    count: int
    nodes: bytes  # 16 bytes each
    buffers: Buffers
    body: memoryview
    unpacked_bytes: int  # what its columns take then


def stored_message(content: memoryview) -> StoredMessage | None:
    """The message that a batch's body is; None where it is built otherwise than ours are."""
    try:
        return _stored_message(content)
    except (struct.error, IndexError):  # it points outside of itself
        return None


def _stored_message(content: memoryview) -> StoredMessage | None:
    size = _u32(content, 4)
    metadata = content[_PREFIX : _PREFIX + size]
    places, ours = Metadata.of(metadata), _stored_places()
    if places is None or (places.nodes, places.buffers, places.compression) != (
        ours.nodes,
        ours.buffers,
        ours.compression,
    ):
        return None
    (count,) = struct.unpack_from("<q", metadata, places.length_at)
    numbers = struct.unpack_from(f"<{2 * places.buffers}q", metadata, places.buffers_at)
    nodes = bytes(metadata[places.nodes_at : places.nodes_at + 16 * places.nodes])
    buffers = list(zip(numbers[::2], numbers[1::2], strict=True))
    for nth, of_node in enumerate(_buffers_by_node()):
        if not any(nodes[16 * nth : 16 * nth + 8]):  # what an empty column was cut from
            buffers[of_node.start : of_node.stop] = [(0, 0)] * len(of_node)
    body = content[_PREFIX + size :]
    if any(at < 0 or length < 0 or at + length > len(body) for at, length in buffers):
        return None
    return StoredMessage(count, nodes, buffers, body, sum(_unpacked(body, *b) for b in buffers))


def _unpacked(body: memoryview, at: int, length: int) -> int:
    """How large a buffer is; before each that is not empty it is said."""
    said = int.from_bytes(body[at : at + 8], "little", signed=True) if length else 0
    return length - 8 if said < 0 else said


class Splice:
    """Puts columns of whole numbers before those of a stored batch.

    `order` says for each further column of the answer which one of the stored batch it is.
    """

    def __init__(self, schema: Any, order: Sequence[int], sample: Any) -> None:
        (message,) = _record_batches(sample, schema)
        self._sample = bytes(message.metadata)
        places = Metadata.of(self._sample)
        assert places is not None  # noqa: S101 - pyarrow has just written it
        self._places = places
        nodes, buffers = _parts_by_column(RECORD_SCHEMA)
        self._nodes = [slice(16 * n.start, 16 * n.stop) for n in (nodes[at] for at in order)]
        self._buffers = [at for column in order for at in buffers[column]]

    def pieces(self, stored: StoredMessage, numbers: Sequence[Any]) -> list[Any]:
        """The message, in two pieces. `numbers` are arrays without nulls."""
        before: list[Any] = []
        places_before, at = [], 0
        for column in numbers:
            content = memoryview(column).cast("B")
            padding = -(len(content) + 8) % _ALIGNMENT
            before += [_AS_IT_IS, content, bytes(padding)]
            places_before += [(at, 0), (at, len(content) + 8)]
            at += len(content) + 8 + padding
        buffers = places_before + [
            (at + stored.buffers[nth][0], stored.buffers[nth][1]) for nth in self._buffers
        ]
        nodes = struct.pack("<qq", stored.count, 0) * len(numbers) + b"".join(
            stored.nodes[part] for part in self._nodes
        )
        metadata = bytearray(self._sample)
        places = self._places
        struct.pack_into("<q", metadata, places.length_at, stored.count)
        struct.pack_into("<q", metadata, places.body_length_at, at + len(stored.body))
        metadata[places.nodes_at : places.nodes_at + len(nodes)] = nodes
        struct.pack_into(
            f"<{2 * len(buffers)}q",
            metadata,
            places.buffers_at,
            *(number for place in buffers for number in place),
        )
        begin = b"\xff\xff\xff\xff" + len(metadata).to_bytes(4, "little")
        return [b"".join((begin, metadata, *before)), stored.body]


def _parts_by_column(schema: Any) -> tuple[list[range], list[range]]:
    """Which nodes, and which buffers, of a batch's metadata each column has."""
    within = [_buffers_within(field.type) for field in schema]
    return _ranges(map(len, within)), _ranges(map(sum, within))


def _ranges(counts: Iterable[int]) -> list[range]:
    """So many numbers each, one behind the other."""
    counted = list(counts)
    ends = accumulate(counted)
    return [range(end - count, end) for end, count in zip(ends, counted, strict=True)]


@cache
def _buffers_by_node() -> list[range]:
    """Which buffers each node of a stored batch has."""
    return _ranges(count for field in RECORD_SCHEMA for count in _buffers_within(field.type))


def _buffers_within(kind: Any) -> list[int]:
    """How many a column of this type has, then each one inside of it."""
    inside = (_buffers_within(kind.field(nth).type) for nth in range(kind.num_fields))
    return [kind.num_buffers, *chain.from_iterable(inside)]


@cache
def _stored_places() -> Metadata:
    """Those of a batch as this machine's pyarrow would store it."""
    columns = [pa.array([0], field.type) if not field.nullable else pa.nulls(1, field.type)
               for field in RECORD_SCHEMA]  # fmt: skip
    sample = pa.RecordBatch.from_arrays(columns, schema=RECORD_SCHEMA)
    (message,) = _record_batches(sample, RECORD_SCHEMA)
    places = Metadata.of(message.metadata)
    assert places is not None  # noqa: S101 - pyarrow has just written it
    return places


def _record_batches(batch: Any, schema: Any) -> list[Any]:
    """The messages of a stream with this batch, those with records."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as out:
        out.write_batch(batch)
    messages = pa.ipc.MessageReader.open_stream(sink.getvalue())
    return [message for message in messages if message.type == "record batch"]


def _u32(content: Any, at: int) -> int:
    return int(struct.unpack_from("<I", content, at)[0])


def _indirect(content: Any, at: int) -> int:
    """Where that lies which is referred to here."""
    return at + _u32(content, at)


def _field(content: Any, table: int, nth: int) -> int:
    """Where a table's field lies; 0 when it is left out."""
    places = table - int(struct.unpack_from("<i", content, table)[0])
    at = _TABLE_FIELDS + 2 * nth
    (size,) = struct.unpack_from("<H", content, places)
    if at >= size:
        return 0
    (offset,) = struct.unpack_from("<H", content, places + at)
    return table + offset if offset else 0


def _codec(content: Any, compression: int) -> bytes:
    """Which codec and method; a field that is left out is zero."""
    fields = (_field(content, compression, nth) for nth in range(2))
    return bytes(content[at] if at else 0 for at in fields)
