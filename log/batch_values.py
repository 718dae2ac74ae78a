"""What the values of a batch's records have to be, whoever encoded them.

Arrow itself has checked offsets, bitmaps and texts by now; here is what it does not know of: the
times that the header names, the numbers that stand for words, and headers that are there.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow.compute as pc

from duolog.log.arrow_metadata import WrongBatch
from duolog.log.model import Op, PayloadMode

_MOST: Final = (("op", int(max(Op))), ("payload", int(max(PayloadMode))))
_SHORT_BYTES: Final = 256
_LATEST_MS: Final = 2**63 - 1


def check_values(records: Any, count: int, first_ts_ms: int, max_ts_ms: int) -> None:
    """WrongBatch when a value is none that a record has, or not what the header says."""
    if records.num_rows != count:
        raise WrongBatch(f"its header names {count} records, it has {records.num_rows}")
    # Unsigned, what is below 0 is above all that is allowed: one look for both.
    times = _numbers(records, "ts", np.uint64)
    latest = int(times.max())
    if latest > _LATEST_MS:
        raise WrongBatch("one of its records has a time before 1970")
    if (int(times[0]), latest) != (first_ts_ms, max_ts_ms):
        raise WrongBatch("its header names other times than its records have")
    for name, most in _MOST:
        if int(_numbers(records, name, np.uint8).max()) > most:
            raise WrongBatch(f"one of its records has no known {name}")
    headers = records.column("headers")
    items = headers.values
    if len(items) and (items.null_count or items.field(0).null_count):
        # What lies below a null list is nobody's header.
        found = headers.flatten()
        if found.null_count or found.field(0).null_count:
            raise WrongBatch("one of its headers has no name")


def record_sizes(records: Any) -> Any:
    """How many bytes of key, value, table and headers each record has, as numpy's i64."""
    sizes = sum(_lengths(records.column(name)) for name in ("key", "value", "table"))
    headers = records.column("headers")
    if headers.null_count == len(headers):
        return sizes
    items = headers.values
    ends = np.zeros(len(items) + 1, np.int64)
    np.cumsum(_lengths(items.field(0)) + _lengths(items.field(1)), out=ends[1:])
    offsets = headers.offsets.to_numpy(zero_copy_only=False)
    return sizes + np.where(_is_there(headers), ends[offsets[1:]] - ends[offsets[:-1]], 0)


def header_counts(records: Any) -> Any:
    """How many headers each record has."""
    headers = records.column("headers")
    counts = np.diff(headers.offsets.to_numpy(zero_copy_only=False))
    return np.where(_is_there(headers), counts, 0)


def longest_name(names: Any) -> int:
    """How many characters the longest has."""
    most_bytes = int(_lengths(names).max())
    # Counting is dear, and there are never more characters than bytes.
    return most_bytes if most_bytes <= _SHORT_BYTES else pc.max(pc.utf8_length(names)).as_py() or 0


def _is_there(column: Any) -> Any:
    return column.is_valid().to_numpy(zero_copy_only=False)


def _numbers(records: Any, name: str, kind: Any) -> Any:
    column = records.column(name)
    return np.frombuffer(column.buffers()[1], kind, len(column), column.offset * kind().itemsize)


def _lengths(column: Any) -> Any:
    """The length of each text or value; those that are null have none."""
    if column.null_count == len(column):
        return np.zeros(len(column), np.int64)
    data = column.buffers()[1]
    offsets = np.frombuffer(data, np.int32, len(column) + 1, column.offset * 4)
    lengths = np.diff(offsets).astype(np.int64)
    if column.null_count:
        lengths[~_is_there(column)] = 0
    return lengths
