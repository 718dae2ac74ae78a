"""The topic for rows that cannot be written: what is told of each.

| part of the record   | holds                                                              |
|----------------------|--------------------------------------------------------------------|
| value                | the row as JSON; of a change that was read well: op, before, after |
| key                  | that of a row with `key` and `value`                               |
| table                | the table whose rows are written                                   |
| headers              | below                                                              |

| header `__connect.errors.…` | holds                                                        |
|-----------------------------|--------------------------------------------------------------|
| topic                       | the topic that the row was for, where that is known          |
| table                       | the table that the row is of                                 |
| connector.name              | who writes, as in `queryName` or `txnAppId`                  |
| stage                       | `row`: as it came; `change`: what its feed made of it        |
| exception.class.name        | the error's name                                             |
| exception.message           | the error's message                                          |
| value.bytes                 | how long the value was, where it had to be cut               |

These records are part of the same epoch as the good rows'. Keys and values depend on the rows
alone, so that a repeat is known as one. Runs in Spark tasks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duolog.connector.bad_rows import Bad
from duolog.connector.row_text import cut_to_size, rows_as_json
from duolog.connector.staged_part import StagedPart
from duolog.log.batch import RECORD_SCHEMA
from duolog.log.batch_check import check_sizes
from duolog.log.model import Op, PayloadMode, Topic
from duolog.log.routing.kinds import is_binary, is_string, without_view
from duolog.log.routing.murmur2 import partition_of_keys
from duolog.log.timestamps import check_not_ahead, latest_allowed_ms

HEADER = "__connect.errors."
_MESSAGE_CHARACTERS = 2000
_WRITTEN_AT_ONCE = 1000
_CLOCKS_DIFFER_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """Where bad rows go, and whose they are. Picklable."""

    topic: Topic
    writer: str
    table: str | None
    target: str | None  # the topic for all rows
    max_record_bytes: int
    max_timestamp_ahead_seconds: float = math.inf


@dataclass(slots=True)
class DeadLetterBox:
    """Takes one task's bad rows and puts them into its part."""

    letters: DeadLetters
    part: StagedPart
    ts_ms: int
    turn: int
    rows: int = 0
    first: str = ""  # what was wrong with the first one
    _waiting: list[Bad] = field(default_factory=list)

    def check_fit(self, records: pa.RecordBatch) -> None:
        """Refuse records that the log would refuse, and with them the whole epoch."""
        check_sizes(records, self.letters.max_record_bytes)
        check_not_ahead(
            pc.max(records.column("ts")).as_py() or 0, self.latest_ms, "A row like this"
        )

    @property
    def latest_ms(self) -> int:
        """The latest time that a row may have."""
        # By the time of the plan, so that a repeat judges alike, and with room for two clocks.
        ahead_seconds = self.letters.max_timestamp_ahead_seconds
        room_seconds = min(_CLOCKS_DIFFER_SECONDS, ahead_seconds / 2)
        return latest_allowed_ms(self.ts_ms, ahead_seconds - room_seconds)

    def add(self, bad: Bad, stage: str) -> None:
        """Take rows that were refused for one reason; `stage` says what they are."""
        if not self.first:
            self.first = f"{bad.refusal.code}: {bad.refusal}"
        self.rows += len(bad.rows)
        for at in range(0, len(bad.rows), _WRITTEN_AT_ONCE):
            rows = bad.rows.slice(at, _WRITTEN_AT_ONCE)
            for partition, records in self._records(rows, bad.refusal, stage):
                self.part.add(self.letters.topic, partition, records)

    def _records(
        self, rows: pa.RecordBatch, refusal: Any, stage: str
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        letters, count = self.letters, rows.num_rows
        limit = letters.max_record_bytes // 2
        whole = rows_as_json(rows)
        values = [cut_to_size(text, limit) for text in whole]
        headers = [
            self._headers(rows, at, refusal, stage, None if value is text else len(text))
            for at, (text, value) in enumerate(zip(whole, values, strict=True))
        ]
        keys = _keys(rows, limit)
        columns = {
            "ts": pa.array(np.full(count, self.ts_ms, np.int64)),
            "key": keys,
            "value": pa.array(values, pa.binary()),
            "headers": pa.array(headers, RECORD_SCHEMA.field("headers").type),
            "op": pa.array(np.full(count, int(Op.NONE), np.int8)),
            "table": pa.array([letters.table] * count, pa.string()),
            "payload": pa.array(np.full(count, int(PayloadMode.NONE), np.int8)),
        }
        records = pa.RecordBatch.from_arrays(
            [columns[name] for name in RECORD_SCHEMA.names], schema=RECORD_SCHEMA
        )
        places = partition_of_keys(keys, letters.topic.partitions, turn=self.turn)
        for place in np.unique(places).tolist():
            yield place, records.take(pa.array(np.flatnonzero(places == place)))

    def _headers(
        self, rows: pa.RecordBatch, at: int, refusal: Any, stage: str, cut_from: int | None
    ) -> list[tuple[str, bytes]]:
        letters = self.letters
        topic = letters.target
        if topic is None and letters.table is None and "topic" in rows.schema.names:
            topic = rows.column("topic")[at].as_py()
        told = {
            "topic": topic,
            "table": letters.table,
            "connector.name": letters.writer,
            "stage": stage,
            "exception.class.name": refusal.code,
            "exception.message": str(refusal)[:_MESSAGE_CHARACTERS],
            "value.bytes": None if cut_from is None else str(cut_from),
        }
        return [(HEADER + name, text.encode()) for name, text in told.items() if text is not None]


def _keys(rows: pa.RecordBatch, limit_bytes: int) -> pa.BinaryArray:
    """The keys that rows with `key` and `value` have; none of those that are too long."""
    names = rows.schema.names
    if "value" not in names or names.count("key") != 1:
        return pa.nulls(rows.num_rows, pa.binary())
    kind = without_view(rows.schema.field("key").type)
    if not (is_string(kind) or is_binary(kind)):
        return pa.nulls(rows.num_rows, pa.binary())
    keys = rows.column("key").cast(pa.binary()).to_pylist()
    return pa.array(
        [None if key is None or len(key) > limit_bytes // 2 else key for key in keys], pa.binary()
    )
