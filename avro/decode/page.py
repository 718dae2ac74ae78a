"""Bodies side by side, and one position in each of them that moves on as its row is read.

The order of the positions is the order of the rows in memory, whatever subset of rows is being
read, and they never pass one another: `moved` sees to it. So what was claimed by all rows together
never exceeds the page, however large the numbers are that the bytes announce, and nothing beyond
the page is touched. Whether each row ended where its body ends is asked when all fields are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    import numpy.typing as npt

    Positions = npt.NDArray[np.int64]
    Words = npt.NDArray[np.uint64]

BEFORE: Final = 64  # bytes of slack, so that a number may be loaded with what stands around it
BEHIND: Final = 64

_ZIGZAG: Final = np.array([(n >> 1) ^ -(n & 1) for n in range(256)], np.int64)


class Suspect(Exception):
    """Some row is not what the schema says. Which, and why, is found out by `scan.py`."""


class Page:
    """The bodies of some rows. Positions count from the start of the slack before them.

    `empty_items` is how many items without bytes the batch's arrays have had so far.
    """

    __slots__ = ("_content", "_text", "bytes", "empty_items", "end", "words")

    def __init__(self, bodies: npt.NDArray[np.uint8], empty_items: int = 0) -> None:
        self.empty_items = empty_items
        self.end = BEFORE + len(bodies)
        self.bytes = np.empty(self.end + BEHIND, np.uint8)
        self.bytes[:BEFORE] = 0
        self.bytes[BEFORE : self.end] = bodies
        self.bytes[self.end :] = 0
        self.words = self.wide("<u8")
        self._content: bytes | None = None
        self._text: Any = None

    def wide(self, kind: str) -> npt.NDArray[Any]:
        """A view of the values of this type that begin at each byte."""
        size = np.dtype(kind).itemsize
        return np.ndarray(len(self.bytes) - size + 1, kind, self.bytes, strides=(1,))

    @property
    def content(self) -> bytes:
        """The same bytes, which Python reads one by one faster than those of an array."""
        if self._content is None:
            self._content = self.bytes.tobytes()
        return self._content

    @property
    def text(self) -> Any:
        """The bodies as Arrow's, without the slack before them."""
        if self._text is None:
            self._text = pa.py_buffer(self.bytes).slice(BEFORE)
        return self._text


class Cursor:
    """A position in each of some rows, in the order of the page."""

    __slots__ = ("at", "page")

    def __init__(self, page: Page, at: Positions) -> None:
        self.page = page
        self.at = at

    def __len__(self) -> int:
        return len(self.at)

    def check(self, moved: Positions) -> None:
        """Refuse positions that pass the next row's or the end of the page."""
        if (moved[:-1] > self.at[1:]).any() or (len(moved) and moved[-1] > self.page.end):
            raise Suspect

    def move(self, moved: Positions) -> None:
        """Go on to these positions, none of them before the present one."""
        self.check(moved)
        self.at = moved

    def skip(self, lengths: Positions | int) -> None:
        """Go on by so many bytes, none of them negative and each at most 2**62."""
        self.move(self.at + lengths)

    def bytes(self) -> npt.NDArray[np.uint8]:
        """The byte at each position; the position stays."""
        return self.page.bytes[self.at]

    def longs(self) -> npt.NDArray[np.int64]:
        """A zigzag varint of at most 64 bits from each row."""
        first = self.bytes()
        if not len(first) or first.max() < 0x80:
            self.skip(1)
            return _ZIGZAG.take(first)
        longer = np.flatnonzero(first > 0x7F)
        if len(longer) * 4 > len(first):
            values, lengths = _wide_longs(self.page, self.at)
        else:
            values, lengths = _ZIGZAG.take(first), np.ones(len(first), np.int64)
            values[longer], lengths[longer] = _wide_longs(self.page, self.at[longer])
        self.skip(lengths)
        return values

    def skip_longs(self) -> None:
        """Pass over a varint in each row."""
        first = self.bytes()
        if not len(first) or first.max() < 0x80:
            self.skip(1)
            return
        stop = _lowest_stop(self.page.words[self.at])
        lengths = _length(stop)
        if not stop.all():
            lengths[stop == 0] = _wide_longs(self.page, self.at[stop == 0])[1]
        self.skip(lengths)

    def spans(self) -> tuple[Positions, Positions]:
        """A length from each row, and where that many bytes begin and end."""
        lengths = self.longs()
        begin = self.at
        if len(lengths) and (lengths.min() < 0 or lengths.max() > self.page.end):
            raise Suspect
        self.skip(lengths)
        return begin, self.at


# Eight bytes are loaded at once; the lowest clear top bit says where the varint ends, and the
# groups of seven bits below it are pushed together in three steps.

_TOP_BITS: Final = np.uint64(0x8080808080808080)
_LENGTHS: Final = np.uint64(0x0001020304050607)
_ONE: Final = np.uint64(1)
_SEVENS: Final = np.uint64(0x7F7F7F7F7F7F7F7F)
_FOLDS: Final = tuple(
    (np.uint64(low), np.uint64(shift), np.uint64(high))
    for low, shift, high in (
        (0x007F007F007F007F, 1, 0x3F803F803F803F80),
        (0x00003FFF00003FFF, 2, 0x0FFFC0000FFFC000),
        (0x000000000FFFFFFF, 4, 0x00FFFFFFF0000000),
    )
)


def _lowest_stop(words: Words) -> Words:
    """The top bit of the varint's last byte; 0 when it goes on behind these eight."""
    stops = ~words
    stops &= _TOP_BITS
    return stops & -stops


def _length(stop: Words) -> Positions:
    """How many bytes reach up to this bit: it picks the byte of a constant that says so."""
    lengths = stop >> np.uint64(7)
    lengths *= _LENGTHS
    lengths >>= np.uint64(56)
    lengths += _ONE
    return lengths.view(np.int64)


def _wide_longs(page: Page, at: Positions) -> tuple[Positions, Positions]:
    """The varints at these positions, and their lengths."""
    bits = page.words[at]
    stop = _lowest_stop(bits)
    bits &= stop - _ONE
    bits &= _SEVENS
    for low, shift, high in _FOLDS:
        upper = bits >> shift
        upper &= high
        bits &= low
        bits |= upper
    lengths = _length(stop)
    if not stop.all():
        ninth_on = np.flatnonzero(stop == 0)
        bits[ninth_on], lengths[ninth_on] = _over_eight(page, at[ninth_on], bits[ninth_on])
    sign = (bits & _ONE).view(np.int64)
    bits >>= _ONE
    return bits.view(np.int64) ^ -sign, lengths


def _over_eight(page: Page, at: Positions, bits: Words) -> tuple[Words, Positions]:
    """The same with the ninth and tenth byte."""
    ninth = page.bytes[at + 8].astype(np.uint64)
    tenth = page.bytes[at + 9].astype(np.uint64)
    has_tenth = ninth > 0x7F
    if (tenth[has_tenth] > 1).any():
        raise Suspect
    bits = bits | ((ninth & np.uint64(0x7F)) << np.uint64(56))
    bits |= np.where(has_tenth, tenth << np.uint64(63), np.uint64(0))
    return bits, 9 + has_tenth.astype(np.int64)
