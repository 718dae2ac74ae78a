"""Which routes want a change: the index (table, op) -> routes, over all topics.

Made where the topics are known, kept by the log's owner, and sent to tasks as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duolog.log.model import Op, Route, Topic

if TYPE_CHECKING:
    from collections.abc import Iterable

Target = tuple[Topic, Route]


@dataclass(frozen=True, slots=True)
class RoutingPlan:
    """All routes, found by what they listen to. Equal plans route equally."""

    targets: dict[str, tuple[Target, ...]]  # by table, in the order of topic ids

    @classmethod
    def of(cls, topics: Iterable[Topic]) -> RoutingPlan:
        targets: dict[str, tuple[Target, ...]] = {}
        for topic in sorted(topics, key=lambda topic: topic.id):
            for route in topic.routes:
                targets[route.table] = (*targets.get(route.table, ()), (topic, route))
        return cls(targets)

    @property
    def tables(self) -> frozenset[str]:
        """The tables that have a route."""
        return frozenset(self.targets)

    def routes_of(self, table: str) -> tuple[Target, ...]:
        """All routes of a table, those of one topic side by side."""
        return self.targets.get(table, ())

    def routes_for(self, table: str, op: Op) -> tuple[Target, ...]:
        """The routes that want this change; it may go to several topics."""
        return tuple(target for target in self.routes_of(table) if wants(target[1], op))


def wants(route: Route, op: Op) -> bool:
    """Whether a route takes this operation. A row as read goes where inserts go."""
    return (Op.INSERT if op is Op.READ else op) in route.ops
