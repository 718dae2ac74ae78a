"""Rows as Debezium writes them: `before`, `after`, `source`, `op`, `ts_ms` as columns, or in JSON.

| op      | means                                                                   |
|---------|-------------------------------------------------------------------------|
| c, u, d | insert, update, delete                                                  |
| r       | the row as it stood when Debezium's snapshot read it                    |
| m       | a message that somebody wrote into the source's log: passed over        |
| none    | a tombstone behind a delete: passed over, the topic's envelope adds one |
| t       | a truncated table: refused, since it says nothing about single rows     |

`ts` is the time of the change in its source, where Debezium knows it.

Order: where the rows have the `offset` (and `partition`) of Spark's Kafka source, each stretch of
rising offsets is put in its place, so the tasks of one Kafka partition may be many. Without an
`offset` rows stand as they come in each task, and all changes of a key must be in one task.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duolog.connector.feeds.columns import conformed_column, shown
from duolog.connector.feeds.debezium_json import Envelopes, parsed
from duolog.connector.feeds.feed import FeedCounts, NothingLeft, RowByRow
from duolog.errors import InvalidRows
from duolog.log.model import Op
from duolog.log.routing.changes import Changes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from duolog.connector.feeds.feed import Ordered
    from duolog.log.staging import StagingPlace

VALUE = "value"
_OPS = {"c": Op.INSERT, "u": Op.UPDATE, "d": Op.DELETE, "r": Op.READ, "m": Op.NONE}


@dataclass(frozen=True, slots=True)
class DebeziumFeed:
    """One table's changes in Debezium's envelope."""

    table: str
    key_columns: tuple[str, ...]
    rows: pa.Schema
    found: str
    is_json: bool
    ts_ms: int  # for rows that do not say when they were changed

    def at(self, ts_ms: int) -> DebeziumFeed:
        return replace(self, ts_ms=ts_ms)

    def reader(
        self,
        place: StagingPlace | None = None,  # noqa: ARG002 - nothing is left
    ) -> _DebeziumReader:
        return _DebeziumReader(self)

    def settle(
        self,
        left_over: Sequence[bytes],  # noqa: ARG002
        place: StagingPlace | None = None,  # noqa: ARG002
    ) -> NothingLeft:
        return NothingLeft()


class _DebeziumReader(RowByRow):
    def __init__(self, feed: DebeziumFeed) -> None:
        super().__init__()
        self._feed = feed

    def changes_of(self, batch: pa.RecordBatch) -> Iterator[Ordered]:
        feed, rows = self._feed, batch.num_rows
        batch = self._with_events(batch)
        if not batch.num_rows:
            self.counts += FeedCounts(passed_over=rows)
            return
        if feed.is_json:
            envelopes = parsed(batch.column(VALUE), feed.rows, feed.table)
        else:
            envelopes = _of_columns(batch, feed.rows, feed.table)
        op = _ops(envelopes.op, batch, feed.table)
        events = np.flatnonzero(op != Op.NONE)
        if events.size < op.size:
            batch, op, envelopes = batch.take(pa.array(events)), op[events], envelopes.take(events)
        _check_images(op, envelopes, batch, feed.table)
        unknown = np.count_nonzero((op == Op.UPDATE) & ~_valid(envelopes.before))
        yield from self._ordered(batch, op, envelopes)
        self.counts += FeedCounts(old_unknown=int(unknown), passed_over=rows - op.size)

    def _with_events(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Without tombstones."""
        names = (VALUE,) if self._feed.is_json else ("op", "after", "before")
        columns = [batch.column(name) for name in names if name in batch.schema.names]
        there = np.zeros(batch.num_rows, np.bool_)
        for column in columns:
            there |= _valid(column)
        if there.all():
            return batch
        return batch.take(pa.array(np.flatnonzero(there)))

    def _ordered(
        self, batch: pa.RecordBatch, op: npt.NDArray[np.int8], envelopes: Envelopes
    ) -> Iterator[Ordered]:
        feed = self._feed
        after, before = _rows_of(envelopes.after, feed.rows), _rows_of(envelopes.before, feed.rows)
        ts = pc.fill_null(envelopes.ts, feed.ts_ms)
        known = _valid(envelopes.before)
        for order, start, end in stretches(batch):
            rows = slice(start, end)
            yield (
                order,
                Changes.of(
                    feed.table,
                    feed.key_columns,
                    op=pa.array(op[rows]),
                    after=after.slice(start, end - start),
                    before=before.slice(start, end - start),
                    before_known=pa.array(known[rows]),
                    ts=ts.slice(start, end - start),
                ),
            )


def stretches(batch: pa.RecordBatch) -> Iterator[tuple[int, int, int]]:
    """Order, start and end of each stretch of rows that lay one behind the other in Kafka."""
    if "offset" not in batch.schema.names or not batch.num_rows:
        yield from [(0, 0, batch.num_rows)] if batch.num_rows else []
        return
    offsets = batch.column("offset").cast(pa.int64()).to_numpy(zero_copy_only=False)
    breaks = np.diff(offsets) <= 0
    if "partition" in batch.schema.names:
        partitions = batch.column("partition").to_numpy(zero_copy_only=False)
        breaks |= np.diff(partitions) != 0
    starts = [0, *(np.flatnonzero(breaks) + 1).tolist(), batch.num_rows]
    for start, end in pairwise(starts):
        yield int(offsets[start]), start, end


def _of_columns(batch: pa.RecordBatch, rows: pa.Schema, table: str) -> Envelopes:
    # All nullable: below an image that is null, so is the key.
    image = pa.struct([field.with_nullable(True) for field in rows])
    names = batch.schema.names
    op = conformed_column(batch, pa.field("op", pa.string()), table)
    after = conformed_column(batch, pa.field("after", image), table)
    before = pa.nulls(batch.num_rows, image)
    if "before" in names:
        before = conformed_column(batch, pa.field("before", image), table)
    ts = pa.nulls(batch.num_rows, pa.int64())
    if "ts_ms" in names:
        ts = batch.column("ts_ms").cast(pa.int64())
    source = batch.column("source") if "source" in names else None
    if source is not None and pa.types.is_struct(source.type):
        at = source.type.get_field_index("ts_ms")
        if at >= 0:
            ts = pc.coalesce(source.flatten()[at].cast(pa.int64()), ts)
    return Envelopes(op, before, after, ts)


def _ops(column: pa.Array, batch: pa.RecordBatch, table: str) -> npt.NDArray[np.int8]:
    encoded = column.dictionary_encode()
    for word in encoded.dictionary.to_pylist():
        if word == "t":
            raise InvalidRows(
                f"Table '{table}' was truncated (Debezium's op 't'), which says nothing about "
                "single rows. Filter these rows out, and delete by a statement that names rows."
            )
        if word not in _OPS:
            raise InvalidRows(
                f"Debezium's op for table '{table}' is '{word}'; it can be {', '.join(_OPS)}."
            )
    missing = np.flatnonzero(~_valid(column))
    if missing.size:
        raise InvalidRows(
            f"Debezium's op for table '{table}' is missing in {missing.size} rows, the first is "
            f"{shown(batch, int(missing[0]))}. Are these rows in Debezium's envelope?"
        )
    by_word = np.array([_OPS[word] for word in encoded.dictionary.to_pylist()], np.int8)
    ops: npt.NDArray[np.int8] = by_word[encoded.indices.to_numpy()]
    return ops


def _check_images(
    op: npt.NDArray[np.int8], envelopes: Envelopes, batch: pa.RecordBatch, table: str
) -> None:
    is_delete = op == Op.DELETE
    for name, image, needs in (
        ("after", envelopes.after, ~is_delete),
        ("before", envelopes.before, is_delete),
    ):
        missing = np.flatnonzero(needs & ~_valid(image))
        if missing.size:
            raise InvalidRows(
                f"'{name}' is null in {missing.size} rows of table '{table}' whose op needs it, "
                f"the first is {shown(batch, int(missing[0]))}. A delete is told by its old row: "
                "let the source log it (in Postgres: a primary key, or REPLICA IDENTITY FULL)."
            )


def _rows_of(images: pa.StructArray, rows: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(images.flatten(), schema=rows)


def _valid(column: pa.Array) -> npt.NDArray[np.bool_]:
    valid: npt.NDArray[np.bool_] = column.is_valid().to_numpy(zero_copy_only=False)
    return valid
