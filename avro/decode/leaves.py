"""Readers of values without parts: numbers, words, text, bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from duolog.avro.decode.columns import bitmap, of_numbers
from duolog.avro.decode.page import BEFORE, Cursor, Suspect
from duolog.avro.decode.reader import NO_BYTES, ONE_BYTE, ROWS_AT_ONCE, SOME_BYTES, VARINT, Extent
from duolog.avro.decode.scan import WRONG_READER, Fault, Scan

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class NullReader:
    """No bytes at all."""

    type: pa.DataType
    extent: Extent = NO_BYTES

    def read(self, cursor: Cursor) -> pa.Array:
        return pa.nulls(len(cursor), self.type)

    def skip(self, cursor: Cursor) -> None:
        pass

    def scan(self, scan: Scan) -> None:
        pass


@dataclass(frozen=True, slots=True)
class BooleanReader:
    """One byte, 0 or 1."""

    type: pa.DataType
    extent: Extent = ONE_BYTE

    def read(self, cursor: Cursor) -> pa.Array:
        flags = cursor.bytes()
        if flags.max() > 1:
            raise Suspect
        cursor.skip(1)
        return pa.Array.from_buffers(self.type, len(flags), [None, bitmap(flags.view(np.bool_))], 0)

    def skip(self, cursor: Cursor) -> None:
        cursor.skip(1)

    def scan(self, scan: Scan) -> None:
        flag = scan.raw(1)[0]
        if flag > 1:
            raise Fault(f"a boolean is the byte {flag}, neither 0 nor 1")


@dataclass(frozen=True, slots=True)
class IntegerReader:
    """A varint, which may become another number."""

    type: pa.DataType
    stored: str  # numpy's name of what the type lies in memory as
    least: int  # of what is written
    most: int
    meaning: str
    extent: Extent = VARINT

    def read(self, cursor: Cursor) -> pa.Array:
        values = cursor.longs()
        if values.min() < self.least or values.max() > self.most:
            raise Suspect
        return of_numbers(self.type, values.astype(self.stored, copy=False))

    def skip(self, cursor: Cursor) -> None:
        cursor.skip_longs()

    def scan(self, scan: Scan) -> None:
        value = scan.long()
        if not self.least <= value <= self.most:
            raise Fault(f"{value} is no {self.meaning}: these go from {self.least} to {self.most}")


@dataclass(frozen=True, slots=True)
class FloatReader:
    """Four or eight bytes, little endian."""

    type: pa.DataType
    width: int
    stored: str

    @property
    def extent(self) -> Extent:
        return Extent(self.width, self.width)

    def read(self, cursor: Cursor) -> pa.Array:
        words = cursor.page.words[cursor.at]
        cursor.skip(self.width)
        if self.width == 8:
            return of_numbers(self.type, words)
        values = words.astype(np.uint32).view(np.float32)
        with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
            return of_numbers(self.type, values.astype(self.stored, copy=False))

    def skip(self, cursor: Cursor) -> None:
        cursor.skip(self.width)

    def scan(self, scan: Scan) -> None:
        scan.skip(self.width)


@dataclass(frozen=True, slots=True)
class EnumReader:
    """A varint that says which word. `places` gives the reader's place, -1 for a word it lacks."""

    type: pa.DataType
    symbols: tuple[str, ...]  # the writer's
    places: npt.NDArray[np.int32]
    dictionary: pa.Array
    extent: Extent = VARINT

    def read(self, cursor: Cursor) -> pa.Array:
        written = cursor.longs()
        if written.min() < 0 or written.max() >= len(self.places):
            raise Suspect
        places = self.places[written]
        if places.min() < 0:
            raise Suspect
        return pa.DictionaryArray.from_arrays(of_numbers(pa.int32(), places), self.dictionary)

    def skip(self, cursor: Cursor) -> None:
        cursor.skip_longs()

    def scan(self, scan: Scan) -> None:
        written = scan.long()
        if not 0 <= written < len(self.places):
            raise Fault(f"it is symbol {written} of an enum that has {len(self.places)}")
        if self.places[written] < 0:
            raise Fault(f"it is the symbol '{self.symbols[written]}'", WRONG_READER)


@dataclass(frozen=True, slots=True)
class TextReader:
    """A length and so many bytes."""

    type: pa.DataType
    is_text: bool  # for the writer or for the reader: the bytes have to be UTF-8
    extent: Extent = SOME_BYTES

    def read(self, cursor: Cursor) -> pa.Array:
        begin, end = cursor.spans()
        rows = len(begin)
        # Rows follow one another in memory, so their starts and ends together bound 2n - 1 values
        # without a copy, and every second one is what was asked for.
        bounds = np.empty(2 * rows, np.int32)
        np.subtract(begin, BEFORE, out=bounds[::2], casting="unsafe")
        np.subtract(end, BEFORE, out=bounds[1::2], casting="unsafe")
        between = pa.Array.from_buffers(
            pa.binary(), 2 * rows - 1, [None, pa.py_buffer(bounds), cursor.page.text], 0
        )
        values = between.take(_every_second(rows))
        if self.is_text:
            _check_utf8(values)
        return pa.Array.from_buffers(self.type, rows, [None, *values.buffers()[1:]], 0)

    def skip(self, cursor: Cursor) -> None:
        cursor.spans()

    def scan(self, scan: Scan) -> None:
        content = scan.raw(scan.length())
        if self.is_text:
            try:
                content.decode()
            except UnicodeDecodeError as error:
                raise Fault(
                    f"its text is not UTF-8: {error.reason} at byte {error.start}"
                ) from None


_SECONDS: Final = pa.array(np.arange(0, 4 * ROWS_AT_ONCE, 2, dtype=np.int32))


def _every_second(rows: int) -> pa.Array:
    if rows <= len(_SECONDS):
        return _SECONDS.slice(0, rows)
    return pa.array(np.arange(0, 2 * rows, 2, dtype=np.int64))


def _check_utf8(values: pa.Array) -> None:
    _, _, content = values.buffers()
    if content is None or not content.size:
        return
    if np.frombuffer(content, np.uint8).max() < 0x80:
        return
    try:
        values.cast(pa.string())
    except pa.ArrowInvalid:
        raise Suspect from None


@dataclass(frozen=True, slots=True)
class FixedReader:
    """So many bytes."""

    type: pa.DataType
    size: int

    @property
    def extent(self) -> Extent:
        return Extent(self.size, self.size)

    def read(self, cursor: Cursor) -> pa.Array:
        at = cursor.at
        cursor.skip(self.size)
        if not self.size:
            return pa.Array.from_buffers(self.type, len(at), [None, pa.py_buffer(b"")], 0)
        values: npt.NDArray[Any] = cursor.page.wide(f"V{self.size}")[at]
        return of_numbers(self.type, values.view(np.uint8), len(at))

    def skip(self, cursor: Cursor) -> None:
        cursor.skip(self.size)

    def scan(self, scan: Scan) -> None:
        scan.skip(self.size)
