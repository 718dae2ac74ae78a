"""Which records of a stretch differ? Pure, by whole columns where all is well."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duolog.bridge.kafka.audit.report import Difference, Finding
from duolog.bridge.kafka.audit.stretches import Stretch
from duolog.log.batch import RECORD_SCHEMA

_COMPARED: Final = (
    ("ts", Finding.TIME_DIFFERS),
    ("key", Finding.KEY_DIFFERS),
    ("value", Finding.VALUE_DIFFERS),
    ("headers", Finding.HEADERS_DIFFER),
)
KAFKA_SCHEMA: Final = pa.schema([RECORD_SCHEMA.field(name) for name, _ in _COMPARED])
_SHOWN_BYTES = 24


@dataclass(frozen=True, slots=True)
class KafkaRecords:
    """Records as Kafka gave them: offsets that grow, and their columns."""

    offsets: Any  # numpy, int64
    columns: Any  # pa.RecordBatch of KAFKA_SCHEMA

    @classmethod
    def of(
        cls,
        offsets: Sequence[int],
        ts: Sequence[int],
        keys: Sequence[bytes | None],
        values: Sequence[bytes | None],
        headers: Sequence[Sequence[tuple[str, bytes | None]] | None],
    ) -> KafkaRecords:
        """From lists of the same length."""
        shown = [
            [{"name": name, "value": value} for name, value in these] if these else None
            for these in headers
        ]
        columns = pa.RecordBatch.from_arrays(
            [
                pa.array(ts, pa.int64()),
                pa.array(keys, pa.binary()),
                pa.array(values, pa.binary()),
                pa.array(shown, KAFKA_SCHEMA.field("headers").type)
                if any(these is not None for these in shown)
                else pa.nulls(len(shown), KAFKA_SCHEMA.field("headers").type),
            ],
            schema=KAFKA_SCHEMA,
        )
        return cls(np.asarray(offsets, dtype=np.int64), columns)

    def __len__(self) -> int:
        return len(self.offsets)


def differences(stretch: Stretch, ours: Any, theirs: KafkaRecords) -> Iterator[Difference]:
    """How the log's records (a pa.RecordBatch of RECORD_SCHEMA) differ from what Kafka gave.

    `ours` has the stretch's records; `theirs` whatever lies in Kafka within the stretch.
    """
    there = theirs.offsets - stretch.kafka_offset
    if len(there) < stretch.count:
        present = np.zeros(stretch.count, dtype=bool)
        present[there] = True
        for absent in np.flatnonzero(~present).tolist():
            yield _difference(Finding.MISSING_IN_KAFKA, stretch, absent, "is not in Kafka")
        ours = ours.take(pa.array(there))
    for name, finding in _COMPARED:
        left, right = _comparable(ours, name), _comparable(theirs.columns, name)
        if left.equals(right):
            continue
        for at, (mine, other) in enumerate(zip(left.to_pylist(), right.to_pylist(), strict=True)):
            if mine != other:
                said = f"has {name} {_shown(mine)} in the log, and {_shown(other)} in Kafka"
                yield _difference(finding, stretch, int(there[at]), said)


def _comparable(records: Any, name: str) -> Any:
    """A column in which no headers and an empty list of them are one thing, as in Kafka."""
    column = records.column(name)
    if name != "headers" or column.null_count == len(column):
        return column
    return pc.if_else(
        pc.equal(pc.list_value_length(column), 0), pa.scalar(None, column.type), column
    )


def _difference(finding: Finding, stretch: Stretch, at: int, said: str) -> Difference:
    log_offset, kafka_offset = stretch.log_offset + at, stretch.kafka_offset + at
    return Difference(
        finding, f"Offset {log_offset} (Kafka's {kafka_offset}) {said}.", log_offset, kafka_offset
    )


def _shown(value: Any) -> str:
    text = repr(value)
    if isinstance(value, bytes) and len(value) > _SHOWN_BYTES:
        return f"{value[:_SHOWN_BYTES]!r}... ({len(value)} B)"
    return text if len(text) <= 4 * _SHOWN_BYTES else text[: 4 * _SHOWN_BYTES] + "..."
