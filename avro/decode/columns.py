"""Arrow arrays made of numpy's, and put together from subsets of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Places = npt.NDArray[np.int64]
    Piece = tuple[Places, pa.Array]


def of_numbers(kind: pa.DataType, values: npt.NDArray[Any], rows: int | None = None) -> pa.Array:
    """Values of a fixed width, as they lie in memory."""
    count = len(values) if rows is None else rows
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(values)], 0)


def of_children(kind: pa.DataType, rows: int, children: Sequence[pa.Array]) -> pa.StructArray:
    """A struct, also one without fields."""
    return pa.Array.from_buffers(kind, rows, [None], 0, children=list(children))


def bitmap(flags: npt.NDArray[np.bool_]) -> Any:
    """One bit a row."""
    return pa.py_buffer(np.packbits(flags, bitorder="little"))


def spread(array: pa.Array, places: Places, rows: int) -> pa.Array:
    """The values at these places of a longer array, null at the others."""
    if len(places) == rows:
        return array
    if not len(places):
        return pa.nulls(rows, array.type)
    if pa.types.is_struct(array.type) and not array.null_count:
        children = [spread(child, places, rows) for child in array.flatten()]
        present = np.zeros(rows, np.bool_)
        present[places] = True
        return pa.Array.from_buffers(
            array.type, rows, [bitmap(present)], rows - len(places), children=children
        )
    indices = np.zeros(rows, np.int32)
    indices[places] = np.arange(len(places), dtype=np.int32)
    missing = np.ones(rows, np.bool_)
    missing[places] = False
    return array.take(pa.array(indices, mask=missing))


def merged(pieces: Sequence[Piece], rows: int, kind: pa.DataType) -> pa.Array:
    """Values from several subsets of rows, which have none in common; null where none has one."""
    if not pieces:
        return pa.nulls(rows, kind)
    if len(pieces) == 1:
        return spread(pieces[0][1], pieces[0][0], rows)
    places = np.concatenate([places for places, _ in pieces])
    order = np.argsort(places)
    values = pa.concat_arrays([array for _, array in pieces]).take(pa.array(order))
    return spread(values, places[order], rows)
