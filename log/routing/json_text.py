"""Columns of JSON text, put together by whole columns."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

MAX_TEXT_BYTES = 2**31 - 2


@dataclass(frozen=True, slots=True)
class Text:
    """One text a row, in pieces: columns, and what stands between them in every row.

    Null where a column is, which says that the value is null.
    """

    pieces: tuple[pa.StringArray | str, ...]

    def joined(self) -> pa.StringArray:
        """The pieces of each row as one."""
        if len(self.pieces) == 1:
            return self.pieces[0]
        return pc.binary_join_element_wise(*self.pieces, "")

    def or_null(self) -> Text:
        """With the word null where the value is null."""
        if any(piece.null_count for piece in self.pieces if not isinstance(piece, str)):
            return Text((self.joined().fill_null("null"),))
        return self


def text_of(*parts: Text | pa.StringArray | str) -> Text:
    """The parts one behind the other; at least one of them is more than a constant."""
    pieces: list[pa.StringArray | str] = []
    for part in parts:
        for piece in part.pieces if isinstance(part, Text) else (part,):
            if isinstance(piece, str) and pieces and isinstance(pieces[-1], str):
                pieces[-1] += piece
            else:
                pieces.append(piece)
    return Text(tuple(pieces))


def listed(texts: Sequence[pa.StringArray]) -> pa.StringArray:
    """The texts of each row with a comma between; what is null is left out."""
    # Where all are null, Arrow would leave out the row itself (seen in pyarrow 15 and 26).
    nothing = functools.reduce(pc.and_, (text.is_null() for text in texts))
    first = pc.if_else(nothing, "", texts[0])
    return pc.binary_join_element_wise(first, *texts[1:], ",", null_handling="skip")


def spread(text: pa.StringArray, present: pa.BooleanArray) -> pa.StringArray:
    """The texts at the places that are present, null at the others."""
    there = present.to_numpy(zero_copy_only=False)
    return text.take(pa.array(np.cumsum(there) - 1, mask=~there))


def characters(text: pa.Array) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    """Where each row's bytes begin and end, and the bytes."""
    _, offsets, content = text.buffers()
    bounds = np.frombuffer(offsets, np.int32, len(text) + 1, text.offset * 4)
    if content is None:
        return bounds, np.empty(0, np.uint8)
    return bounds - bounds[0], np.frombuffer(content, np.uint8)[bounds[0] : bounds[-1]]


def from_characters(
    bounds: npt.NDArray[np.integer[Any]], content: npt.NDArray[np.uint8], nulls_of: pa.Array
) -> pa.StringArray:
    """The reverse of `characters`, null where `nulls_of` is."""
    if bounds[-1] > MAX_TEXT_BYTES:
        raise pa.ArrowCapacityError(f"{bounds[-1]} bytes of text in one column")
    rows = len(bounds) - 1
    text = pa.StringArray.from_buffers(
        rows, pa.py_buffer(bounds.astype(np.int32)), pa.py_buffer(np.ascontiguousarray(content))
    )
    if not nulls_of.null_count:
        return text
    return pc.if_else(nulls_of.is_valid(), text, pa.scalar(None, pa.string()))
