"""The columns that Spark gets: those of its Kafka source, and two of ours. Runs in Spark tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duolog.log.model import Op

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duolog.connector.source.choice import Place
    from duolog.log.fetched import FetchedBatch

CREATE_TIME: Final = 0
"""What Kafka's timestampType is for a time that the writer gave."""

_HEADERS: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_HEADERS_SQL: Final = "ARRAY<STRUCT<key: STRING, value: BINARY>>"
_TIMESTAMP: Final = pa.timestamp("us", "UTC")
_OP_WORDS: Final = pa.array([op.word for op in Op], pa.string())


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns there are."""

    headers: bool = False
    change: bool = False

    def ddl(self, value: str = "BINARY") -> str:
        """The columns as SQL writes them; `value` is the type of that column."""
        return ", ".join(f"`{name}` {kind}" for name, kind in self._kinds(value))

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self._kinds("")]

    def _kinds(self, value: str) -> Iterator[tuple[str, str]]:
        yield "key", "BINARY"
        yield "value", value
        yield "topic", "STRING"
        yield "partition", "INT"
        yield "offset", "BIGINT"
        yield "timestamp", "TIMESTAMP"
        yield "timestampType", "INT"
        if self.headers:
            yield "headers", _HEADERS_SQL
        if self.change:
            yield "op", "STRING"
            yield "table", "STRING"

    def rows(
        self, place: Place, batch: FetchedBatch, value: pa.Array | None = None
    ) -> pa.RecordBatch:
        """The records of one partition as rows; `value` in place of the bytes."""
        records = batch.records
        count = records.num_rows
        found = {
            "key": records.column("key"),
            "value": records.column("value") if value is None else value,
            "topic": _repeated_text(place.topic, count),
            "partition": pa.array(np.full(count, place.partition, np.int32)),
            "offset": pa.array(np.arange(batch.base_offset, batch.next_offset, dtype=np.int64)),
            "timestamp": pc.multiply(records.column("ts"), 1000).cast(_TIMESTAMP),
            "timestampType": pa.array(np.full(count, CREATE_TIME, np.int32)),
        }
        if self.headers:
            found["headers"] = _headers(records.column("headers"))
        if self.change:
            found["op"] = _OP_WORDS.take(records.column("op"))
            found["table"] = records.column("table")
        return pa.RecordBatch.from_arrays(list(found.values()), names=list(found))


def _repeated_text(text: str, count: int) -> pa.StringArray:
    content = text.encode()
    ends = np.arange(count + 1, dtype=np.int32) * np.int32(len(content))
    return pa.StringArray.from_buffers(count, pa.py_buffer(ends), pa.py_buffer(content * count))


def _headers(column: pa.ListArray) -> pa.ListArray:
    """Named as Spark names them; null where a record has none."""
    count = len(column)
    if column.null_count == count:
        return pa.nulls(count, _HEADERS)
    lists = pa.concat_arrays([column]) if column.offset else column
    pairs = lists.values
    return pa.ListArray.from_arrays(
        lists.offsets,
        pa.StructArray.from_arrays(
            [pairs.field(0), pairs.field(1)], fields=list(_HEADERS.value_type)
        ),
        type=_HEADERS,
        mask=lists.is_null() if lists.null_count else None,
    )
