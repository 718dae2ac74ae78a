"""Which tables does RocksDB's MANIFEST name? Read only to put back a file that has lost its name.

The file is a log like the write-ahead log: blocks of 32 KiB, fragments of crc u32, length u16, type
u8 (1 whole, 2 first, 3 middle, 4 last), content. A record is fields, each a tag and what it says.
Checksums are RocksDB's own matter: it has read the file before anybody looks here, and reads it
again afterwards. What is not known here ends the reading, and nothing is put back.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_BLOCK_BYTES: Final = 32 << 10
_FRAGMENT: Final = struct.Struct("<4xHB")
_WHOLE, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_SEQUENCE_BYTES: Final = 8  # behind a key, with its kind

_DELETED_FILE, _NEW_FILE, _FAMILY, _FAMILY_ADDED = 6, 103, 200, 201
_PASSED_OVER: Final[dict[int, str]] = {  # n: a number, t: a text
    1: "t",  # comparator
    2: "n",  # log
    3: "n",  # next file
    4: "n",  # last sequence
    5: "nt",  # compaction cursor
    9: "n",  # previous log
    10: "n",  # oldest log that is kept
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


def tables_of(database: Path, family: str) -> tuple[Table, ...]:
    """The tables of a family, as the MANIFEST leaves them."""
    try:
        manifest = database / (database / "CURRENT").read_text().strip()
        return _tables(manifest.read_bytes(), family)
    except (OSError, UnicodeDecodeError, struct.error, IndexError) as error:
        raise Unreadable(str(error)) from error


def _tables(content: bytes, family: str) -> tuple[Table, ...]:
    names: dict[int, str] = {0: "default"}
    found: dict[tuple[int, int], Table] = {}
    for record in _records(content):
        fields = _Fields(record)
        family_id, new_name = 0, None  # they come behind the files
        added, gone = [], []
        while fields.left:
            tag = fields.number()
            if tag == _FAMILY:
                family_id = fields.number()
            elif tag == _FAMILY_ADDED:
                new_name = fields.text().decode()
            elif tag == _DELETED_FILE:
                fields.number()
                gone.append(fields.number())
            elif tag == _NEW_FILE:
                added.append(fields.table())
            else:
                fields.pass_over(tag)
        if new_name is not None:
            names[family_id] = new_name
        for number in gone:
            found.pop((family_id, number), None)
        found.update({(family_id, table.number): table for table in added})
    return tuple(table for (of, _), table in found.items() if names.get(of) == family)


def _records(content: bytes) -> Iterator[bytes]:
    begun = b""
    at = 0
    while at < len(content):
        left = _BLOCK_BYTES - at % _BLOCK_BYTES
        if left < _FRAGMENT.size:
            at += left
            continue
        if at + _FRAGMENT.size > len(content):
            return
        length, kind = _FRAGMENT.unpack_from(content, at)
        start = at + _FRAGMENT.size
        if start + length > len(content) or (not length and not kind):
            return  # cut off by a crash, or room made ahead
        at = start + length
        piece = content[start:at]
        if kind == _WHOLE:
            yield piece
        elif kind == _FIRST:
            begun = piece
        elif kind == _MIDDLE:
            begun += piece
        elif kind == _LAST:
            yield begun + piece
        else:
            raise Unreadable(f"a fragment of kind {kind}")


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
        self.number()  # level
        number, size = self.number(), self.number()
        first, last = self.text()[:-_SEQUENCE_BYTES], self.text()[:-_SEQUENCE_BYTES]
        self.number()  # sequence numbers
        self.number()
        while self.number() != _END_OF_FILE_FIELDS:
            self.text()
        return Table(number, size, first, last)

    def pass_over(self, tag: int) -> None:
        if tag & _MAY_BE_PASSED_OVER:
            self.text()
        elif tag in _PASSED_OVER:
            for kind in _PASSED_OVER[tag]:
                self.number() if kind == "n" else self.text()
        else:
            raise Unreadable(f"a field with tag {tag}")
