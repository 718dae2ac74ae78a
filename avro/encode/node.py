"""What writes one place of a schema: a column, a field of a struct, the items of a list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from duolog.avro.encode.bodies import Bodies

if TYPE_CHECKING:
    import pyarrow as pa

    from duolog.avro.encode.pieces import Piece, Presence

_FEWEST_ROWS, _MOST_ROWS = 1 << 9, 1 << 14
_STAGED_BYTES = 1 << 22  # about as much as the processor keeps near
_PIECE_BYTES = 40
_STEP_BYTES = 1 << 20  # of Arrow's


class Node(Protocol):
    """Writes values of one Arrow type as one Avro type. Picklable."""

    @property
    def weight(self) -> int:
        """About how many pieces it makes."""

    def pieces(self, values: pa.Array, present: Presence | None) -> list[Piece]:
        """The bytes of the values that are present, all of which are valid; None: all are.

        Raises Unfit for a value that has no place in the schema.
        """


class Unfit(Exception):
    """A value that the schema has no place for. `row` counts within the values at hand."""

    def __init__(self, row: int, path: str, reason: str) -> None:
        super().__init__(row, path, reason)
        self.row = row
        self.path = path
        self.reason = reason

    def at(self, row: int) -> Unfit:
        """The same, as the row that it is further outside."""
        return Unfit(row, self.path, self.reason)


def bodies_of(
    node: Node, values: pa.Array, present: Presence | None, *, most_rows: int = _MOST_ROWS
) -> Bodies:
    """The bodies of each value; none where it is not present.

    In steps of some thousand rows: what is at hand at a time stays small and near the processor.
    """
    rows = len(values)
    bodies = Bodies(rows)
    step = _STAGED_BYTES // (_PIECE_BYTES * max(1, node.weight))
    step = min(most_rows, max(_FEWEST_ROWS, min(_MOST_ROWS, step)))
    for begin in range(0, rows, step):
        count = min(step, rows - begin)
        some = present and present.between(begin, begin + count)
        try:
            pieces = node.pieces(values.slice(begin, count) if count < rows else values, some)
        except Unfit as unfit:
            raise unfit.at(begin + unfit.row) from None
        bodies.append(pieces, count)
    return bodies


def rows_at_a_time(values: pa.Array) -> int:
    """How many rows hold about as many bytes as should be at hand: few, where there are lists."""
    return max(1, len(values) * _STEP_BYTES // max(1, int(values.nbytes)))
