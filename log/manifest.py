"""Reads RocksDB's MANIFEST: which tables it names, and how far it is as it was written.

Needed to put back a table that has lost its name, and to cut off an end that a power loss has torn.

The file is a log like the write-ahead log: blocks of 32 KiB, fragments of crc u32, length u16, type
u8 (1 whole, 2 first, 3 middle, 4 last), content. A record is fields, each a tag and its values.
A field of an unknown kind raises `Unreadable`, and then nothing is put back or cut.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

_BLOCK_BYTES: Final = 32 << 10
_FRAGMENT: Final = struct.Struct("<IHB")
_CHECKED_FROM: Final = 6  # the checksum covers the kind and the content
_CRC_ROTATION: Final = 15
_CRC_ADDED: Final = 0xA282EAD8
_CRC_POLYNOMIAL: Final = 0x82F63B78  # CRC-32C, the lowest bit first
_ALL_BITS: Final = 0xFFFFFFFF
_WHOLE, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
LOWEST_LEVEL: Final = 6
"""Tables of this level do not overlap."""

_SEQUENCE_BYTES: Final = 8  # behind a key, with its kind

_DEFAULT_FAMILY: Final = 0
_LOG, _NEXT_FILE, _LAST_SEQUENCE, _DELETED_FILE, _OLDEST_LOG = 2, 3, 4, 6, 10
_NEW_FILE, _FAMILY, _FAMILY_ADDED = 103, 200, 201
_PASSED_OVER: Final[dict[int, str]] = {  # n: a number, t: a text
    1: "t",  # comparator
    5: "nt",  # compaction cursor
    9: "n",  # previous log
    202: "",  # family dropped
    203: "n",  # most families
    300: "n",  # left in an atomic group
}
_MAY_BE_PASSED_OVER: Final = 1 << 13  # a text follows
_END_OF_FILE_FIELDS: Final = 1


class Unreadable(Exception):
    """The MANIFEST has something that is not known here. It never leaves the log."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table file that a family has."""

    number: int
    size_bytes: int
    first_key: bytes
    last_key: bytes
    level: int = 0


@dataclass(frozen=True, slots=True)
class NeededLogs:
    """The write-ahead logs that hold what no table has: from this number on.

    Recovery gives a number that no file may have. All that it found is in tables then, and what
    comes after it begins behind `recovered_sequence`; None for the number of a real file.
    """

    oldest: int
    recovered_sequence: int | None
    last_sequence: int
    """That was given when the last table was made."""


class _Record(NamedTuple):
    content: bytes
    end: int
    fragments: tuple[tuple[int, bytes], ...]  # each with its checksum

    def matches(self) -> bool:
        return all(crc == _masked_crc(checked) for crc, checked in self.fragments)


@dataclass(slots=True)
class _Edit:
    """What one record changes."""

    family_id: int = 0
    new_name: str | None = None
    log: int = 0
    oldest_log: int = 0
    last_sequence: int = 0
    is_change: bool = False  # and not a part of the state that the file begins with
    added: list[Table] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)


def manifest_path(database: Path) -> Path:
    """The MANIFEST that is in use."""
    with _unreadable_named():
        return database / (database / "CURRENT").read_text().strip()


def tables_of(database: Path, family: str) -> tuple[Table, ...]:
    """The tables of a family, as the MANIFEST leaves them.

    RocksDB has checked the file before this is called, and checks it again afterwards.
    """
    with _unreadable_named():
        content = manifest_path(database).read_bytes()
    return tables_in(content, family)


def readable_length(content: bytes, *, checksums: bool) -> int:
    """Where the first record that is cut off, or does not match its checksums, begins.

    Without `checksums` only the lengths of records are followed, which is quick.
    """
    length = 0
    for record in _records(content):
        if checksums and not record.matches():
            break
        length = record.end
    return length


def needed_logs(content: bytes) -> NeededLogs | None:
    """The write-ahead logs that a database of this MANIFEST needs; None before there are any."""
    oldest = 0
    logs: dict[int, int] = {}
    with _unreadable_named():
        edits = [_edit(record.content) for record in _records(content)]
    for edit in edits:
        oldest = max(oldest, edit.oldest_log)
        if edit.log:
            logs[edit.family_id] = edit.log
    oldest = oldest or min(logs.values(), default=0)
    if not oldest:
        return None
    last_sequence = max(edit.last_sequence for edit in edits)
    recovery = [edit for edit in edits if edit.is_change and edit.log == oldest]
    # The family `default` is always empty: only recovery ever changes its log.
    if not any(edit.family_id == _DEFAULT_FAMILY for edit in recovery):
        return NeededLogs(oldest, None, last_sequence)
    return NeededLogs(oldest, max(edit.last_sequence for edit in recovery), last_sequence)


def tables_in(content: bytes, family: str) -> tuple[Table, ...]:
    """The tables of a family, as this MANIFEST leaves them."""
    with _unreadable_named():
        return _tables(content, family)


@contextmanager
def _unreadable_named() -> Iterator[None]:
    try:
        yield
    except (OSError, UnicodeDecodeError, struct.error, IndexError) as error:
        raise Unreadable(str(error)) from error


def _tables(content: bytes, family: str) -> tuple[Table, ...]:
    names: dict[int, str] = {0: "default"}
    found: dict[tuple[int, int], Table] = {}
    for record in _records(content):
        if not record.matches():
            raise Unreadable("a record that does not match its checksum")
        edit = _edit(record.content)
        if edit.new_name is not None:
            names[edit.family_id] = edit.new_name
        for number in edit.gone:
            found.pop((edit.family_id, number), None)
        found.update({(edit.family_id, table.number): table for table in edit.added})
    return tuple(table for (of, _), table in found.items() if names.get(of) == family)


def _edit(record: bytes) -> _Edit:
    fields = _Fields(record)
    edit = _Edit()
    while fields.left:
        tag = fields.number()
        if tag == _FAMILY:
            edit.family_id = fields.number()
        elif tag == _FAMILY_ADDED:
            edit.new_name = fields.text().decode()
        elif tag == _DELETED_FILE:
            fields.number()
            edit.gone.append(fields.number())
        elif tag == _NEW_FILE:
            edit.added.append(fields.table())
        elif tag == _LOG:
            edit.log = fields.number()
        elif tag == _NEXT_FILE:
            fields.number()
            edit.is_change = True
        elif tag == _LAST_SEQUENCE:
            edit.last_sequence = fields.number()
        elif tag == _OLDEST_LOG:
            edit.oldest_log = fields.number()
        else:
            fields.pass_over(tag)
    return edit


def _records(content: bytes) -> Iterator[_Record]:
    """Whole records, up to the first that is none by the lengths and kinds of its fragments."""
    begun: list[bytes] = []
    fragments: list[tuple[int, bytes]] = []
    at = 0
    while at < len(content):
        left = _BLOCK_BYTES - at % _BLOCK_BYTES
        if left < _FRAGMENT.size:
            at += left
            continue
        if at + _FRAGMENT.size > len(content):
            return
        crc, length, kind = _FRAGMENT.unpack_from(content, at)
        start = at + _FRAGMENT.size
        is_first = kind in {_WHOLE, _FIRST}
        if (
            start + length > len(content)
            or _FRAGMENT.size + length > left
            or kind not in {_WHOLE, _FIRST, _MIDDLE, _LAST}
            or is_first == bool(begun)
        ):
            return  # cut off by a crash, room made ahead, or damage
        fragments.append((crc, content[at + _CHECKED_FROM : start + length]))
        at = start + length
        begun.append(content[start:at])
        if kind in {_WHOLE, _LAST}:
            yield _Record(b"".join(begun), at, tuple(fragments))
            begun, fragments = [], []


def _masked_crc(checked: bytes) -> int:
    """RocksDB's checksum: CRC-32C, rotated and moved, since it may cover other checksums.

    In Python, since a Spark task that opens a log has no library for it, and since only a log that
    is not as it should be needs it: a second for 15 MiB.
    """
    crc = _ALL_BITS
    for byte in checked:
        crc = _CRC_TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= _ALL_BITS
    rotated = crc >> _CRC_ROTATION | crc << 32 - _CRC_ROTATION
    return rotated + _CRC_ADDED & _ALL_BITS


def _crc_of_byte(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (_CRC_POLYNOMIAL if byte & 1 else 0)
    return byte


_CRC_TABLE: Final = tuple(_crc_of_byte(byte) for byte in range(256))


class _Fields:
    """Reads one record."""

    def __init__(self, record: bytes) -> None:
        self._record = record
        self._at = 0

    @property
    def left(self) -> bool:
        return self._at < len(self._record)

    def number(self) -> int:
        value = shift = 0
        while True:
            byte = self._record[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def text(self) -> bytes:
        length = self.number()
        self._at += length
        if self._at > len(self._record):
            raise Unreadable("a text beyond its record")
        return self._record[self._at - length : self._at]

    def table(self) -> Table:
        level, number, size = self.number(), self.number(), self.number()
        first, last = self.text()[:-_SEQUENCE_BYTES], self.text()[:-_SEQUENCE_BYTES]
        self.number()  # sequence numbers
        self.number()
        while self.number() != _END_OF_FILE_FIELDS:
            self.text()
        return Table(number, size, first, last, level)

    def pass_over(self, tag: int) -> None:
        if tag & _MAY_BE_PASSED_OVER:
            self.text()
        elif tag in _PASSED_OVER:
            for kind in _PASSED_OVER[tag]:
                self.number() if kind == "n" else self.text()
        else:
            raise Unreadable(f"a field with tag {tag}")
