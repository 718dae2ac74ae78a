"""What a read returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from duolog.errors import DamagedBatch, DamagedLog
from duolog.log.batch import RECORD_SCHEMA, decode
from duolog.log.damage_model import LeftOut, reason_of
from duolog.log.hole import decode_hole, is_hole
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
    """Records of one partition. `next_offset` is where to read on, also when there were none.

    Batches need not join: `left_out` says which offsets were passed over, and why.
    """

    topic: str
    partition: int
    next_offset: int
    earliest: int
    latest: int
    batches: tuple[FetchedBatch, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

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
    """One batch as it is stored, and the offsets of its records; or a hole, which has none."""

    base_offset: int
    count: int
    encoded: bytes
    is_checked: bool = field(default=False, compare=False)
    """Whether the log's owner has checked it whole, so that it may be passed on undecoded."""

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.count

    @property
    def is_hole(self) -> bool:
        """Whether these offsets have no records: they were skipped."""
        return is_hole(self.encoded)

    def left_out(self, offset: int, next_offset: int) -> LeftOut:
        """What a read of these offsets of a hole passes over."""
        _, note = decode_hole(self.encoded)
        return LeftOut(offset, next_offset, note.is_damaged, note.reason)

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

    def decode(
        self,
        *,
        upto: int | None = None,
        skip_damaged: bool = False,
        passed_over: Callable[[LeftOut], object] = lambda _: None,
    ) -> Iterator[FetchedBatch]:
        """The records from the offset on, up to but not including `upto`.

        DamagedBatch where they cannot be decoded, unless that is to be skipped. `passed_over` is
        called with what has no records.
        """
        for batch in self.batches:
            end = batch.next_offset if upto is None else min(upto, batch.next_offset)
            start = max(self.offset, batch.base_offset)
            if start >= end:
                continue
            if batch.is_hole:
                passed_over(batch.left_out(start, end))
                continue
            try:
                records = batch.decode().records
            except DamagedLog as error:
                if not skip_damaged:
                    raise self._damaged(batch, error) from error
                passed_over(LeftOut(start, end, True, reason_of(error)))
                continue
            if end - start < batch.count:
                records = records.slice(start - batch.base_offset, end - start)
            yield FetchedBatch(start, records)

    def _damaged(self, batch: EncodedBatch, error: BaseException) -> DamagedBatch:
        return DamagedBatch(
            topic=self.topic,
            partition=self.partition,
            first_offset=batch.base_offset,
            next_offset=batch.next_offset,
            reason=reason_of(error),
        )
