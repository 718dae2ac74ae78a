"""Bytes of many rows, one behind the other, written by whole pieces.

Each row is cut into cells: some bytes, and then whatever the memory behind them held. Cells of all
rows are laid down in one go, in the order of their places, so that what a cell holds too much is
covered by the cells that come after it. Cells are as wide as several columns: a row of five
columns usually has three.

Of a long value, the first bytes go into a cell and the rest is copied afterwards, in blocks that
end where the value ends and so never hold too much.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from duolog.avro.encode.pieces import WORD_BYTES, Spans, Words

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from duolog.avro.encode.pieces import Piece, Sizes

MAX_BYTES = 2**31 - 1  # what an Arrow binary column holds

_CELL_BYTES = 32  # of words, or of a span; more gains nothing (measured)
_WIDEST_CELL_BYTES = 48
# In what sizes the rest of a long value is copied: the largest that the value is as long as.
_BLOCKS = (8192, 1024, 128, _CELL_BYTES)
_COPIED_BYTES = 1 << 19  # of blocks, at a time
_KEPT_BYTES = 1 << 23


class _Room(threading.local):
    """Memory for one step, kept for the next one: fresh memory costs as much as the work in it."""

    def __init__(self) -> None:
        self._kept: dict[str, npt.NDArray[np.uint8]] = {}

    def taken(self, name: str, size: int) -> npt.NDArray[np.uint8]:
        """So many bytes, until they are asked for by this name again."""
        kept = self._kept.get(name)
        if kept is None or len(kept) < size:
            kept = np.empty(size, np.uint8)
            if size <= _KEPT_BYTES:
                self._kept[name] = kept
        return kept[:size]


_ROOM = _Room()


class TooManyBytes(Exception):
    """The bodies of the rows do not fit into one column."""


class Bodies:
    """Bodies of so many rows: `content`, and where in it each begins and ends."""

    def __init__(self, rows: int) -> None:
        self.offsets: npt.NDArray[np.int64] = np.zeros(rows + 1, np.int64)
        self._rows = 0
        self._buffer: npt.NDArray[np.uint8] = np.empty(0, np.uint8)

    @property
    def content(self) -> npt.NDArray[np.uint8]:
        return self._buffer[: self.offsets[self._rows]]

    def append(self, pieces: Iterable[Piece], rows: int) -> None:
        """The next rows."""
        cells = _cells_of(pieces)
        offsets = self.offsets[self._rows : self._rows + rows + 1]
        begin = int(offsets[0])
        offsets[1:] = _added(cell.sizes for cell in cells)
        np.cumsum(offsets, out=offsets)
        width = max((cell.width for cell in cells), default=0)
        self._reserve(int(offsets[-1]), width, rows)
        self._rows += rows
        if offsets[-1] > begin:
            self._write(cells, offsets, width)

    def _write(self, cells: list[_Cell], offsets: npt.NDArray[np.int64], width: int) -> None:
        rows, row_bytes = len(offsets) - 1, len(cells) * width
        staged = _ROOM.taken("staged", rows * row_bytes)
        places = _ROOM.taken("places", rows * len(cells) * WORD_BYTES).view(np.int64)
        places = places.reshape(rows, len(cells))
        places[:, 0] = offsets[:-1]
        for index, cell in enumerate(cells):
            if index:
                np.add(places[:, index - 1], cells[index - 1].sizes, out=places[:, index])
            begin = index * width
            for place, words in cell.words:
                numbers = np.ndarray((rows,), "<u8", staged, begin + place, (row_bytes,))
                numbers[:] = words.values
            if cell.span is not None:
                kind, place = f"V{cell.span_held}", begin + cell.span_place
                _stage(cell.span, np.ndarray((rows,), kind, staged, place, (row_bytes,)))
        # numpy stores through a list of places in its order, so what comes later wins.
        _windows(self._buffer, width)[places.reshape(-1)] = staged.view(f"V{width}")
        for index, cell in enumerate(cells):
            if cell.span is not None and cell.span_held == _CELL_BYTES:
                _write_rest(cell.span, places[:, index] + cell.span_place, self._buffer)

    def _reserve(self, end: int, width: int, rows: int) -> None:
        if end > MAX_BYTES:
            raise TooManyBytes
        if end + width > len(self._buffer):
            expected = end * (len(self.offsets) - 1) // (self._rows + rows)
            grown = np.empty(max(end, min(expected + expected // 32, MAX_BYTES)) + width, np.uint8)
            grown[: len(self.content)] = self.content
            self._buffer = grown


@dataclass(slots=True)
class _Cell:
    """Words at fixed places, and behind them a span. All but the last have one size in all rows."""

    sizes: Sizes
    width: int
    words: list[tuple[int, Words]] = field(default_factory=list)
    span: Spans | None = None
    span_place: int = 0
    span_held: int = 0  # how many bytes of the span the cell holds

    def end(self) -> int | None:
        """Where more can be put; None where that varies."""
        if self.span is not None or not self.words:
            return None
        place, last = self.words[-1]
        return place + last.sizes if isinstance(last.sizes, int) else None


def _cells_of(pieces: Iterable[Piece]) -> list[_Cell]:
    cells: list[_Cell] = []
    for piece in pieces:
        last = cells[-1] if cells else _Cell(0, 0)
        if isinstance(piece, Words):
            if piece.largest and not _takes_words(last, piece):
                cells.append(_Cell(piece.sizes, WORD_BYTES, [(0, piece)]))
        elif piece.longest:
            held = min(_CELL_BYTES, _up(piece.longest))
            if not _takes_span(last, piece, held):
                cells.append(_Cell(piece.sizes, held, span=piece, span_held=held))
    return cells


def _up(size: int) -> int:
    """To whole words."""
    return -(-size // WORD_BYTES) * WORD_BYTES


def _takes_words(cell: _Cell, words: Words) -> bool:
    """Put the words behind what the cell has, if they have a place there."""
    if cell.span is not None or not cell.words:
        return False
    place, last = cell.words[-1]
    end = cell.end()
    if last.largest + words.largest <= WORD_BYTES:
        cell.words[-1] = place, _joined(last, words)
    elif end is not None and end + words.largest <= _CELL_BYTES:
        cell.words.append((end, words))
        cell.width = _up(end + WORD_BYTES)
    else:
        return False
    cell.sizes = cell.sizes + words.sizes
    return True


def _takes_span(cell: _Cell, span: Spans, held: int) -> bool:
    """Put the span behind what the cell has, if it has a place there."""
    end = cell.end()
    if end is None or end + held > _WIDEST_CELL_BYTES:
        return False
    cell.span, cell.span_place, cell.span_held = span, end, held
    cell.width = max(cell.width, _up(end + held))
    cell.sizes = cell.sizes + span.sizes
    return True


def _joined(one: Words, other: Words) -> Words:
    sizes, largest = one.sizes + other.sizes, one.largest + other.largest
    if isinstance(one.sizes, int) and isinstance(one.values, int) and isinstance(other.values, int):
        return Words(one.values | other.values << 8 * one.sizes, sizes, largest)
    behind = _unsigned(one.sizes) << np.uint64(3)
    return Words(_unsigned(one.values) | _unsigned(other.values) << behind, sizes, largest)


def _unsigned(values: npt.NDArray[Any] | int) -> Any:
    return np.uint64(values) if isinstance(values, int) else values.view(np.uint64)


def _added(sizes: Iterable[Sizes]) -> Sizes:
    total: Sizes = 0
    for size in sizes:
        total = total + size
    return total


def _windows(content: npt.NDArray[np.uint8], width: int) -> npt.NDArray[np.void]:
    """At each place, the bytes from there on."""
    return np.ndarray((len(content) - width + 1,), f"V{width}", content, 0, (1,))


def _stage(span: Spans, column: npt.NDArray[np.void]) -> None:
    """The first bytes of each span, and what is behind it."""
    content, starts, width = span.content, span.starts, column.itemsize
    last = len(content) - width
    if last >= 0 and starts.max() <= last:
        column[:] = _windows(content, width)[starts]
        return
    # Near the end there is nothing to hold too much of: those come from a copy with a margin.
    begin = max(0, last)
    end = np.zeros(len(content) - begin + width, np.uint8)
    end[: len(content) - begin] = content[begin:]
    if last >= 0:
        column[:] = _windows(content, width)[np.minimum(starts, last)]
    near = np.flatnonzero(starts >= begin)
    column[near] = _windows(end, width)[starts[near] - begin]


def _write_rest(
    span: Spans,
    places: npt.NDArray[np.int64],
    buffer: npt.NDArray[np.uint8],
) -> None:
    """What the cells do not hold of the spans that are longer."""
    sizes = np.broadcast_to(np.asarray(span.sizes, np.int64), places.shape)
    rows = np.flatnonzero(sizes > _CELL_BYTES)
    for block in _BLOCKS:
        fits = sizes[rows] >= block
        chosen, rows = rows[fits], rows[~fits]
        if len(chosen):
            length = sizes[chosen]
            counts = (length - (_CELL_BYTES + 1)) // block + 1
            ends = np.cumsum(counts)
            number = np.arange(ends[-1]) - np.repeat(ends - counts, counts)
            skipped = np.minimum(_CELL_BYTES + number * block, np.repeat(length - block, counts))
            source = np.repeat(span.starts[chosen], counts) + skipped
            target = np.repeat(places[chosen], counts) + skipped
            blocks, written = _windows(span.content, block), _windows(buffer, block)
            step = max(1, _COPIED_BYTES // block)
            for begin in range(0, len(source), step):
                some = slice(begin, begin + step)
                written[target[some]] = blocks[source[some]]
