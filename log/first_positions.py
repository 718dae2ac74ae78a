"""Where a group reads from: where it is, or where it begins, which is stored before it reads.

A start such as "latest" means another offset each time that it is looked up. So it is looked up
once for a group, by its first read; whoever reads later goes on from there, also after a restart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from duolog.log.access import TopicRef
    from duolog.log.model import GroupPosition, Start


class HasGroups(Protocol):
    """The part of a log that this takes."""

    def resolve(self, reference: TopicRef, partition: int, start: Start) -> int: ...
    def group_position(
        self, group: str, reference: TopicRef, partition: int
    ) -> GroupPosition | None: ...
    def begin_group(
        self, group: str, reference: TopicRef, positions: Mapping[int, int]
    ) -> tuple[GroupPosition, ...]: ...


def known_or_first(
    log: HasGroups, group: str, topic_id: int, starts: Mapping[int, Start]
) -> dict[int, GroupPosition]:
    """A group's position in each partition that `starts` names; stored where there was none."""
    known = {each: log.group_position(group, topic_id, each) for each in starts}
    missing = {
        each: log.resolve(topic_id, each, starts[each])
        for each, position in known.items()
        if position is None
    }
    found = {each: position for each, position in known.items() if position is not None}
    if missing:
        stored = log.begin_group(group, topic_id, missing)
        found.update((each.partition, each) for each in stored)
    return {each: found[each] for each in starts}
