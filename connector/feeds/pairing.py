"""Which two images of one update belong together: same version, same key."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Rows of images. `old[i]` and `new[i]` are one update; the others found no partner."""

    old: Rows
    new: Rows
    lone_old: Rows
    lone_new: Rows
    doubled: int | None  # an image that stands there twice: the key does not tell rows apart


def pair(columns: Sequence[pa.Array], old: Rows, new: Rows) -> Pairs:
    """Pair old with new images that agree in all these columns; rows are given rising.

    Tables write both images of a row one behind the other, so nearly all pairs are found by one
    comparison with the next row. Only what is left after that is sorted.
    """
    next_old, next_new = _side_by_side(columns, old, new)
    rest_old, rest_new = _without(old, next_old), _without(new, next_new)
    if not rest_old.size or not rest_new.size:
        return Pairs(next_old, next_new, rest_old, rest_new, None)
    found_old, found_new, doubled = _sorted_out(columns, rest_old, rest_new)
    return Pairs(
        np.concatenate((next_old, found_old)),
        np.concatenate((next_new, found_new)),
        _without(rest_old, found_old),
        _without(rest_new, found_new),
        doubled,
    )


def _side_by_side(columns: Sequence[pa.Array], old: Rows, new: Rows) -> tuple[Rows, Rows]:
    candidates = old[np.isin(old + 1, new, assume_unique=True)]
    if not candidates.size:
        return candidates, candidates
    here, there = pa.array(candidates), pa.array(candidates + 1)
    same = reduce(pc.and_, (pc.equal(c.take(here), c.take(there)) for c in columns))
    paired = candidates[same.to_numpy(zero_copy_only=False)]
    return paired, paired + 1


def _sorted_out(columns: Sequence[pa.Array], old: Rows, new: Rows) -> tuple[Rows, Rows, int | None]:
    rows = np.concatenate((old, new))
    is_new = np.concatenate((np.zeros(old.size, np.int8), np.ones(new.size, np.int8)))
    taken = pa.array(rows)
    codes = codes_of([column.take(taken) for column in columns])
    order = np.lexsort((is_new, codes))
    rows, is_new, codes = rows[order], is_new[order], codes[order]
    same = codes[1:] == codes[:-1]
    twice = np.flatnonzero(same & (is_new[1:] == is_new[:-1]))
    firsts = np.flatnonzero(same & (is_new[1:] > is_new[:-1]))
    return rows[firsts], rows[firsts + 1], int(rows[twice[0]]) if twice.size else None


def codes_of(columns: Sequence[pa.Array]) -> npt.NDArray[np.int64]:
    """A number for each row, the same for rows that agree in all columns."""
    codes = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        encoded = column.dictionary_encode()
        codes = codes * max(1, len(encoded.dictionary)) + encoded.indices.to_numpy()
        codes = np.unique(codes, return_inverse=True)[1].astype(np.int64)
    return codes


def _without(rows: Rows, taken: Rows) -> Rows:
    return np.setdiff1d(rows, taken, assume_unique=True) if taken.size else rows
