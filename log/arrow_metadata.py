"""Reads the metadata of an Arrow message (a flatbuffer) that a stranger may have made.

pyarrow tells nothing of a message before it unpacks it. So what a message declares is read here:
how many rows, where its buffers lie, and how large they say they become. Nothing outside of the
metadata is ever looked at, and what does not fit raises WrongBatch.

A flatbuffer's table begins with the way back to a list of 16-bit numbers: where each of its fields
lies. A field that is left out has the number 0, or none.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

SCHEMA: Final = 1
DICTIONARY: Final = 2
RECORDS: Final = 3
VERSION_5: Final = 4
LZ4_FRAME: Final = 0
ZSTD: Final = 1

_CONTINUATION: Final = b"\xff\xff\xff\xff"
_PREFIX_BYTES: Final = 8  # the continuation, and the length of the metadata
_ALIGNMENT: Final = 8
_TABLE_FIELDS: Final = 4  # where in its list a table's fields begin
_PAIR_BYTES: Final = 16  # a node and a buffer are two i64 each
_MOST_PAIRS: Final = 1 << 16  # far more than columns that anybody has
_NOT_PACKED: Final = -1
_MOST_EXPANSION: Final = 255
"""No LZ4 block becomes larger than so many times its own size."""


class WrongBatch(ValueError):
    """What is wrong with a batch. Never leaves the log: it ends as DamagedLog or DamagedPart."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of an Arrow stream."""

    kind: int
    version: int
    has_custom_metadata: bool
    content: _Table | None
    body: memoryview
    end: int  # where the next one begins


@dataclass(frozen=True, slots=True)
class Compression:
    """How the buffers of a message are packed."""

    codec: int
    method: int


@dataclass(frozen=True, slots=True)
class Records:
    """What a message of records declares."""

    length: int
    nodes: tuple[int, ...]  # for each: how many values, how many nulls
    buffers: tuple[int, ...]  # for each: where it lies in the body, how long it is
    compression: Compression | None
    has_variadic_buffers: bool


def read_message(content: memoryview, at: int = 0) -> Message:
    """The message that begins there."""
    if bytes(content[at : at + 4]) != _CONTINUATION:
        raise WrongBatch("it does not begin as an Arrow message does")
    start = at + _PREFIX_BYTES
    size = _unpacked(_I32, content, at + 4)
    if size <= 0 or (_PREFIX_BYTES + size) % _ALIGNMENT or start + size > len(content):
        raise WrongBatch(f"its metadata claims {size} bytes")
    metadata = content[start : start + size]
    message = _Table(metadata, _unpacked(_U32, metadata, 0))
    body_bytes = message.number(3, _I64)
    if not 0 <= body_bytes <= len(content) - start - size:
        raise WrongBatch(f"its body claims {body_bytes} bytes")
    body = content[start + size : start + size + body_bytes]
    return Message(
        message.number(1, _U8),
        message.number(0, _I16),
        message.has(4),
        message.table(2),
        body,
        start + size + body_bytes,
    )


def read_messages(content: memoryview) -> Iterator[Message]:
    """The messages of a stream, up to its end."""
    at = 0
    while at < len(content):
        ends = bytes(content[at : at + 4]) == _CONTINUATION and not any(content[at + 4 : at + 8])
        if ends:
            return
        message = read_message(content, at)
        yield message
        at = message.end


def read_records(content: _Table) -> Records:
    """What a message of kind RECORDS declares; of a DICTIONARY, its table's second field does."""
    compression = content.table(3)
    return Records(
        content.number(0, _I64),
        content.pairs(1),
        content.pairs(2),
        None
        if compression is None
        else Compression(compression.number(0, _I8), compression.number(1, _I8)),
        content.has(4) and content.length(4) > 0,
    )


def unpacked_bytes(records: Records, body: memoryview, most_bytes: int) -> int:
    """How large all buffers say they become; each lies within the body."""
    total, end = 0, len(body)
    compression = records.compression
    most_expansion = _MOST_EXPANSION if compression and compression.codec == LZ4_FRAME else None
    numbers = iter(records.buffers)
    for at, length in zip(numbers, numbers, strict=True):
        if at < 0 or length < 0 or at % _ALIGNMENT or at + length > end:
            raise WrongBatch(f"a buffer of {length} bytes at {at} lies outside of its body")
        if not length:
            continue
        if compression is None:
            total += length
            continue
        (declared,) = _I64.unpack_from(body, at) if length >= _ALIGNMENT else (-2,)
        packed = length - _ALIGNMENT
        if declared == _NOT_PACKED:
            declared = packed
        elif declared < 0 or (most_expansion and declared > most_expansion * packed):
            raise WrongBatch(f"a buffer of {length} bytes claims to become {declared}")
        total += declared
    if total > most_bytes:
        raise WrongBatch(f"it claims to become {total} bytes, over the limit of {most_bytes}")
    return total


class _Table:
    """One table of a flatbuffer. Reads nothing outside of it."""

    __slots__ = ("_at", "_fields", "_metadata")

    def __init__(self, metadata: memoryview, at: int) -> None:
        self._metadata = metadata
        self._at = at
        fields = at - _unpacked(_I32, metadata, at)
        size = _unpacked(_U16, metadata, fields)
        if size < _TABLE_FIELDS or size % 2 or fields + size > len(metadata):
            raise WrongBatch("its metadata is not readable")
        self._fields = struct.unpack_from(f"<{size // 2}H", metadata, fields)[2:]

    def has(self, nth: int) -> bool:
        return nth < len(self._fields) and self._fields[nth] != 0

    def number(self, nth: int, kind: struct.Struct) -> int:
        """A number; one that is left out is 0."""
        return _unpacked(kind, self._metadata, self._place(nth)) if self.has(nth) else 0

    def table(self, nth: int) -> _Table | None:
        return _Table(self._metadata, self._referred(nth)) if self.has(nth) else None

    def length(self, nth: int) -> int:
        """How many elements a vector says it has."""
        return _unpacked(_U32, self._metadata, self._referred(nth))

    def pairs(self, nth: int) -> tuple[int, ...]:
        """A vector of pairs of i64, one number behind the other."""
        if not self.has(nth):
            return ()
        at = self._referred(nth)
        count = _unpacked(_U32, self._metadata, at)
        at += 4
        if count > _MOST_PAIRS or at + _PAIR_BYTES * count > len(self._metadata):
            raise WrongBatch(f"its metadata claims {count} buffers or columns")
        return struct.unpack_from(f"<{2 * count}q", self._metadata, at)

    def _place(self, nth: int) -> int:
        return int(self._at + self._fields[nth])

    def _referred(self, nth: int) -> int:
        at = self._place(nth)
        return at + _unpacked(_U32, self._metadata, at)


def _unpacked(kind: struct.Struct, content: Any, at: int) -> int:
    # Not unpack_from alone: it takes an offset below zero for one from the end.
    if at < 0 or at + kind.size > len(content):
        raise WrongBatch("its metadata points outside of itself")
    number: int = kind.unpack_from(content, at)[0]
    return number


_U8, _I8 = struct.Struct("<B"), struct.Struct("<b")
_U16, _I16 = struct.Struct("<H"), struct.Struct("<h")
_U32, _I32 = struct.Struct("<I"), struct.Struct("<i")
_I64 = struct.Struct("<q")
