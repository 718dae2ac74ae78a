"""Readers of arrays and maps.

Where the items of all rows begin is found first; then they are read like rows, in their order.
Of items that have one length, or are varints, the beginnings are computed. The others are found
by passing over the first item of all rows, then the second, and so on. Once only few rows have
items left, a numpy call for each item costs more than going through them byte by byte.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from duolog.avro.decode.leaves import TextReader
from duolog.avro.decode.page import Cursor, Suspect
from duolog.avro.decode.reader import SOME_BYTES, Extent, Reader, read_at
from duolog.avro.decode.scan import MAX_EMPTY_ITEMS, Fault, Scan

if TYPE_CHECKING:
    import numpy.typing as npt

    Positions = npt.NDArray[np.int64]

# Passing over one item of all rows takes 15 to 60 us, of one row byte by byte 0.2 us (text) to 2 us
# (a record of three fields): even at about so many rows. Where one row has nearly all items, that
# is as fast as fastavro and making columns of its dictionaries (0.3 to 2 us), so there is no such
# way around here.
FEW_ROWS: Final = 24
_LONGEST_VARINT: Final = 10
_MANY_VARINTS: Final = 32  # from here on, looking for their ends with numpy is faster
_WORTH_A_LOOK: Final = 8  # bytes of a page for each varint in it


@dataclass(frozen=True, slots=True)
class BlocksReader:
    """Blocks of items, each with their number; 0 is the end. The type is a list or a map."""

    type: pa.DataType
    item: Reader
    extent: Extent = SOME_BYTES

    def read(self, cursor: Cursor) -> pa.Array:
        counts, starts = self._find(cursor)
        if not self.item.extent.least:
            total = int(counts.sum())
            cursor.page.empty_items += total
            if cursor.page.empty_items > MAX_EMPTY_ITEMS:
                raise Suspect
            starts = np.full(total, cursor.page.end)
        offsets = np.zeros(len(counts) + 1, np.int64)
        np.cumsum(counts, out=offsets[1:])
        items = read_at(self.item, cursor.page, starts)
        bounds = pa.py_buffer(offsets.astype(np.int32))
        return pa.Array.from_buffers(self.type, len(counts), [None, bounds], 0, children=[items])

    def skip(self, cursor: Cursor) -> None:
        self._find(cursor)

    def scan(self, scan: Scan) -> None:
        self._scan(scan, [])

    def _find(self, cursor: Cursor) -> tuple[Positions, Positions]:
        """How many items each row has, and where all of them begin. The cursor is behind them.

        Items without bytes are only counted.
        """
        page = cursor.page
        counts = np.zeros(len(cursor), np.int64)
        moved = cursor.at.copy()
        found: list[Positions] = []
        rows, part = np.arange(len(cursor)), Cursor(page, cursor.at)
        while len(rows) > FEW_ROWS:
            number = part.longs()
            moved[rows] = part.at
            going_on = np.flatnonzero(number)
            rows, number = rows[going_on], number[going_on]
            part = Cursor(page, part.at[going_on])
            if len(rows):
                found.append(self._block(part, number))
                counts[rows] += number
        for index, row in enumerate(rows.tolist()):
            scan = Scan(page.content, int(part.at[index]), page.end)
            counts[row] += self._scan(scan, found)
            moved[row] = scan.at
        cursor.move(moved)
        if len(found) == 1:
            return counts, found[0]
        starts = np.concatenate([np.empty(0, np.int64), *found])
        starts.sort()
        return counts, starts

    def _block(self, part: Cursor, number: Positions) -> Positions:
        """Where the items of one block in each row begin. The number is made positive."""
        negative = np.flatnonzero(number < 0)
        if not len(negative):
            return self._items(part, number)
        sized = Cursor(part.page, part.at[negative])
        sizes = sized.longs()
        moved = part.at.copy()
        moved[negative] = sized.at
        part.move(moved)
        np.abs(number, out=number)
        starts = self._items(part, number)
        if (part.at[negative] - sized.at != sizes).any():
            raise Suspect
        return starts

    def _items(self, part: Cursor, number: Positions) -> Positions:
        page, extent = part.page, self.item.extent
        if not extent.least:
            if number.min() < 0 or number.max() > MAX_EMPTY_ITEMS:
                raise Suspect
            return np.empty(0, np.int64)
        if number.min() < 0 or number.max() > page.end:
            raise Suspect
        part.check(part.at + number * extent.least)
        if extent.exactly is not None:
            starts = _evenly(part.at, number, extent.exactly)
            part.skip(number * extent.exactly)
            return starts
        if extent.is_varint and int(number.sum()) * _WORTH_A_LOOK >= page.end:
            starts, moved = _varints(page.bytes, part.at, number, page.end)
            part.move(moved)
            return starts
        return self._one_after_the_other(part, number)

    def _one_after_the_other(self, part: Cursor, number: Positions) -> Positions:
        page, item = part.page, self.item
        ends = np.cumsum(number)
        starts = np.empty(int(ends[-1]), np.int64)
        moved = np.empty_like(part.at)
        rows, left = np.arange(len(part)), number
        live, place = Cursor(page, part.at), ends - number
        while len(rows) > FEW_ROWS:
            starts[place] = live.at
            item.skip(live)
            place, left = place + 1, left - 1
            if not left.all():
                moved[rows] = live.at
                going_on = np.flatnonzero(left)
                rows, left, place = rows[going_on], left[going_on], place[going_on]
                live = Cursor(page, live.at[going_on])
        for index, row in enumerate(rows.tolist()):
            scan = Scan(page.content, int(live.at[index]), page.end)
            begin = int(place[index])
            starts[begin : ends[row]] = self._scan_items(scan, int(left[index]), 0)
            moved[row] = scan.at
        part.move(moved)
        return starts

    def _scan(self, scan: Scan, found: list[Positions]) -> int:
        """How many items there are; where they begin is added to `found`."""
        total = 0
        while count := scan.long():
            size = None
            if count < 0:
                count, size = -count, scan.long()
            begin = scan.at
            extent = self.item.extent
            if not extent.least:
                scan.empty_items += count
                if scan.empty_items > MAX_EMPTY_ITEMS:
                    raise Fault(
                        f"it has {count} items without bytes; a batch may have {MAX_EMPTY_ITEMS}"
                    )
            elif count > (scan.end - begin) // extent.least:
                raise Fault(
                    f"it has {count} items of at least {extent.least} bytes, but only "
                    f"{scan.end - begin} bytes are left"
                )
            found.append(self._scan_items(scan, count, total))
            total += count
            if size is not None and scan.at - begin != size:
                raise Fault(f"a block of {scan.at - begin} bytes is said to have {size}")
        return total

    def _scan_items(self, scan: Scan, count: int, total: int) -> Positions:
        """Where so many items begin; `total` is how many there were before them."""
        item, extent = self.item, self.item.extent
        if not extent.least:
            return np.empty(0, np.int64)
        if not scan.is_strict:
            if extent.exactly is not None:
                begin = scan.skip(count * extent.exactly)
                return begin + np.arange(count) * extent.exactly
            if extent.is_varint and count >= _MANY_VARINTS:
                return _scanned_varints(scan, count)
            if isinstance(item, TextReader):
                return _scanned_texts(scan, count)
        starts = []
        for index in range(count):
            starts.append(scan.at)
            try:
                item.scan(scan)
            except Fault as fault:
                raise fault.inside(f"[{total + index}]") from None
        return np.array(starts, np.int64)


def _evenly(at: Positions, number: Positions, size: int) -> Positions:
    """Where items of one size begin."""
    ends = np.cumsum(number)
    starts: Positions = np.repeat(at - (ends - number) * size, number)
    starts += np.arange(int(ends[-1])) * size
    return starts


def _varints(
    content: npt.NDArray[np.uint8], at: Positions, number: Positions, end: int
) -> tuple[Positions, Positions]:
    """Where so many varints begin from each position on, and where they all end.

    One begins behind each byte without a top bit.
    """
    last_bytes = np.flatnonzero(content[at[0] : end] < 0x80) + at[0]
    before = np.cumsum(number) - number
    first = np.searchsorted(last_bytes, at)
    last = first + number - 1
    if last.max() >= len(last_bytes):
        raise Suspect
    stop = last_bytes[np.repeat(first - before, number) + np.arange(int(number.sum()))]
    starts = np.empty_like(stop)
    starts[1:] = stop[:-1] + 1
    starts[before] = at
    longest = np.flatnonzero(stop - starts >= _LONGEST_VARINT - 1)
    if len(longest) and (
        (stop - starts).max() >= _LONGEST_VARINT or content[stop[longest]].max() > 1
    ):
        raise Suspect
    return starts, last_bytes[last] + 1


def _scanned_varints(scan: Scan, count: int) -> Positions:
    content = np.frombuffer(scan.content, np.uint8)
    at, number = np.array([scan.at]), np.array([count])
    starts, moved = _varints(content, at, number, min(scan.end, scan.at + count * _LONGEST_VARINT))
    scan.at = int(moved[0])
    return starts


def _scanned_texts(scan: Scan, count: int) -> Positions:
    """Where texts begin, most of which are short."""
    content, at = scan.content, scan.at
    starts = []
    for _ in range(count):
        starts.append(at)
        length = content[at]
        if length < 0x80 and not length & 1:
            at += 1 + (length >> 1)
            if at > scan.end:
                raise Suspect
        else:
            scan.at = at
            scan.skip(scan.length())
            at = scan.at
    scan.at = at
    return np.array(starts, np.int64)
