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

    `ours` has the stretch's records; `theirs` whatever lies in Kafka within the stretch. Where
    Kafka's have their log offset as a header, that is judged by itself, and not compared.
    """
    there = theirs.offsets - stretch.kafka_offset
    if len(there) < stretch.count:
        present = np.zeros(stretch.count, dtype=bool)
        present[there] = True
        for absent in np.flatnonzero(~present).tolist():
            yield _difference(Finding.MISSING_IN_KAFKA, stretch, absent, "is not in Kafka")
        ours = ours.take(pa.array(there))
    if stretch.offset_header is not None:
        expected = there + stretch.log_offset
        wrong, columns = _offset_headers(theirs.columns, stretch.offset_header, expected)
        theirs = KafkaRecords(theirs.offsets, columns)
        for at in np.flatnonzero(wrong).tolist():
            said = f"does not end with the header {stretch.offset_header} of its offset in Kafka"
            yield _difference(Finding.OFFSET_HEADER_DIFFERS, stretch, int(there[at]), said)
    for name, finding in _COMPARED:
        left, right = _comparable(ours, name), _comparable(theirs.columns, name)
        if left.equals(right):
            continue
        for at, (mine, other) in enumerate(zip(left.to_pylist(), right.to_pylist(), strict=True)):
            if mine != other:
                said = f"has {name} {_shown(mine)} in the log, and {_shown(other)} in Kafka"
                yield _difference(finding, stretch, int(there[at]), said)


def _offset_headers(columns: Any, name: str, expected: Any) -> tuple[Any, Any]:
    """Which records do not end with this header and their offset; and all, without that one.

    Only what is there and has the name is taken off, so what is not shows as well.
    """
    headers = columns.column("headers")
    counts = pc.fill_null(pc.list_value_length(headers), 0).to_numpy(zero_copy_only=False)
    every = headers.flatten()
    ends = np.cumsum(counts, dtype=np.int64)
    has_one = counts > 0
    last = pa.array(np.where(has_one, ends - 1, 0), mask=~has_one)
    digits = pa.array(expected, pa.int64()).cast(pa.string()).cast(pa.binary())
    named = _true(pc.equal(every.field("name").take(last), name))
    right = named & _true(pc.equal(every.field("value").take(last), digits))
    kept = np.ones(len(every), dtype=bool)
    kept[ends[named] - 1] = False
    starts = np.concatenate(([0], np.cumsum(counts - named, dtype=np.int64))).astype(np.int32)
    own = pa.ListArray.from_arrays(
        pa.array(starts), every.filter(pa.array(kept)), type=headers.type
    )
    at = columns.schema.get_field_index("headers")
    return ~right, columns.set_column(at, columns.schema.field(at), own)


def _true(answers: Any) -> Any:
    """Where it holds; unknown is no."""
    return pc.fill_null(answers, False).to_numpy(zero_copy_only=False)


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
