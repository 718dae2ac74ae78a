"""A set of whole numbers as ranges that neither touch nor overlap. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator


class Ranges:
    """Offsets that are done, beyond those that are done without a gap."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []  # each excluded

    def add(self, start: int, end: int) -> None:
        """Add all from `start` up to but not including `end`."""
        if start >= end:
            return
        first = bisect_left(self._ends, start)  # the first range that reaches `start`
        last = bisect_right(self._starts, end)  # behind the last one that begins by `end`
        if first < last:
            start = min(start, self._starts[first])
            end = max(end, self._ends[last - 1])
        self._starts[first:last] = [start]
        self._ends[first:last] = [end]

    def take_from(self, floor: int) -> int:
        """The end of what follows `floor` without a gap. What lies before that is forgotten."""
        gone = bisect_right(self._starts, floor)
        if gone:
            floor = max(floor, self._ends[gone - 1])
            del self._starts[:gone], self._ends[:gone]
        return floor

    def clear(self) -> None:
        self._starts.clear()
        self._ends.clear()

    def __contains__(self, number: int) -> bool:
        at = bisect_right(self._starts, number)
        return at > 0 and number < self._ends[at - 1]

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self._starts, self._ends, strict=True)
