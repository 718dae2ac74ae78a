"""What a read returns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from duolog.errors import DamagedLog
from duolog.log.batch import RECORD_SCHEMA, decode
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

    @property
    def nbytes(self) -> int:
        """What its columns take."""
        return int(self.records.nbytes)


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
    def nbytes(self) -> int:
        return sum(batch.nbytes for batch in self.batches)

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


@dataclass(frozen=True, slots=True)
class EncodedBatch:
    """One batch as it is stored, and the offsets of its records."""

    base_offset: int
    count: int
    encoded: bytes

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.count

    def decode(self) -> FetchedBatch:
        """Its records; DamagedLog when they are not what was stored."""
        records = decode(self.encoded)
        if records.num_rows != self.count:
            raise DamagedLog(
                f"A batch of {self.count} records at offset {self.base_offset} holds "
                f"{records.num_rows}. Restore the log from a backup."
            )
        return FetchedBatch(self.base_offset, records)


@dataclass(frozen=True, slots=True)
class FetchedEncoded:
    """Whole batches of one partition. Picklable: they can be decoded elsewhere."""

    topic: str
    topic_id: int
    partition: int
    offset: int  # where the read was to begin
    earliest: int
    latest: int
    batches: tuple[EncodedBatch, ...] = ()

    @property
    def next_offset(self) -> int:
        """Where to read on, also when there were no batches."""
        return self.batches[-1].next_offset if self.batches else self.offset

    def decode(self, *, upto: int | None = None) -> Iterator[FetchedBatch]:
        """The records from the offset on, up to but not including `upto`."""
        for batch in self.batches:
            end = batch.next_offset if upto is None else min(upto, batch.next_offset)
            start = max(self.offset, batch.base_offset)
            if start >= end:
                continue
            records = batch.decode().records
            if end - start < batch.count:
                records = records.slice(start - batch.base_offset, end - start)
            yield FetchedBatch(start, records)
