"""How much one micro-batch takes. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeVar

K = TypeVar("K", bound=Hashable)


def limited(most: int, begin: Mapping[K, int], until: Mapping[K, int]) -> dict[K, int]:
    """How far each place is read, so that all of them together give at most so many.

    What there is is taken in proportion. A place that has something gets at least one, as long as
    there are enough for all; where not, the ones with the most go first.
    """
    sizes = {place: max(0, end - begin[place]) for place, end in until.items()}
    total = sum(sizes.values())
    if total <= most:
        return {place: begin[place] + size for place, size in sizes.items()}
    by_size = sorted((place for place in sizes if sizes[place]), key=lambda place: -sizes[place])
    taken = dict.fromkeys(sizes, 0)
    for place in by_size[:most]:
        taken[place] = 1
    left = most - min(most, len(by_size))
    if left:
        rest = total - len(by_size)
        for place in by_size:
            taken[place] += left * (sizes[place] - 1) // rest
        # What rounding left over: at most one for each place that still has some.
        spare = most - sum(taken.values())
        for place in by_size:
            if not spare:
                break
            if taken[place] < sizes[place]:
                taken[place] += 1
                spare -= 1
    return {place: begin[place] + count for place, count in taken.items()}


def waits_for_more(
    least: int | None, available: int, seconds_since_batch: float, most_seconds: float
) -> bool:
    """Whether so few records are left alone for now."""
    return least is not None and available < least and seconds_since_batch < most_seconds
