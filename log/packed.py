"""The body of a small batch: the columns' buffers, one behind the other.

Making an Arrow record batch of a few records costs about 100 us and lets go of Python's lock many
times; publishers that share one sync feel both. This body is made by a few joins (10 us) and is
read without copying: the buffers are Arrow's own.

    ts i64 * n | key ends u32 * n | value ends u32 * n | op u8 * n | payload u8 * n |
    nulls u8 * n (bit 0 key, bit 1 value, bit 2 headers, bit 3 table) |
    keys | values | rest (JSON of headers and tables; empty when no record has any)

Little endian, since that is what Arrow's buffers are.
"""

from __future__ import annotations

import json
import struct
from base64 import b64decode, b64encode
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa

from duolog.log.arrow_metadata import WrongBatch
from duolog.log.model import Record

_NO_KEY, _NO_VALUE, _NO_HEADERS, _NO_TABLE = 1, 2, 4, 8
_PLAIN = _NO_HEADERS | _NO_TABLE
_ALL_FLAGS = _NO_KEY | _NO_VALUE | _PLAIN
_BYTES_PER_RECORD = 8 + 4 + 4 + 1 + 1 + 1
_MOST_BYTES = 2**31 - 1  # Arrow's offsets have 31 bits
_TEXT_OR_NONE = (str, type(None))


def pack(records: Sequence[Record], now_ms: int) -> tuple[bytes, list[int]]:
    """The body of these records, and their timestamps."""
    count = len(records)
    keys = [record.key or b"" for record in records]
    values = [record.value or b"" for record in records]
    times = [now_ms if record.ts_ms is None else record.ts_ms for record in records]
    nulls = bytes(
        (record.key is None) * _NO_KEY
        + (record.value is None) * _NO_VALUE
        + (not record.headers) * _NO_HEADERS
        + (record.table is None) * _NO_TABLE
        for record in records
    )
    rest = b"" if all(flags & _PLAIN == _PLAIN for flags in nulls) else _pack_rest(records)
    body = b"".join(
        (
            struct.pack(f"<{count}q", *times),
            struct.pack(f"<{count}I", *accumulate(map(len, keys))),
            struct.pack(f"<{count}I", *accumulate(map(len, values))),
            bytes(record.op for record in records),
            bytes(record.payload for record in records),
            nulls,
            *keys,
            *values,
            rest,
        )
    )
    return body, times


def _pack_rest(records: Sequence[Record]) -> bytes:
    return json.dumps(
        [
            [
                record.table,
                [
                    [name, None if value is None else b64encode(value).decode()]
                    for name, value in record.headers
                ],
            ]
            for record in records
        ],
        separators=(",", ":"),
    ).encode()


def unpack(body: memoryview, count: int, schema: Any) -> Any:
    """The record batch that `pack` was given. WrongBatch when the body cannot be of `pack`."""
    if len(body) < _BYTES_PER_RECORD * count or len(body) > _MOST_BYTES:
        raise WrongBatch(f"{count} records do not go into a body of {len(body)} bytes")
    buffer = pa.py_buffer(body)
    times = buffer.slice(0, 8 * count)
    at = 8 * count
    key_ends = np.frombuffer(body, "<u4", count, at)
    at += 4 * count
    value_ends = np.frombuffer(body, "<u4", count, at)
    at += 4 * count
    op = buffer.slice(at, count)
    at += count
    payload = buffer.slice(at, count)
    at += count
    nulls = np.frombuffer(body, np.uint8, count, at)
    at += count
    key_bytes = _checked_end(key_ends, len(body) - at)
    value_bytes = _checked_end(value_ends, len(body) - at - key_bytes)
    if nulls.max() > _ALL_FLAGS:
        raise WrongBatch("one of its records has flags that are not known")
    key = _binary(key_ends, buffer.slice(at, key_bytes), nulls & _NO_KEY)
    at += key_bytes
    value = _binary(value_ends, buffer.slice(at, value_bytes), nulls & _NO_VALUE)
    at += value_bytes
    headers, table = _unpack_rest(body[at:], nulls, schema)
    return pa.RecordBatch.from_arrays(
        [
            pa.Array.from_buffers(pa.int64(), count, [None, times]),
            key,
            value,
            headers,
            pa.Array.from_buffers(pa.int8(), count, [None, op]),
            table,
            pa.Array.from_buffers(pa.int8(), count, [None, payload]),
        ],
        schema=schema,
    )


def _checked_end(ends: np.ndarray[Any, Any], room: int) -> int:
    """Where the last of some contents ends, which lie one behind the other in this room."""
    last = int(ends[-1])
    if last > room or (ends[1:] < ends[:-1]).any():
        raise WrongBatch("the lengths of its keys or values do not fit its body")
    return last


def _binary(ends: np.ndarray[Any, Any], content: Any, null_flags: np.ndarray[Any, Any]) -> Any:
    offsets = np.zeros(len(ends) + 1, "<i4")
    offsets[1:] = ends
    validity = np.packbits(null_flags == 0, bitorder="little") if null_flags.any() else None
    return pa.Array.from_buffers(
        pa.binary(),
        len(ends),
        [None if validity is None else pa.py_buffer(validity), pa.py_buffer(offsets), content],
    )


def _unpack_rest(rest: memoryview, nulls: np.ndarray[Any, Any], schema: Any) -> tuple[Any, Any]:
    header_type, table_type = schema.field("headers").type, schema.field("table").type
    if not rest:
        if (nulls & _PLAIN != _PLAIN).any():
            raise WrongBatch("its headers or tables are missing")
        return pa.nulls(len(nulls), header_type), pa.nulls(len(nulls), table_type)
    try:
        rows = _rows_of(json.loads(str(rest, "utf-8")), nulls)
        return (
            pa.array([headers for _, headers in rows], header_type),
            pa.array([table for table, _ in rows], table_type),
        )
    except pa.ArrowMemoryError:  # of this machine: the batch may be right
        raise
    except (ValueError, TypeError, RecursionError, pa.ArrowException):
        # Not `from`: its text may be that of a record.
        raise WrongBatch("its headers or tables are not readable") from None


def _rows_of(
    parsed: Any, nulls: np.ndarray[Any, Any]
) -> list[tuple[str | None, list[dict[str, Any]] | None]]:
    """Table and headers of each record; ValueError for what `_pack_rest` does not make."""
    if type(parsed) is not list:
        raise ValueError
    rows = []
    for (table, pairs), flags in zip(parsed, nulls.tolist(), strict=True):
        if (table is None) != bool(flags & _NO_TABLE) or type(table) not in _TEXT_OR_NONE:
            raise ValueError
        if type(pairs) is not list or (not pairs) != bool(flags & _NO_HEADERS):
            raise ValueError
        rows.append((table, [_header(*pair) for pair in pairs] or None))
    return rows


def _header(name: Any, value: Any) -> dict[str, Any]:
    if type(name) is not str or type(value) not in _TEXT_OR_NONE:
        raise ValueError
    return {"name": name, "value": None if value is None else b64decode(value, validate=True)}
