"""The same content for both: a filled log, and lines for kafka-producer-perf-test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bench.append import WRITER
from bench.orders import KEY, RECORD_BYTES, TASK_ROWS, VALUE, build_part, orders
from duolog.log import open_log
from duolog.log.model import TopicSettings

PARTITIONS = 4
_PARTS = 4
_PAYLOAD_BYTES = 5_000_000  # far more than a batch, so that no batch has a line twice


def fill_log(folder: Path, topic: str, records: int, record_bytes: int) -> None:
    """A new log with so many records, evenly over the partitions."""
    with open_log(folder / "log") as log:
        made = log.create_topic(topic, TopicSettings(partitions=PARTITIONS))
        parts = [
            build_part(made, list(_batches(records // _PARTS, record_bytes)), folder / "parts")
            for _ in range(_PARTS)
        ]
        log.append(WRITER, 0, parts)


def write_payloads(path: Path, record_bytes: int) -> None:
    """Lines that are as long as a record's key and value together."""
    records = _records(_PAYLOAD_BYTES // record_bytes, record_bytes, 0)
    keys, values = records["key"].to_pylist(), records["value"].to_pylist()
    path.write_bytes(b"".join(b"%s%s\n" % both for both in zip(keys, values, strict=True)))


def _batches(records: int, record_bytes: int) -> Iterator[Any]:
    rows = TASK_ROWS * RECORD_BYTES // record_bytes
    for seed, first in enumerate(range(0, records, rows)):
        yield _records(min(rows, records - first), record_bytes, seed)


def _records(count: int, record_bytes: int, seed: int) -> Any:
    """Orders, whose values are cut anew from the texts of many where they have to be longer."""
    value_bytes = record_bytes - len(KEY)
    made = orders(-(-count * value_bytes // len(VALUE)), seed)
    ends = np.arange(count + 1, dtype=np.int32) * value_bytes
    texts = made["value"].buffers()[2]
    values = pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(ends), texts])
    first = made.slice(0, count)
    return first.set_column(first.schema.get_field_index("value"), "value", values)
