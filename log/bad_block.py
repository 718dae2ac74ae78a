"""Lets RocksDB go on where the disk has changed records of a table.

Each block of a table has a checksum of RocksDB's. A reader who meets a bad one is told, and goes on
behind it. But tables are rewritten in the background, and there a bad block ends everything: no
write is taken any more, of no topic, however often the log is opened.

Each batch of a block has a checksum of its own, too. So where the block is in order, and what was
changed lies within batches, the block gets the checksum that it has now. RocksDB carries it along
from then on, and whoever decodes the batch finds the damage, with its offsets. The sum itself is
RocksDB's: its message says what was expected and what was found.

    block:    entries, u32 for each restart, u32 number of restarts     all little endian
    entry:    varint shared with the key before, varint rest, varint value, rest of the key, value
    key:      our key, then u8 kind and u56 sequence number
    trailer:  u8 compression (none), u32 checksum; not counted in the block's size
"""

from __future__ import annotations

import os
import re
import shutil
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from duolog.errors import DamagedLog, UnsupportedFormat
from duolog.log import batch
from duolog.log.hole import decode_hole, is_hole
from duolog.log.owner import sync_folder

_MESSAGE: Final = re.compile(
    r"block checksum mismatch: stored(?:\(context removed\))? = (?P<stored>\d+), "
    r"computed = (?P<computed>\d+), type = \d+ +in .*?(?P<table>\d+\.sst) "
    r"offset (?P<offset>\d+) size (?P<size>\d+)"
)
_TRAILER: Final = struct.Struct("<BI")
_U32: Final = struct.Struct("<I")
_NOT_COMPRESSED: Final = 0
_KIND_BYTES: Final = 8  # kind and sequence number behind our key
_REMOVAL, _VALUE, _SINGLE_REMOVAL = 0, 1, 7
_KEY_BYTES: Final = 16


class _OutOfOrder(Exception):
    """The block's own structure is not readable. Never leaves this module."""


@dataclass(frozen=True, slots=True)
class BadBlock:
    """A block that fails its checksum, as RocksDB tells of it."""

    table: str
    offset: int
    size_bytes: int
    stored: int
    computed: int


def bad_block_in(message: str) -> BadBlock | None:
    """The block that a message of RocksDB's is about, if it is about one."""
    found = _MESSAGE.search(message)
    if found is None:
        return None
    numbers = (int(found[name]) for name in ("offset", "size", "stored", "computed"))
    return BadBlock(found["table"], *numbers)


def accept(database: Path, bad: BadBlock, latest_sequence: int) -> bool:
    """Give the block the checksum that it has now. False where more than records was changed, or
    the disk does not take it; then the table is as it was.

    Only while the database is closed. The table becomes another file: a backup may share this one.
    """
    table, copy = database / bad.table, database.parent / f"{bad.table}.copy"
    try:
        trailer = _new_trailer(table, bad, latest_sequence)
        if trailer is None:
            return False
        shutil.copyfile(table, copy)
        with copy.open("r+b") as file:
            file.seek(bad.offset + bad.size_bytes)
            file.write(trailer)
            file.flush()
            os.fsync(file.fileno())
        copy.replace(table)
        sync_folder(database)
    except OSError:
        with suppress(OSError):
            copy.unlink()
        return False
    return True


def _new_trailer(table: Path, bad: BadBlock, latest_sequence: int) -> bytes | None:
    with table.open("rb") as file:
        file.seek(bad.offset)
        block = file.read(bad.size_bytes)
        trailer = file.read(_TRAILER.size)
    if len(block) < bad.size_bytes or len(trailer) < _TRAILER.size:
        return None
    compression, written = _TRAILER.unpack(trailer)
    if compression != _NOT_COMPRESSED or not has_changed_records_only(block, latest_sequence):
        return None
    context = written - bad.stored  # RocksDB adds to each sum where its block belongs
    return _TRAILER.pack(compression, (bad.computed + context) % 2**32)


def has_changed_records_only(block: bytes, latest_sequence: int) -> bool:
    """Whether a block is in order but for batches that fail their own checksums."""
    try:
        values = list(_values(block, latest_sequence))
    except (_OutOfOrder, IndexError, struct.error):
        return False
    return any(not _is_whole(value) for value in values)


def _values(block: bytes, latest_sequence: int) -> Iterator[bytes]:
    """The values, in a block whose keys and lengths agree with each other.

    A key's sequence number stands directly before its value: what has changed both is noticed by
    numbers that have not been given yet.
    """
    restarts, end = _restarts(block)
    at, key = 0, b""
    while at < end:
        begin = at
        shared, at = _varint(block, at)
        rest, at = _varint(block, at)
        size, at = _varint(block, at)
        if shared > len(key) or (begin in restarts and shared):
            raise _OutOfOrder
        restarts.discard(begin)
        before, key = key, key[:shared] + block[at : at + rest]
        at += rest
        if len(key) != _KEY_BYTES + _KIND_BYTES or at + size > end:
            raise _OutOfOrder
        if key[:_KEY_BYTES] <= before[:_KEY_BYTES]:
            raise _OutOfOrder
        kind, sequence = key[_KEY_BYTES], int.from_bytes(key[_KEY_BYTES + 1 :], "little")
        if sequence > latest_sequence:
            raise _OutOfOrder
        if kind == _VALUE:
            yield block[at : at + size]
        elif kind not in {_REMOVAL, _SINGLE_REMOVAL} or size:
            raise _OutOfOrder
        at += size
    if at != end or restarts:
        raise _OutOfOrder


def _restarts(block: bytes) -> tuple[set[int], int]:
    """Where entries begin with a whole key, and where entries end."""
    (count,) = _U32.unpack_from(block, len(block) - _U32.size)
    end = len(block) - _U32.size * (count + 1)
    if not count or end <= 0:
        raise _OutOfOrder
    restarts = struct.unpack_from(f"<{count}I", block, end)
    if restarts[0] or len(set(restarts)) != count:
        raise _OutOfOrder
    return set(restarts), end


def _varint(block: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while (byte := block[at]) & 0x80:
        number |= (byte & 0x7F) << shift
        shift += 7
        at += 1
        if shift > 28:
            raise _OutOfOrder
    return number | byte << shift, at + 1


def _is_whole(value: bytes) -> bool:
    try:
        if is_hole(value):
            decode_hole(value)
        else:
            batch.check(value)
    except DamagedLog:
        return False
    except UnsupportedFormat:
        return True
    return True
