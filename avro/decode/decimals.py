"""Decimals: the unscaled number in two's complement, big endian, in as many bytes as it takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from duolog.avro.decode.columns import of_numbers
from duolog.avro.decode.page import Cursor, Page, Suspect
from duolog.avro.decode.reader import SOME_BYTES, Extent
from duolog.avro.decode.scan import Fault, Scan

if TYPE_CHECKING:
    import numpy.typing as npt

_WORD: Final = 8


@dataclass(frozen=True, slots=True)
class DecimalReader:
    """A decimal of 128 or 256 bits; `size` is the number of bytes where it is fixed."""

    type: pa.DataType
    size: int | None

    @property
    def extent(self) -> Extent:
        return SOME_BYTES if self.size is None else Extent(self.size, self.size)

    def read(self, cursor: Cursor) -> pa.Array:
        if self.size is None:
            begin, end = cursor.spans()
        else:
            begin = cursor.at
            cursor.skip(self.size)
            end = cursor.at
        words = _words(cursor.page, begin, end, self.type.byte_width // _WORD)
        limit = 10**self.type.precision
        if _is_below(words, 1 - limit).any() or (~_is_below(words, limit)).any():
            raise Suspect
        return of_numbers(self.type, words, len(words))

    def skip(self, cursor: Cursor) -> None:
        if self.size is None:
            cursor.spans()
        else:
            cursor.skip(self.size)

    def scan(self, scan: Scan) -> None:
        size = scan.length() if self.size is None else self.size
        unscaled = int.from_bytes(scan.raw(size), "big", signed=True)
        if abs(unscaled) >= 10**self.type.precision:
            raise Fault(
                f"a number of {size} bytes does not fit decimal({self.type.precision}, "
                f"{self.type.scale})"
            )


def _words(
    page: Page, begin: npt.NDArray[np.int64], end: npt.NDArray[np.int64], count: int
) -> npt.NDArray[np.uint64]:
    """The numbers between begin and end, each in this many words, the lowest first."""
    words = np.empty((len(begin), count), np.uint64)
    lengths = end - begin
    sign = np.zeros(len(begin), np.int64)  # 0 or -1, of what was read last
    for index in range(count):
        # The slack before the page is there for this: what stands before the number is loaded too.
        at = np.maximum(end - _WORD * (index + 1), 0)
        word = page.words[at].byteswap().view(np.int64)
        unused = 64 - 8 * np.clip(lengths - _WORD * index, 0, _WORD)
        value = np.where(unused < 64, (word << unused) >> unused, sign)
        words[:, index] = value.view(np.uint64)
        sign = value >> 63
    longer = np.flatnonzero(lengths > _WORD * count)
    for row in longer.tolist():  # nobody writes more bytes than a number needs
        unscaled = int.from_bytes(page.bytes[begin[row] : end[row]].tobytes(), "big", signed=True)
        if not -(1 << 64 * count - 1) <= unscaled < 1 << 64 * count - 1:
            raise Suspect
        words[row] = np.frombuffer(
            unscaled.to_bytes(_WORD * count, "little", signed=True), np.uint64
        )
    return words


def _is_below(words: npt.NDArray[np.uint64], bound: int) -> npt.NDArray[np.bool_]:
    """Whether each number is less than the bound, compared from the highest word on."""
    count = words.shape[1]
    bounds = np.frombuffer(bound.to_bytes(_WORD * count, "little", signed=True), np.uint64)
    below: npt.NDArray[np.bool_] = words[:, 0] < bounds[0]
    for index in range(1, count):
        word, limit = words[:, index], bounds[index]
        if index == count - 1:
            word, limit = word.view(np.int64), limit.view(np.int64)
        below = (word < limit) | ((word == limit) & below)
    return below
