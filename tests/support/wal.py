"""Where the records of RocksDB's write-ahead log begin and end.

A log is blocks of 32 KiB. A record is one or more fragments: crc u32, length u16, type u8 (1 whole,
2 first, 3 middle, 4 last), content, little endian; a fragment does not cross the end of a block.
"""

from __future__ import annotations

import struct
from pathlib import Path

_BLOCK_BYTES = 32 << 10
_FRAGMENT = struct.Struct("<IHB")
_WHOLE, _FIRST, _LAST = 1, 2, 4


def record_bounds(path: Path) -> list[tuple[int, int]]:
    """First byte, and the byte after the last one, of each record of a write-ahead log."""
    content = path.read_bytes()
    bounds: list[tuple[int, int]] = []
    at = begun = 0
    while at < len(content):
        left = _BLOCK_BYTES - at % _BLOCK_BYTES
        if left < _FRAGMENT.size:
            at += left
            continue
        _, length, kind = _FRAGMENT.unpack_from(content, at)
        if kind in {_WHOLE, _FIRST}:
            begun = at
        elif kind not in {3, _LAST}:
            raise ValueError(f"{path} has a fragment of type {kind} at byte {at}.")
        at += _FRAGMENT.size + length
        if kind in {_WHOLE, _LAST}:
            bounds.append((begun, at))
    return bounds


def newest_wal(log: Path) -> Path:
    """The write-ahead log that was written to last."""
    return max((log / "db").glob("*.log"), key=lambda path: int(path.stem))
