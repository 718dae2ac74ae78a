"""Who is to have which partition. Pure, and the same for the same members.

Everybody gets as many as the others, or one more; whoever has some keeps as many of them as fit, so
that a change moves few; what is free goes out in order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def assign(members: Sequence[str], partitions: int, owned: Mapping[int, str]) -> dict[int, str]:
    """The owner of each partition. `members` in the order in which they came; `owned` until now."""
    if not members:
        return {}
    kept: dict[str, list[int]] = {member: [] for member in members}
    for partition in range(partitions):
        owner = owned.get(partition)
        if owner in kept:
            kept[owner].append(partition)
    share, more = divmod(partitions, len(members))
    order = {member: place for place, member in enumerate(members)}
    # Those who have most get the one more, or it would move for nothing.
    ranked = sorted(members, key=lambda each: (-len(kept[each]), order[each]))
    quota = {member: share + (place < more) for place, member in enumerate(ranked)}
    target = {
        partition: member for member in members for partition in kept[member][: quota[member]]
    }
    free = iter(partition for partition in range(partitions) if partition not in target)
    for member in members:
        lacking = quota[member] - min(quota[member], len(kept[member]))
        target.update((next(free), member) for _ in range(lacking))
    return target
