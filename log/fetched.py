"""What a read returns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from duolog.log.batch import RECORD_SCHEMA
from duolog.log.model import Op, PayloadMode

FETCHED_SCHEMA = pa.schema([pa.field("offset", pa.int64(), nullable=False), *RECORD_SCHEMA])


@dataclass(frozen=True, slots=True)
class ReadRecord:
    """One record with its place."""

    offset: int
    ts_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    op: Op
    table: str | None
    payload: PayloadMode


@dataclass(frozen=True, slots=True)
class FetchedBatch:
    """Records whose offsets follow one another from `base_offset` on."""

    base_offset: int
    records: Any  # pa.RecordBatch of RECORD_SCHEMA

    @property
    def next_offset(self) -> int:
        return self.base_offset + int(self.records.num_rows)


@dataclass(frozen=True, slots=True)
class Fetched:
    """Records of one partition. `next_offset` is where to read on, also when there were none."""

    topic: str
    partition: int
    next_offset: int
    earliest: int
    latest: int
    batches: tuple[FetchedBatch, ...] = ()

    @property
    def count(self) -> int:
        return sum(batch.records.num_rows for batch in self.batches)

    @property
    def has_more(self) -> bool:
        return self.next_offset < self.latest

    def table(self) -> Any:
        """All of it as one Arrow table, with the offsets as first column."""
        return pa.Table.from_batches(
            [
                pa.RecordBatch.from_arrays(
                    [
                        pa.array(np.arange(batch.base_offset, batch.next_offset, dtype=np.int64)),
                        *batch.records.columns,
                    ],
                    schema=FETCHED_SCHEMA,
                )
                for batch in self.batches
            ],
            schema=FETCHED_SCHEMA,
        )

    def __iter__(self) -> Iterator[ReadRecord]:
        for batch in self.batches:
            for offset, row in enumerate(batch.records.to_pylist(), batch.base_offset):
                yield ReadRecord(
                    offset,
                    row["ts"],
                    row["key"],
                    row["value"],
                    tuple((header["name"], header["value"]) for header in row["headers"] or ()),
                    Op(row["op"]),
                    row["table"],
                    PayloadMode(row["payload"]),
                )
