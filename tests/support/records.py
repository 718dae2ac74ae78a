"""Makes records and parts for tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from duolog.log.batch import RECORD_SCHEMA
from duolog.log.model import Mode, Op, Topic, Writer
from duolog.log.part import Part, PartBuilder
from duolog.log.staging import StagingPlace

STREAM = Writer(Mode.STREAM, "query", "orders")
BATCH = Writer(Mode.BATCH, "job", "orders")


def record_batch(
    values: Sequence[bytes | None],
    *,
    keys: Sequence[bytes | None] | None = None,
    ts_ms: int | Sequence[int] = 1_700_000_000_000,
    op: Op = Op.NONE,
    table: str | None = None,
) -> Any:
    """Records as a task hands them to a PartBuilder."""
    count = len(values)
    times = [ts_ms] * count if isinstance(ts_ms, int) else list(ts_ms)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(times, pa.int64()),
            pa.array(keys if keys is not None else [None] * count, pa.binary()),
            pa.array(values, pa.binary()),
            pa.nulls(count, RECORD_SCHEMA.field("headers").type),
            pa.array([int(op)] * count, pa.int8()),
            pa.array([table] * count, pa.string()),
            pa.array([0] * count, pa.int8()),
        ],
        schema=RECORD_SCHEMA,
    )


def part_of(
    topic: Topic,
    by_partition: dict[int, Sequence[bytes | None]],
    *,
    folder: StagingPlace | Path | None = None,
    target_bytes: int = 1 << 16,
    **fields: Any,
) -> Part:
    """A part with these values."""
    builder = PartBuilder(folder, target_bytes=target_bytes)
    for partition, values in by_partition.items():
        builder.add(topic, partition, record_batch(values, **fields))
    return builder.finish()
