"""How many records each partition gives to one answer. Pure."""

from __future__ import annotations

from collections.abc import Mapping


def shares(available: Mapping[int, int], limit: int) -> dict[int, int]:
    """Divide `limit` over what the partitions have: alike, and what one lacks goes to the others.

    What is left of an even division goes to the first ones, in the order of `available`.
    """
    given = dict.fromkeys(available, 0)
    wanting = [partition for partition, records in available.items() if records > 0]
    while wanting and limit > 0:
        # What does not divide is given out last: in each round it would add up for the first ones.
        each = max(1, limit // len(wanting))
        for partition in wanting[:limit]:
            taken = min(each, available[partition] - given[partition])
            given[partition] += taken
            limit -= taken
        wanting = [one for one in wanting if given[one] < available[one]]
    return {partition: records for partition, records in given.items() if records}
