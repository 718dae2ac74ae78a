"""Avro bodies of one schema as Arrow columns, the whole batch at once.

Every type is read by columns, so there is no slower way to fall back to. What comes out has the
types of `to_arrow.py`; bytes that are not what the schema says are refused, never guessed at.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from duolog.avro.decode.build import reader_of
from duolog.avro.decode.columns import of_children, spread
from duolog.avro.decode.page import BEFORE, Cursor, Page, Suspect
from duolog.avro.decode.reader import ROWS_AT_ONCE
from duolog.avro.decode.scan import Fault, Scan
from duolog.avro.resolve import resolve
from duolog.avro.schema import Schema, expanded
from duolog.avro.to_arrow import arrow_field
from duolog.errors import Undecodable

if TYPE_CHECKING:
    import numpy.typing as npt

    Offsets = npt.NDArray[np.int32]
    Positions = npt.NDArray[np.int64]

_BYTES_AT_ONCE: Final = 1 << 20
_MOST_OFFSET: Final = 2**31 - 1


def decoder_of(writer: Schema, reader: Schema | None = None) -> BodyDecoder:
    """What reads bodies written with one schema as values of the other, or of the same.

    Raises InvalidSchema and IncompatibleSchema, which name the field.
    """
    return BodyDecoder(writer, reader)


class BodyDecoder:
    """Reads bodies of one schema. Picklable, and safe to use from many threads."""

    def __init__(self, writer: Schema, reader: Schema | None) -> None:
        self._schemas = (writer, reader)
        self.type: pa.DataType = arrow_field(expanded(reader or writer), "").type
        self._reader = reader_of(resolve(writer, reader), self.type)

    def __reduce__(self) -> tuple[object, ...]:
        return decoder_of, self._schemas

    def decode(self, bodies: pa.BinaryArray) -> pa.Array:
        """A value for each body, null where the body is null.

        Raises Undecodable, which names the first bad row and the field.
        """
        try:
            return self._decode(bodies)
        except (pa.ArrowInvalid, pa.ArrowCapacityError) as error:
            raise Undecodable(
                f"{len(bodies)} bodies give a column too large for Arrow ({error}). Decode fewer "
                "rows at a time."
            ) from error

    def _decode(self, bodies: pa.BinaryArray) -> pa.Array:
        bounds, content = _memory(bodies)
        begin, end = bounds[:-1], bounds[1:]
        rows = np.flatnonzero(bodies.is_valid()) if bodies.null_count else None
        if rows is not None:
            begin, end = begin[rows], end[rows]
        parts: list[pa.Array] = []
        empty_items = 0
        for part in _parts(begin, end):
            first, last = int(begin[part.start]), int(end[part.stop - 1])
            page = Page(content[first:last], empty_items)
            # Positions are kept for a part at a time: as long as the batch, they would be larger.
            at, stop = _positions(begin[part], first), _positions(end[part], first)
            try:
                parts.append(self._read(page, at, stop))
            except Suspect:
                numbers = np.arange(part.start, part.stop) if rows is None else rows[part]
                raise self._refusal(page, at, stop, numbers, empty_items) from None
            empty_items = page.empty_items
        values = _joined(parts, self.type)
        return values if rows is None else spread(values, rows, len(bodies))

    def _read(self, page: Page, begin: Positions, end: Positions) -> pa.Array:
        cursor = Cursor(page, begin)
        values = self._reader.read(cursor)
        if (cursor.at != end).any():
            raise Suspect
        return values

    def _refusal(
        self, page: Page, begin: Positions, end: Positions, rows: Positions, empty_items: int
    ) -> Undecodable:
        """The first bad row, and what is wrong with it."""
        for at, stop, row in zip(begin.tolist(), end.tolist(), rows.tolist(), strict=True):
            scan = Scan(page.content, at, stop, is_strict=True, empty_items=empty_items)
            fault = self._fault(scan)
            if fault is not None:
                field = f", field '{fault.place}'" if fault.path else ""
                return Undecodable(f"Row {row}{field}: {fault.reason}. {fault.way_out}")
            empty_items = scan.empty_items
        return Undecodable(f"One of the rows {rows[0]} to {rows[-1]} is not what its schema says.")

    def _fault(self, scan: Scan) -> Fault | None:
        try:
            self._reader.scan(scan)
        except Fault as fault:
            return fault
        left = scan.end - scan.at
        return Fault(f"{left} bytes are left over") if left else None


def _memory(bodies: pa.BinaryArray) -> tuple[Offsets, npt.NDArray[np.uint8]]:
    """Where each body begins and ends, and the bytes of all."""
    if not len(bodies):
        return np.zeros(1, np.int32), np.empty(0, np.uint8)
    _, offsets, content = bodies.buffers()
    bounds = np.frombuffer(offsets, np.int32, len(bodies) + 1, bodies.offset * 4)
    if content is None or not content.size:
        return bounds, np.empty(0, np.uint8)
    return bounds, np.frombuffer(content, np.uint8)


def _positions(offsets: Offsets, first: int) -> Positions:
    """Places in the page of the body that begins at `first`."""
    return offsets.astype(np.int64) + (BEFORE - first)


def _parts(begin: Offsets, end: Offsets) -> Iterator[slice]:
    """Stretches of rows that are read together."""
    first = 0
    while first < len(begin):
        most = np.int32(min(int(begin[first]) + _BYTES_AT_ONCE, _MOST_OFFSET))
        fitting = int(np.searchsorted(end, most, "right"))
        stop = max(first + 1, min(fitting, first + ROWS_AT_ONCE))
        yield slice(first, stop)
        first = stop


def _joined(parts: list[pa.Array], kind: pa.DataType) -> pa.Array:
    """The parts one behind the other. The list is emptied."""
    if len(parts) < 2:
        return parts.pop() if parts else pa.nulls(0, kind)
    if not pa.types.is_struct(kind) or any(part.null_count for part in parts):
        return pa.concat_arrays(parts)
    # Column by column, so that not all of them are there twice at once.
    rows = sum(map(len, parts))
    columns = [part.flatten() for part in parts]
    parts.clear()
    joined = []
    for index in range(kind.num_fields):
        joined.append(pa.concat_arrays([column[index] for column in columns]))
        for column in columns:
            column[index] = None
    return of_children(kind, rows, joined)
