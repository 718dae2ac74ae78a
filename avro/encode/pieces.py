"""What a body is put together from: for each column some pieces, one behind the other in each row.

A piece has something for every row of the batch. Where a row has nothing of it, below a null or in
another branch of a union, its size there is zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from duolog.avro.varint import varints, zigzag

if TYPE_CHECKING:
    import numpy.typing as npt

    Sizes: TypeAlias = npt.NDArray[np.int64] | int  # of all rows alike, if it is one number

WORD_BYTES = 8


@dataclass(frozen=True, slots=True)
class Words:
    """Up to eight bytes a row, the first of them lowest; those beyond the size are zero."""

    values: npt.NDArray[np.uint64] | int
    sizes: Sizes
    largest: int  # no size is above it


@dataclass(frozen=True, slots=True)
class Spans:
    """Any number of bytes a row, which lie somewhere in `content`."""

    content: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    sizes: Sizes
    longest: int  # no size is above it


Piece: TypeAlias = Words | Spans


class Presence:
    """Which rows have a value."""

    __slots__ = ("_mask", "flags")

    def __init__(self, flags: npt.NDArray[np.bool_]) -> None:
        self.flags = flags
        self._mask: npt.NDArray[np.int64] | None = None

    @property
    def mask(self) -> npt.NDArray[np.int64]:
        """All bits set where a row has a value, none where not."""
        if self._mask is None:
            self._mask = -self.flags.view(np.int8).astype(np.int64)
        return self._mask

    def between(self, begin: int, end: int) -> Presence:
        """Of the rows from `begin` to before `end`."""
        return Presence(self.flags[begin:end])


def both(one: Presence | None, other: Presence | None) -> Presence | None:
    """Where both are; None is everywhere."""
    if one is None or other is None:
        return one or other
    return Presence(one.flags & other.flags)


def words_where(
    present: Presence | None,
    values: npt.NDArray[np.uint64] | int,
    sizes: Sizes,
    largest: int,
) -> Words:
    """Words of the rows that are present."""
    if present is None:
        return Words(values, sizes, largest)
    bits = present.mask.view(np.uint64)
    kept = bits & (np.uint64(values) if isinstance(values, int) else values)
    return Words(kept, present.mask & sizes, largest)


def spans_where(
    present: Presence | None,
    content: npt.NDArray[np.uint8],
    starts: npt.NDArray[np.int64],
    sizes: Sizes,
    longest: int,
) -> Spans:
    """Spans of the rows that are present."""
    return Spans(content, starts, sizes if present is None else present.mask & sizes, longest)


def varints_where(present: Presence | None, numbers: npt.NDArray[np.int64]) -> list[Piece]:
    """Numbers of the rows that are present."""
    return [words_where(present, *part) for part in varints(zigzag(numbers))]


def lengths_where(
    present: Presence | None, lengths: npt.NDArray[np.int64], longest: int
) -> list[Piece]:
    """Lengths and counts of the rows that are present: none is negative."""
    numbers = lengths.view(np.uint64) << np.uint64(1)
    return [words_where(present, *part) for part in varints(numbers, (0, longest << 1))]


def constant(content: bytes, present: Presence | None, rows: int) -> list[Piece]:
    """The same bytes in each row that is present."""
    if not content:
        return []
    if len(content) <= WORD_BYTES:
        return [words_where(present, int.from_bytes(content, "little"), len(content), len(content))]
    bytes_ = np.frombuffer(content, np.uint8)
    return [spans_where(present, bytes_, np.zeros(rows, np.int64), len(content), len(content))]
