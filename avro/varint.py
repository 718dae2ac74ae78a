"""Zig-zag varints, as Avro writes its numbers, from whole numpy columns.

A varint has seven bits of the number in each byte, the lowest first, and the top bit set in all
bytes but its last. A column of them is made as 64-bit words with a varint in the low bytes of
each: by a few shifts over all rows, where a loop over the bytes would pass over them ten times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

LONGEST: Final = 10  # bytes, of a 64-bit number

_WORD_BITS: Final = 56  # of a number, in eight bytes
_WORD_MASK: Final = np.uint64((1 << _WORD_BITS) - 1)
# To spread seven bits to each byte: the upper half of every group moves up, in ever smaller groups.
_SPREAD: Final = (
    (28, np.uint64(0x00FFFFFFF0000000), np.uint64(4)),
    (14, np.uint64(0x0FFFC0000FFFC000), np.uint64(2)),
    (7, np.uint64(0x3F803F803F803F80), np.uint64(1)),
)
_TOPS: Final = 0x8080808080808080  # the top bit of each byte
_BELOW_TOPS: Final = np.uint64(0x7F7F7F7F7F7F7F7F)
_ONES: Final = np.uint64(0x0101010101010101)


class Varints(NamedTuple):
    """Up to eight bytes of varints: the rest of the word is zero."""

    words: npt.NDArray[np.uint64]
    sizes: npt.NDArray[np.int64] | int  # one number when all are alike
    largest: int


def varint(number: int) -> bytes:
    """One signed 64-bit number."""
    left = zigzag_of(number)
    text = bytearray()
    while left > 0x7F:
        text.append(left & 0x7F | 0x80)
        left >>= 7
    text.append(left)
    return bytes(text)


def zigzag_of(number: int) -> int:
    """One signed 64-bit number, unsigned."""
    return number << 1 ^ number >> 63


def zigzag(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """Signed numbers as unsigned ones, small ones small: 0, -1, 1, -2 become 0, 1, 2, 3."""
    doubled = numbers << 1
    doubled ^= numbers >> 63
    return doubled.view(np.uint64)


def varints(
    numbers: npt.NDArray[np.uint64], bounds: tuple[int, int] | None = None
) -> tuple[Varints, ...]:
    """Each number as a varint: one word, and a second one where some have more than 56 bits.

    `bounds`, where they are known: no number is below the first or above the second.
    """
    if not len(numbers):
        return (Varints(numbers, 1, 1),)
    lowest, highest = bounds or (int(numbers.min()), int(numbers.max()))
    if highest <= 0x7F:
        return (Varints(numbers, 1, 1),)
    if highest >> _WORD_BITS:
        return _of_two_words(numbers, lowest, highest)
    smallest, largest = _length(lowest), _length(highest)
    words = _spread(numbers, highest)
    if smallest == largest:
        words |= np.uint64(_TOPS & ((1 << 8 * (largest - 1)) - 1))
        return (Varints(words, largest, largest),)
    tops = _continued(words >> np.uint64(8), largest - 1)
    words |= tops
    return (Varints(words, _sizes(tops, 1), largest),)


def _of_two_words(
    numbers: npt.NDArray[np.uint64], lowest: int, highest: int
) -> tuple[Varints, Varints]:
    low = _spread(numbers & _WORD_MASK, (1 << _WORD_BITS) - 1)
    high = numbers >> np.uint64(_WORD_BITS)  # eight bits: a ninth byte, and one bit of a tenth
    nine = (high > 0).view(np.uint8).astype(np.uint64)
    ten = high >> np.uint64(7)
    high += ten << np.uint64(8)  # the ninth byte has its top bit already, as it must
    largest = _length(highest)
    if _length(lowest) == largest:
        low |= np.uint64(_TOPS)
        return Varints(low, 8, 8), Varints(high, largest - 8, largest - 8)
    tops = _continued((low >> np.uint64(8)) | (nine << np.uint64(_WORD_BITS)), 8)
    low |= tops
    sizes = np.minimum(_sizes(tops, 1), 8)
    return Varints(low, sizes, 8), Varints(high, (nine + ten).view(np.int64), largest - 8)


def _length(number: int) -> int:
    return max(1, -(-number.bit_length() // 7))


def _spread(numbers: npt.NDArray[np.uint64], highest: int) -> npt.NDArray[np.uint64]:
    """Seven bits of the number in each byte. The result is never `numbers` itself."""
    spread = numbers
    for bits, upper, shift in _SPREAD:
        if highest >> bits:
            moved = spread & upper
            moved *= np.uint64((1 << int(shift)) - 1)  # x + x * (2**n - 1) is x * 2**n
            moved += spread
            spread = moved
    return spread


def _continued(above: npt.NDArray[np.uint64], bytes_left: int) -> npt.NDArray[np.uint64]:
    """The top bits of the bytes at or below the highest one that is not zero. Uses up `above`."""
    reach = 1
    while reach < bytes_left:
        above |= above >> np.uint64(8 * reach)
        reach *= 2
    above += _BELOW_TOPS
    above &= np.uint64(_TOPS)
    return above


def _sizes(tops: npt.NDArray[np.uint64], more: int) -> npt.NDArray[np.int64]:
    """How many top bits are set in each, and so many more. Uses up `tops`."""
    tops >>= np.uint64(7)
    tops *= _ONES
    tops >>= np.uint64(56)
    tops += np.uint64(more)
    return tops.view(np.int64)
