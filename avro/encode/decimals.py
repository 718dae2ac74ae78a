"""Decimals: the number without its point as big-endian two's complement.

As bytes, there are as many as the magnitude and a sign bit need, as fastavro writes them. (Java
writes one byte less for -128, -32768 and so on. Readers take either.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from duolog.avro.encode.node import Unfit
from duolog.avro.encode.pieces import WORD_BYTES, words_where
from duolog.avro.encode.wide import (
    beyond,
    big_endian,
    limbs_of,
    magnitude_bytes,
    sign_of,
    times_ten,
)

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from duolog.avro.encode.pieces import Piece, Presence
    from duolog.avro.encode.wide import Limbs

MAX_DIGITS = 76  # of Arrow's widest decimal


@dataclass(frozen=True, slots=True)
class Decimals:
    """Decimals and 64-bit unsigned integers, as bytes or, with a `size`, as a fixed."""

    path: str
    called: str  # the Arrow type
    digits: int  # what the schema allows
    added_scale: int  # how many more digits behind the point it has
    size: int | None
    weight: int = 2

    def pieces(self, values: pa.Array, present: Presence | None) -> list[Piece]:
        limbs = self._scaled(values, present)
        return self._bytes(limbs, present) if self.size is None else self._fixed(limbs, present)

    def _scaled(self, values: pa.Array, present: Presence | None) -> Limbs:
        limbs = limbs_of(values)
        digits = min(self.digits, MAX_DIGITS)
        wrong = beyond(limbs, 10 ** (digits - self.added_scale) - 1)
        if wrong is not None:
            rows = np.flatnonzero(wrong if present is None else wrong & present.flags)
            if len(rows):
                raise self._unfit(limbs, int(rows[0]))
        return times_ten(limbs, self.added_scale, digits)

    def _unfit(self, limbs: Limbs, row: int) -> Unfit:
        number = int(limbs[-1].view(np.int64)[row])
        for limb in limbs[-2::-1]:
            number = number << 64 | int(limb[row])
        return Unfit(
            row,
            self.path,
            f"{number} without its point, of type {self.called}, has more digits than the "
            f"schema's decimal of {self.digits} digits takes. Correct the value.",
        )

    def _bytes(self, limbs: Limbs, present: Presence | None) -> list[Piece]:
        sizes = magnitude_bytes(limbs)
        pieces: list[Piece] = [
            words_where(present, (sizes << 1).view(np.uint64), 1, 1)  # at most 33, zig-zag
        ]
        for place in range(len(limbs) - 1, -1, -1):
            held = np.clip(sizes - place * WORD_BYTES, 0, WORD_BYTES)
            pieces.append(_lowest(limbs[place], held, present))
        return pieces

    def _fixed(self, limbs: Limbs, present: Presence | None) -> list[Piece]:
        size = self.size or 0
        sign = sign_of(limbs)
        pieces: list[Piece] = []
        for place in range((size - 1) // WORD_BYTES, -1, -1):
            limb = limbs[place] if place < len(limbs) else sign
            held = min(WORD_BYTES, size - place * WORD_BYTES)
            pieces.append(_lowest(limb, held, present))
        return pieces


def _lowest(
    limb: npt.NDArray[np.uint64], held: npt.NDArray[np.int64] | int, present: Presence | None
) -> Piece:
    """So many bytes of the limb, from its low end, the highest of them first."""
    unused = (WORD_BYTES - held) << 3
    shift = np.uint64(unused) if isinstance(unused, int) else unused.view(np.uint64)
    largest = held if isinstance(held, int) else int(held.max())
    return words_where(present, big_endian(limb) >> shift, held, largest)
