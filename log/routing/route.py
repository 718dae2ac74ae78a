"""From the changes of a table to the records of topics, a whole batch at a time.

    changes -> images -> per route: match, filter, payload, encode -> per topic: order, partition

Needs nothing but pyarrow and numpy, so it runs inside Spark tasks.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from duolog.errors import InvalidRows
from duolog.log.model import Op
from duolog.log.routing.drafts import by_partition, draft_of
from duolog.log.routing.filter.evaluate import evaluate
from duolog.log.routing.images import images_of
from duolog.log.routing.plan import wants
from duolog.log.routing.prepare import BUILT_IN, prepare

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from duolog.log.model import Route
    from duolog.log.routing.changes import Changes
    from duolog.log.routing.codec import Codecs
    from duolog.log.routing.images import Images
    from duolog.log.routing.plan import RoutingPlan
    from duolog.log.routing.prepare import PreparedTable

_OP_WORDS = tuple(op.word for op in Op)  # by number


@dataclass(frozen=True, slots=True, eq=False)
class RoutedRecords:
    """Records for one partition, in the order of their changes."""

    topic_id: int
    partition: int
    records: pa.RecordBatch  # of batch.RECORD_SCHEMA


@dataclass(frozen=True, slots=True)
class RouteCounts:
    """What became of the changes that a topic's routes matched. Tombstones are not counted."""

    routed: int
    filtered_out: int


@dataclass(frozen=True, slots=True, eq=False)
class Routed:
    """All records of one batch of changes."""

    records: list[RoutedRecords]
    counts: Mapping[int, RouteCounts]  # by topic id, for each topic with a route for the table
    unrouted: int  # changes for which there is no route at all


def route(
    changes: Changes, plan: RoutingPlan, codecs: Codecs = BUILT_IN, *, turn: int = 0
) -> Routed:
    """The records that these changes become; records without a key go by `turn`."""
    table = prepare(plan, changes.table, changes.schema, changes.key_columns, codecs)
    return route_prepared(changes, table, turn=turn)


def route_prepared(changes: Changes, table: PreparedTable, *, turn: int = 0) -> Routed:
    """As `route`, with what was prepared elsewhere."""
    _check_prepared_for(changes, table)
    images = images_of(changes)
    wanted = np.zeros(len(images), np.bool_)
    records: list[RoutedRecords] = []
    counts: dict[int, RouteCounts] = {}
    for topic, routes in groupby(table.routes, key=lambda prepared: prepared.topic):
        matched = 0
        drafts = []
        try:
            for prepared in routes:
                matches = _matches(images, prepared.route)
                wanted |= matches
                matched += int(np.count_nonzero(matches))
                rows = _filtered(images, np.flatnonzero(matches), prepared.route)
                if rows.size:
                    drafts.append(draft_of(images.take(rows), rows, prepared, turn))
            for partition, batch in by_partition(drafts):
                records.append(RoutedRecords(topic.id, partition, batch))
        except pa.ArrowCapacityError as error:
            raise InvalidRows(
                f"{len(changes)} changes of table '{changes.table}' become more than 2 GiB of "
                f"records in topic '{topic.name}'. Hand over fewer rows at a time."
            ) from error
        routed = sum(draft.changes for draft in drafts)
        counts[topic.id] = RouteCounts(routed, matched - routed)
    return Routed(records, counts, int(np.count_nonzero(~wanted)))


def _check_prepared_for(changes: Changes, table: PreparedTable) -> None:
    found = (changes.table, changes.key_columns)
    if found != (table.table, table.key_columns) or changes.schema != table.rows:
        raise InvalidRows(
            f"The rows of table '{changes.table}' with the key {', '.join(changes.key_columns)} "
            f"are not those that the routes of table '{table.table}' were prepared for: their "
            "columns or their key differ. Prepare the routes again."
        )


def _matches(images: Images, route: Route) -> npt.NDArray[np.bool_]:
    by_op = np.array([wants(route, op) for op in Op])
    return np.asarray(by_op[images.op])


def _filtered(images: Images, rows: npt.NDArray[np.int64], route: Route) -> npt.NDArray[np.int64]:
    if route.filter is None or not rows.size:
        return rows
    candidates = images.take(rows)
    passed = evaluate(
        route.filter.tree,
        candidates.row,
        before=candidates.before_or_null(),
        op=pa.array(_OP_WORDS).take(pa.array(candidates.op)),
    )
    return np.asarray(rows[passed.to_numpy(zero_copy_only=False)])
