"""Records to measure with: 100 bytes each, text that compresses about as real change events do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from duolog.log.batch import RECORD_SCHEMA
from duolog.log.model import Topic
from duolog.log.part import Part, PartBuilder

KEY = b"000000000000"
VALUE = b'{"id":"00000000000000","customer":"00000000","sku":"000000","qty":"00","price":"000.00"}'
RECORD_BYTES = len(KEY) + len(VALUE)
TASK_ROWS = 65_536  # what Spark hands to a task at a time, tuned for Arrow

_FIRST_TS_MS = 1_700_000_000_000


def orders(count: int, seed: int = 0) -> Any:
    """A record batch of `count` records."""
    digits = np.random.default_rng(seed)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(np.arange(_FIRST_TS_MS, _FIRST_TS_MS + count)),
            _texts(KEY, count, digits),
            _texts(VALUE, count, digits),
            pa.nulls(count, RECORD_SCHEMA.field("headers").type),
            pa.array(np.zeros(count, np.int8)),
            pa.nulls(count, pa.string()),
            pa.array(np.zeros(count, np.int8)),
        ],
        schema=RECORD_SCHEMA,
    )


def _texts(template: bytes, count: int, digits: np.random.Generator) -> Any:
    """The template `count` times, with other digits for its zeros."""
    pattern = np.frombuffer(template, np.uint8)
    places = np.flatnonzero(pattern == ord("0"))
    texts = np.tile(pattern, (count, 1))
    texts[:, places] = digits.integers(ord("0"), ord("9") + 1, (count, len(places)), np.uint8)
    ends = np.arange(count + 1, dtype=np.int32) * len(template)
    return pa.Array.from_buffers(
        pa.binary(), count, [None, pa.py_buffer(ends), pa.py_buffer(texts)]
    )


def batches_of(records: int) -> Iterator[Any]:
    """Record batches as they come to tasks, all different."""
    for seed, first in enumerate(range(0, records, TASK_ROWS)):
        yield orders(min(TASK_ROWS, records - first), seed)


def build_part(topic: Topic, batches: Sequence[Any], folder: Path | None = None) -> Part:
    """One part of these records, spread evenly over the topic's partitions."""
    builder = PartBuilder(folder)
    for records in batches:
        share = -(-records.num_rows // topic.partitions)
        for partition in range(topic.partitions):
            builder.add(topic, partition, records.slice(partition * share, share))
    return builder.finish()


def stage(topic: Topic, records: int, folder: Path, parts: int = 4) -> list[Part]:
    """An epoch of `records` records as staged files, as from so many tasks."""
    return [build_part(topic, list(batches_of(records // parts)), folder) for _ in range(parts)]
