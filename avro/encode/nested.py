"""Records, lists, maps and dictionary columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from duolog.avro.encode.buffers import index_numbers, list_parts
from duolog.avro.encode.node import Node, Unfit, bodies_of
from duolog.avro.encode.pieces import Presence, constant, lengths_where, spans_where
from duolog.log.routing.kinds import without_view

if TYPE_CHECKING:
    from duolog.avro.encode.buffers import Parts
    from duolog.avro.encode.pieces import Piece


@dataclass(frozen=True, slots=True)
class Fields:
    """A struct as a record: in the order of the record, each field from its place in the struct.

    Place None is for a field that the struct lacks and that has the same bytes in all rows.
    """

    members: tuple[tuple[int | None, Node], ...]

    @property
    def weight(self) -> int:
        return sum(member.weight for _, member in self.members)

    def pieces(self, values: pa.StructArray, present: Presence | None) -> list[Piece]:
        pieces: list[Piece] = []
        for place, member in self.members:
            pieces += member.pieces(values if place is None else values.field(place), present)
        return pieces


@dataclass(frozen=True, slots=True)
class Items:
    """A list of any kind as one block: how many, the items, and 0 as the end; none, only the 0."""

    item: Node

    @property
    def weight(self) -> int:
        return 3 + self.item.weight  # the items of a row take room too: as if there were one

    def pieces(self, values: pa.Array, present: Presence | None) -> list[Piece]:
        items, parts = list_parts(values)
        counts = parts.sizes if present is None else parts.sizes & present.mask
        used = None
        if int(counts.sum()) != len(items):
            used = Presence(_used(parts, counts, len(items)))
        try:
            bodies = bodies_of(self.item, items, used)
        except Unfit as unfit:
            holds = (parts.starts <= unfit.row) & (unfit.row < parts.starts + counts)
            raise unfit.at(int(np.flatnonzero(holds)[0])) from None
        begins = bodies.offsets[parts.starts]
        sizes = bodies.offsets[parts.starts + counts] - begins
        filled = None if counts.all() else Presence(counts > 0)
        return [
            *lengths_where(filled, counts, int(counts.max())),
            spans_where(None, bodies.content, begins, sizes, int(sizes.max())),
            *constant(b"\0", present, len(values)),
        ]


def _used(parts: Parts, counts: np.ndarray, items: int) -> np.ndarray:
    """Which items are in a list. Below a null list there may be some, which mean nothing."""
    some = counts > 0
    edges = np.bincount(parts.starts[some], minlength=items + 1)
    edges -= np.bincount((parts.starts + counts)[some], minlength=items + 1)
    return np.cumsum(edges[:items]) > 0


@dataclass(frozen=True, slots=True)
class Entries:
    """A dictionary column: each of its entries is written once, and rows point to it."""

    entry: Node
    weight: int = 1

    def pieces(self, values: pa.DictionaryArray, present: Presence | None) -> list[Piece]:
        dictionary = values.dictionary
        if len(dictionary) > len(values):
            return self.entry.pieces(_looked_up(values), present)
        indices = index_numbers(values)
        used = np.zeros(len(dictionary), np.bool_)
        if present is not None:
            indices &= present.mask  # what is at the others means nothing
            used[indices[present.flags]] = True
        else:
            used[indices] = True
        try:
            bodies = bodies_of(self.entry, dictionary, None if used.all() else Presence(used))
        except Unfit as unfit:
            holds = indices == unfit.row
            if present is not None:
                holds &= present.flags
            raise unfit.at(int(np.flatnonzero(holds)[0])) from None
        if not len(dictionary):
            return []
        sizes = np.diff(bodies.offsets)
        longest = int(sizes.max())
        starts = bodies.offsets[indices]
        return [spans_where(present, bodies.content, starts, sizes[indices], longest)]


def _looked_up(values: pa.DictionaryArray) -> pa.Array:
    """The entries of the rows, where there are more entries than rows."""
    kind = without_view(values.type.value_type)
    return values.dictionary.cast(kind).take(values.indices)
