"""Records to measure with: 100 bytes each, all different, so that they do not pack to nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from duolog.log import EmbeddedLog

RECORD_BYTES: Final = 100
TOPIC: Final = "bench"
_KEY_BYTES: Final = 12
_AT_ONCE: Final = 50_000
_FIRST_TS_MS: Final = 1_700_000_000_000


def batches(count: int) -> Iterator[Any]:
    """So many records, in record batches as tasks bring them."""
    for first in range(0, count, _AT_ONCE):
        yield _batch(first, min(_AT_ONCE, count - first))


def _batch(first: int, count: int) -> Any:
    import numpy as np
    import pyarrow as pa

    from duolog.log.batch import RECORD_SCHEMA

    values = RECORD_BYTES - _KEY_BYTES
    digits = np.random.default_rng(first).integers(48, 58, (count, values), np.uint8)
    digits[:, values // 2 :] = ord("v")  # half of it is the same, as in life
    ends = np.arange(count + 1, dtype=np.int32) * values
    columns = {
        "ts": pa.array(np.arange(first, first + count) + _FIRST_TS_MS),
        "key": pa.array([b"%012d" % number for number in range(first, first + count)]),
        "value": pa.Array.from_buffers(
            pa.binary(), count, [None, pa.py_buffer(ends), pa.py_buffer(digits)]
        ),
        "headers": pa.nulls(count, RECORD_SCHEMA.field("headers").type),
        "op": pa.array(np.zeros(count, np.int8)),
        "table": pa.nulls(count, pa.string()),
        "payload": pa.array(np.zeros(count, np.int8)),
    }
    return pa.RecordBatch.from_arrays(
        [columns[name] for name in RECORD_SCHEMA.names], schema=RECORD_SCHEMA
    )


def append(log: EmbeddedLog, count: int, folder: Path, *, epoch: int = 0) -> int:
    """Append so many as an epoch of staged parts, as Spark does; how many bytes they are packed."""
    from duolog.log.model import Mode, Writer
    from duolog.log.part import PartBuilder

    builder = PartBuilder(folder)
    topic = log.topic(TOPIC)
    for records in batches(count):
        builder.add(topic, 0, records)
    part = builder.finish()
    log.append(Writer(Mode.BATCH, "bench", TOPIC), epoch, [part])
    return part.length
