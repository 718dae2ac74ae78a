"""Rows of a table: a change feed reads them, the table's routes make records of them.

Runs in Spark tasks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from duolog.connector.feeds.feed import Feed, Ordered
from duolog.connector.staged_part import StagedPart
from duolog.errors import InvalidRows
from duolog.log.part import Fingerprint
from duolog.log.routing.changes import Changes
from duolog.log.routing.prepare import PreparedTable
from duolog.log.routing.route import route_prepared


class Unrouted(StrEnum):
    """What to do with changes that no route takes."""

    FAIL = "fail"
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class TableRows:
    """How such rows are read and routed. Picklable."""

    feed: Feed
    table: PreparedTable
    unrouted: Unrouted

    def write(self, ordered: Iterable[Ordered], part: StagedPart, *, turn: int) -> int:
        """Put the records of these changes into the part; how many changes had no route."""
        topics = {prepared.topic.id: prepared.topic for prepared in self.table.routes}
        dropped = 0
        for order, changes in ordered:
            routed = route_prepared(changes, self.table, turn=turn)
            if routed.unrouted and self.unrouted is Unrouted.FAIL:
                raise self._no_route(changes, routed.unrouted)
            dropped += routed.unrouted
            for share in routed.records:
                part.add(topics[share.topic_id], share.partition, share.records, order=order)
            for topic_id, counts in routed.counts.items():
                left_out = Fingerprint(filtered_out=counts.filtered_out)
                part.count(topics[topic_id], left_out)
        return dropped

    def _no_route(self, changes: Changes, count: int) -> InvalidRows:
        routes = sorted({f"'{p.topic.name}'" for p in self.table.routes})
        return InvalidRows(
            f"{count} of {len(changes)} changes of table '{changes.table}' have no route "
            f"(topics with a route for it: {', '.join(routes) or 'none'}). Add a route for what "
            "was done to them, or set option unrouted=drop to leave such changes out."
        )
