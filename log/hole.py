"""A hole: what stands in the place of a damaged batch that was skipped.

    offset  size  field
         0     1  format (72): no batch has it, so an older Duolog refuses to read on, by name
         1     1  version of the hole (1)
         2     2  reserved, zero
         4     4  crc32 of all the rest: what is before it, then what follows
         8     8  number of offsets
        16     .  JSON: by, at_ms, reason, batch_bytes, is_damaged

All big endian. `is_damaged` is never stored: it marks what a host puts in the place of a damaged
batch for a reader that wants to go on behind it.
"""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import asdict, dataclass

from duolog.errors import DamagedLog, UnsupportedFormat

FORMAT = 72
MOST_OFFSETS = 2**32 - 1  # of one hole
_VERSION = 1
_BEFORE_SUM = struct.Struct(">BBH")
_COUNT = struct.Struct(">Q")
_HEADER_BYTES = 16


@dataclass(frozen=True, slots=True)
class HoleNote:
    """Who made the hole, when, and what of."""

    by: str = ""
    at_ms: int = 0
    reason: str = ""
    batch_bytes: int = 0
    is_damaged: bool = False


def is_hole(encoded: bytes | memoryview) -> bool:
    """Whether what is stored is a hole, and no batch."""
    return bool(encoded) and encoded[0] == FORMAT


def encode_hole(count: int, note: HoleNote) -> bytes:
    """A hole of so many offsets."""
    before = _BEFORE_SUM.pack(FORMAT, _VERSION, 0)
    after = _COUNT.pack(count) + json.dumps(asdict(note), separators=(",", ":")).encode()
    crc32 = zlib.crc32(after, zlib.crc32(before))
    return b"".join((before, crc32.to_bytes(4), after))


def decode_hole(encoded: bytes) -> tuple[int, HoleNote]:
    """How many offsets a hole has, and its note."""
    if len(encoded) < _HEADER_BYTES:
        raise DamagedLog(f"A hole of {len(encoded)} bytes is cut short.")
    if zlib.crc32(encoded[8:], zlib.crc32(encoded[:4])) != int.from_bytes(encoded[4:8]):
        raise DamagedLog("A hole fails its checksum.")
    if encoded[1] != _VERSION:
        raise UnsupportedFormat(f"A hole has version {encoded[1]}. Use a newer Duolog.")
    (count,) = _COUNT.unpack_from(encoded, 8)
    try:
        note = HoleNote(**json.loads(encoded[_HEADER_BYTES:]))
    except (ValueError, TypeError, RecursionError):
        raise DamagedLog("A hole's note is not readable.") from None
    if not 0 < count <= MOST_OFFSETS:
        raise DamagedLog(f"A hole claims {count} offsets.")
    return count, note
