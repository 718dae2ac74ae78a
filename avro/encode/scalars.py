"""Booleans and numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from duolog.avro.encode.buffers import numbers
from duolog.avro.encode.pieces import constant, varints_where, words_where

if TYPE_CHECKING:
    from duolog.avro.encode.pieces import Piece, Presence


@dataclass(frozen=True, slots=True)
class Nothing:
    """Null has no bytes."""

    weight: int = 0

    def pieces(self, values: pa.Array, present: Presence | None) -> list[Piece]:
        del values, present
        return []


@dataclass(frozen=True, slots=True)
class Constant:
    """The same bytes in all rows, whatever the values."""

    content: bytes
    weight: int = 1

    def pieces(self, values: pa.Array, present: Presence | None) -> list[Piece]:
        return constant(self.content, present, len(values))


@dataclass(frozen=True, slots=True)
class Booleans:
    """One byte, 0 or 1."""

    weight: int = 1

    def pieces(self, values: pa.Array, present: Presence | None) -> list[Piece]:
        bits = numbers(values.cast(pa.uint8()), np.uint8)
        return [words_where(present, bits.astype(np.uint64), 1, 1)]


@dataclass(frozen=True, slots=True)
class Integers:
    """Varints, of any integer type that fits into 64 bits with a sign."""

    kind: str  # numpy's name
    weight: int = 1

    def pieces(self, values: pa.Array, present: Presence | None) -> list[Piece]:
        return varints_where(present, numbers(values, self.kind).astype(np.int64, copy=False))


@dataclass(frozen=True, slots=True)
class Floats:
    """Four or eight bytes, lowest first, of any numbers that these hold exactly."""

    kind: str  # numpy's name
    size: int
    weight: int = 1

    def pieces(self, values: pa.Array, present: Presence | None) -> list[Piece]:
        with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
            exact = numbers(values, self.kind).astype(f"<f{self.size}", copy=False)
        bits = exact.view(f"<u{self.size}").astype(np.uint64, copy=False)
        return [words_where(present, bits, self.size, self.size)]
