"""Rows of a table: a change feed reads them, the table's routes make records of them.

Runs in Spark tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from duolog.connector.bad_rows import Bad, sift
from duolog.connector.dead_letters import DeadLetterBox
from duolog.connector.feeds.feed import Feed, FeedReader, Ordered
from duolog.connector.row_text import change_rows
from duolog.connector.staged_part import StagedPart
from duolog.errors import InvalidRows
from duolog.log.model import Unrouted
from duolog.log.part import Fingerprint
from duolog.log.routing.changes import Changes
from duolog.log.routing.prepare import PreparedTable
from duolog.log.routing.route import Routed, route_prepared


@dataclass(frozen=True, slots=True)
class TableRows:
    """How such rows are read and routed. Picklable."""

    feed: Feed
    table: PreparedTable
    unrouted: Unrouted

    def read(
        self, reader: FeedReader, rows: pa.RecordBatch, box: DeadLetterBox | None
    ) -> Iterable[Ordered]:
        """The changes that are complete with these rows; with a box, bad rows go there."""
        if box is None:
            yield from reader.changes_of(rows)
            return
        for found in sift(rows, lambda some: list(reader.changes_of(some)), self._without_key):
            if isinstance(found, Bad):
                box.add(found, "row")
            else:
                yield from found

    def write(
        self, ordered: Iterable[Ordered], part: StagedPart, box: DeadLetterBox | None, *, turn: int
    ) -> int:
        """Put the records of these changes into the part; how many changes had no route.

        With a box, changes that a route cannot take go there, and to no topic at all.
        """
        topics = {prepared.topic.id: prepared.topic for prepared in self.table.routes}
        dropped = 0
        for order, changes in ordered:
            for routed in self._routed(changes, box, turn):
                if routed.unrouted and self.unrouted is Unrouted.FAIL:
                    raise self._no_route(len(changes), routed.unrouted)
                dropped += routed.unrouted
                for share in routed.records:
                    part.add(topics[share.topic_id], share.partition, share.records, order=order)
                for topic_id, counts in routed.counts.items():
                    left_out = Fingerprint(filtered_out=counts.filtered_out)
                    part.count(topics[topic_id], left_out)
        return dropped

    def _routed(self, changes: Changes, box: DeadLetterBox | None, turn: int) -> Iterator[Routed]:
        if box is None:
            yield route_prepared(changes, self.table, turn=turn)
            return

        def attempt(some: Changes) -> Routed:
            routed = route_prepared(some, self.table, turn=turn)
            for share in routed.records:
                box.check_fit(share.records)
            return routed

        for found in sift(changes, attempt):
            if isinstance(found, Bad):
                box.add(replace(found, rows=change_rows(found.rows)), "change")
            else:
                yield found

    def _without_key(self, rows: pa.RecordBatch) -> npt.NDArray[np.int64]:
        """Numbers for rows without a value in a key column, where these are columns of the rows."""
        numbers = np.zeros(len(rows), np.int64)
        for number, name in enumerate(self.feed.key_columns, 1):
            if rows.schema.names.count(name) == 1 and rows.column(name).null_count:
                missing = rows.column(name).is_null().to_numpy(zero_copy_only=False)
                numbers[missing] = number
        return numbers

    def _no_route(self, of: int, count: int) -> InvalidRows:
        routes = sorted({f"'{p.topic.name}'" for p in self.table.routes})
        return InvalidRows(
            f"{count} of {of} changes of table '{self.table.table}' have no route "
            f"(topics with a route for it: {', '.join(routes) or 'none'}). Add a route for what "
            "was done to them, or set option unrouted=drop to leave such changes out."
        )
