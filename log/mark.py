"""The mark: the sequence number that was durable last, kept outside RocksDB.

Recovery drops what follows a damaged place in the write-ahead log, as it must after a power loss;
by itself it cannot tell that from damage to what had been synced. The mark can: whatever was
recovered must reach it. It is written after each sync and not synced itself, so it may lag but
never lead. Two slots take turns, each with its checksum, so that a torn write leaves the other.

    slot: format u8 (1) | 7 zero bytes | sequence number u64 | crc32 u32 of the 16 bytes | pad to 64
"""

from __future__ import annotations

import errno
import os
import struct
import threading
import zlib
from pathlib import Path

from duolog.errors import DamagedLog

_SLOT = struct.Struct(">B7xQ")
_CRC = struct.Struct(">I")
_SLOT_BYTES = 64


class Mark:
    """The mark file of one opened log."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._path = path
        self._turn = 0
        self._guard = threading.Lock()
        self.sequence = 0

    def read_or_create(self, *, is_new: bool) -> int:
        """The highest sequence number that is known to have been durable; 0 for a new log."""
        found = [
            (sequence, slot)
            for slot in (0, 1)
            if (sequence := _parsed(os.pread(self._descriptor, _SLOT_BYTES, slot * _SLOT_BYTES)))
            is not None
        ]
        if found:
            self.sequence, slot = max(found)
            self._turn = slot ^ 1  # a torn write must not take the only good slot
        elif is_new:
            self._create()
        else:
            raise DamagedLog(
                f"{self._path} is missing or damaged, so nobody can say whether the log is whole. "
                "Restore the log from a backup."
            )
        return self.sequence

    def _create(self) -> None:
        for slot in (0, 1):
            self._write(0, slot)
        os.fsync(self._descriptor)

    def advance(self, sequence: int) -> None:
        """Remember that everything up to this sequence number is durable."""
        with self._guard:
            if sequence <= self.sequence:
                return
            self._write(sequence, self._turn)
            self.sequence = sequence
            self._turn ^= 1

    def _write(self, sequence: int, slot: int) -> None:
        written = os.pwrite(self._descriptor, _packed(sequence), slot * _SLOT_BYTES)
        if written != _SLOT_BYTES:
            raise OSError(errno.EIO, f"{self._path} took {written} of {_SLOT_BYTES} bytes")

    def close(self) -> None:
        os.close(self._descriptor)


def _packed(sequence: int) -> bytes:
    content = _SLOT.pack(1, sequence)
    return (content + _CRC.pack(zlib.crc32(content))).ljust(_SLOT_BYTES, b"\0")


def _parsed(slot: bytes) -> int | None:
    content, rest = slot[: _SLOT.size], slot[_SLOT.size :]
    if len(slot) != _SLOT_BYTES or _CRC.unpack_from(rest)[0] != zlib.crc32(content):
        return None
    version, sequence = _SLOT.unpack(content)
    return int(sequence) if version == 1 else None
