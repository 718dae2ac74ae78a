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
from duolog.log.batch import RECORD_SCHEMA
from duolog.log.model import Op
from duolog.log.routing.envelope import has_tombstones, value_rows
from duolog.log.routing.filter.evaluate import evaluate
from duolog.log.routing.images import images_of
from duolog.log.routing.murmur2 import partition_of_keys
from duolog.log.routing.payload import struct_of
from duolog.log.routing.plan import wants
from duolog.log.routing.prepare import BUILT_IN, prepare

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from duolog.log.model import Route
    from duolog.log.routing.changes import Changes
    from duolog.log.routing.codec import Codecs
    from duolog.log.routing.images import Images
    from duolog.log.routing.plan import RoutingPlan
    from duolog.log.routing.prepare import PreparedRoute, PreparedTable

_OP_WORDS = pa.array([op.word for op in Op])  # by number


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
    for topic_id, routes in groupby(table.routes, key=lambda prepared: prepared.topic.id):
        drafts = []
        matched = 0
        for prepared in routes:
            matches = _matches(images, prepared.route)
            wanted |= matches
            matched += int(np.count_nonzero(matches))
            rows = _filtered(images, np.flatnonzero(matches), prepared.route)
            if rows.size:
                drafts.append(_draft(images.take(rows), rows, prepared, turn))
        routed = sum(draft.changes for draft in drafts)
        counts[topic_id] = RouteCounts(routed, matched - routed)
        records += _by_partition(drafts, topic_id)
    return Routed(records, counts, int(np.count_nonzero(~wanted)))


@dataclass(frozen=True, slots=True, eq=False)
class _Draft:
    """Records of one route, not yet split by partition."""

    changes: int
    source: npt.NDArray[np.int64]  # which change a record is of; rising
    partition: npt.NDArray[np.int32]
    records: pa.RecordBatch


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
        op=_OP_WORDS.take(pa.array(candidates.op)),
    )
    return np.asarray(rows[passed.to_numpy(zero_copy_only=False)])


def _draft(
    images: Images, rows: npt.NDArray[np.int64], prepared: PreparedRoute, turn: int
) -> _Draft:
    topic, route = prepared.topic, prepared.route
    try:
        value = prepared.value.encode(
            value_rows(images, prepared.schema, route.payload, topic.settings.envelope)
        )
        key = _keys(images, prepared)
    except pa.ArrowCapacityError as error:
        raise InvalidRows(
            f"{len(images)} rows of table '{images.table}' become more than 2 GiB of records in "
            f"topic '{topic.name}'. Hand over fewer rows at a time."
        ) from error
    partition = partition_of_keys(_places(images, prepared, key), topic.partitions, turn=turn)
    draft = _Draft(len(images), rows, partition, _record_batch(images, key, value, route))
    return _with_tombstones(draft, images.is_delete) if has_tombstones(topic.settings) else draft


def _with_tombstones(draft: _Draft, is_delete: npt.NDArray[np.bool_]) -> _Draft:
    """Each delete twice in a row, the second time without its value."""
    if not is_delete.any():
        return draft
    twice = np.repeat(np.arange(len(is_delete)), 1 + is_delete)
    tombstone = np.concatenate(([False], twice[1:] == twice[:-1]))
    columns = [
        column.take(pa.array(twice, mask=tombstone if name == "value" else None))
        for name, column in zip(RECORD_SCHEMA.names, draft.records.columns, strict=True)
    ]
    records = pa.RecordBatch.from_arrays(columns, schema=RECORD_SCHEMA)
    return _Draft(draft.changes, draft.source[twice], draft.partition[twice], records)


def _keys(images: Images, prepared: PreparedRoute) -> pa.BinaryArray:
    if prepared.key is None:
        return pa.nulls(len(images), pa.binary())
    return prepared.key.encode(_struct(images, images.key_columns))


def _places(images: Images, prepared: PreparedRoute, key: pa.BinaryArray) -> pa.BinaryArray:
    """The bytes whose hash is the partition."""
    if prepared.place is None:
        return key
    columns = prepared.route.partition_by
    unknown = images.only_key
    if unknown.any() and not set(columns) <= set(images.key_columns):
        raise InvalidRows(
            f"Topic '{prepared.topic.name}' partitions table '{images.table}' by "
            f"{', '.join(columns)}, but of {int(np.count_nonzero(unknown))} deletes only the key "
            "is known. Feed the old rows too, or partition by key columns."
        )
    return prepared.place.encode(_struct(images, columns))


def _struct(images: Images, columns: Sequence[str]) -> pa.StructArray:
    return struct_of(images.row, [images.row.schema.field(name) for name in columns])


def _record_batch(
    images: Images, key: pa.BinaryArray, value: pa.BinaryArray, route: Route
) -> pa.RecordBatch:
    rows = len(images)
    columns = {
        "ts": images.ts,
        "key": key,
        "value": value,
        "headers": pa.nulls(rows, RECORD_SCHEMA.field("headers").type),
        "op": pa.array(images.op),
        "table": pa.repeat(images.table, rows),
        "payload": pa.array(np.full(rows, int(route.payload), np.int8)),
    }
    return pa.RecordBatch.from_arrays(
        [columns[name] for name in RECORD_SCHEMA.names], schema=RECORD_SCHEMA
    )


def _by_partition(drafts: list[_Draft], topic_id: int) -> list[RoutedRecords]:
    """The topic's records by partition, within each in the order of the changes."""
    if not drafts:
        return []
    partition = np.concatenate([draft.partition for draft in drafts])
    records = _one_batch([draft.records for draft in drafts])
    if len(drafts) > 1:
        source = np.concatenate([draft.source for draft in drafts])
        order = np.lexsort((source, partition))  # stable: a tombstone stays behind its delete
    else:
        order = np.argsort(partition, kind="stable")
    numbers, begins = np.unique(partition[order], return_index=True)
    if len(numbers) > 1 or len(drafts) > 1:
        records = records.take(pa.array(order))
    ends = [*begins[1:], len(records)]
    return [
        RoutedRecords(topic_id, int(number), records.slice(begin, end - begin))
        for number, begin, end in zip(numbers, begins.tolist(), ends, strict=True)
    ]


def _one_batch(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    columns = [
        pa.concat_arrays([batch.column(index) for batch in batches])
        for index in range(len(RECORD_SCHEMA))
    ]
    return pa.RecordBatch.from_arrays(columns, schema=RECORD_SCHEMA)
