"""How many bytes the values of a filter may have at a time: functions make large ones of small."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from duolog.log.routing.filter.mistake import Mistake

if TYPE_CHECKING:
    from duolog.log.routing.filter.tree import Node

MAX_CONSTANT_BYTES = 64 * 1024  # of what is calculated from the filter alone
_LEAST_BYTES = 16 << 20
_TIMES_THE_ROWS = 8


class Room:
    """For one run of a filter.

    The values that are held at a time are counted. A step takes room for what it makes, and gives
    back the room of the values that it made it from.
    """

    def __init__(self, limit_bytes: int = MAX_CONSTANT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self.held_bytes = 0

    def check(self, node: Node, more_bytes: int) -> None:
        """Raises Mistake when so many bytes more would be too many."""
        if self.held_bytes + more_bytes > self._limit_bytes:
            raise Mistake(
                node,
                f"the values that are held for it come to more than {self._limit_bytes} bytes for "
                "these rows. Make do with less: make no large texts of small ones, or hand over "
                "fewer rows at a time.",
            )

    def take(self, node: Node, values: Any) -> None:
        """Count an array that was made. One value for all rows is small."""
        more_bytes = 0 if isinstance(values, pa.Scalar) else values.nbytes
        self.check(node, more_bytes)
        self.held_bytes += more_bytes

    def replace(self, node: Node, before_bytes: int, values: Any) -> None:
        """What was taken since there were `before_bytes` is gone, but for these values."""
        self.held_bytes = before_bytes
        self.take(node, values)


def room_for(*rows: pa.RecordBatch | None) -> Room:
    """Room for a filter over these rows."""
    given = sum(each.get_total_buffer_size() for each in rows if each is not None)
    return Room(max(_LEAST_BYTES, _TIMES_THE_ROWS * given))
