"""The records of one route, and how those of a topic's routes come together by partition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from duolog.log.batch import RECORD_SCHEMA
from duolog.log.routing.envelope import has_tombstones, value_rows
from duolog.log.routing.murmur2 import partition_of_keys
from duolog.log.routing.payload import struct_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from duolog.log.model import Route
    from duolog.log.routing.images import Images
    from duolog.log.routing.prepare import PreparedRoute

MAX_BATCH_BYTES = 2**31 - 2  # what a column with 32-bit offsets holds


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """Records of one route, not yet split by partition."""

    changes: int
    source: npt.NDArray[np.int64]  # which change a record is of; rising
    partition: npt.NDArray[np.int32]
    records: pa.RecordBatch


def draft_of(
    images: Images, rows: npt.NDArray[np.int64], prepared: PreparedRoute, turn: int
) -> Draft:
    """Encode and place what a route takes; `rows` tells the images' places among all changes."""
    topic, route = prepared.topic, prepared.route
    visible = images if prepared.columns is None else images.only(prepared.columns)
    value = prepared.value.encode(
        value_rows(visible, prepared.schema, route.payload, topic.settings.envelope)
    )
    key = _keys(images, prepared)
    places = key if prepared.placement is None else prepared.placement.places(images, topic)
    partition = partition_of_keys(places, topic.partitions, turn=turn)
    draft = Draft(len(images), rows, partition, _record_batch(images, key, value, route))
    return _with_tombstones(draft, images.is_delete) if has_tombstones(topic.settings) else draft


def _with_tombstones(draft: Draft, is_delete: npt.NDArray[np.bool_]) -> Draft:
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
    return Draft(draft.changes, draft.source[twice], draft.partition[twice], records)


def _keys(images: Images, prepared: PreparedRoute) -> pa.BinaryArray:
    if prepared.key is None:
        return pa.nulls(len(images), pa.binary())
    return prepared.key.encode(_struct(images, images.key_columns))


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


def by_partition(drafts: Sequence[Draft]) -> list[tuple[int, pa.RecordBatch]]:
    """The drafts' records by partition, within each in the order of the changes."""
    if not drafts:
        return []
    partition = np.concatenate([draft.partition for draft in drafts])
    source = np.concatenate([draft.source for draft in drafts])
    order = np.lexsort((source, partition))  # stable: a tombstone stays behind its delete
    numbers, begins = np.unique(partition[order], return_index=True)
    records = _one_batch([draft.records for draft in drafts])
    if len(numbers) > 1 or len(drafts) > 1:
        records = records.take(pa.array(order))
    ends = [*begins[1:].tolist(), len(records)]
    return [
        (number, records.slice(begin, end - begin))
        for number, begin, end in zip(numbers.tolist(), begins.tolist(), ends, strict=True)
    ]


def _one_batch(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    total_bytes = sum(batch.nbytes for batch in batches)
    if total_bytes > MAX_BATCH_BYTES:
        raise pa.ArrowCapacityError(f"{total_bytes} bytes of records")
    columns = [
        pa.concat_arrays([batch.column(index) for batch in batches])
        for index in range(len(RECORD_SCHEMA))
    ]
    return pa.RecordBatch.from_arrays(columns, schema=RECORD_SCHEMA)
