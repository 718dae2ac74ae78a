"""The journal of the fault shim: what a process did to its files, in order."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

_ENTRY = struct.Struct("<IIQqqII")
_MAGIC = 0x4A4F5552


class Kind(IntEnum):
    """What happened. The numbers are those of fault_shim.c."""

    STARTED = 1  # a process began to watch; handles of earlier ones are gone
    OPENED = 2  # number: may create, detail: cuts to nothing, first: path
    WRITTEN = 3  # number: offset, first: bytes
    RESIZED = 4  # number: size
    SYNC_BEGUN = 5  # number: which sync, detail: 1 for fdatasync
    SYNC_ENDED = 6  # number: which sync, detail: 1 when it went well
    RENAMED = 7
    UNLINKED = 8
    MADE_FOLDER = 9
    LINKED = 10
    NOTED = 11  # first: text from the process itself
    UNFOLLOWED = 12  # first: a call that the shim cannot follow


class Event(NamedTuple):
    """One entry."""

    kind: Kind
    handle: int
    number: int
    detail: int
    first: bytes
    second: bytes

    @property
    def path(self) -> str:
        return self.first.decode()

    @property
    def target(self) -> str:
        return self.second.decode()


def read_journal(path: Path) -> list[Event]:
    """All whole entries; a process that was killed may have left half a one at the end."""
    return list(_entries(path.read_bytes()))


def _entries(content: bytes) -> Iterator[Event]:
    at = 0
    while at + _ENTRY.size <= len(content):
        magic, kind, handle, number, detail, first, second = _ENTRY.unpack_from(content, at)
        if magic != _MAGIC:
            raise RuntimeError(f"The journal is not readable at byte {at}.")
        start = at + _ENTRY.size
        at = start + first + second
        if at > len(content):
            return
        yield Event(
            Kind(kind), handle, number, detail, content[start : start + first],
            content[start + first : at],
        )  # fmt: skip
