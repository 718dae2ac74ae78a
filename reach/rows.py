"""Rows of a table on the wire: one Arrow IPC stream."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from duolog.errors import InvalidRows
from duolog.log.routing.changes import as_batch


def rows_to_bytes(table: str, rows: Any) -> bytes:
    """Rows as people give them (dicts or Arrow), as bytes."""
    batch = as_batch(table, rows)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def rows_from_bytes(table: str, content: Any) -> pa.RecordBatch:
    """The rows that such bytes hold."""
    try:
        with pa.ipc.open_stream(pa.py_buffer(content)) as stream:
            batch = stream.read_next_batch()
            batch.validate(full=True)
    except (pa.ArrowException, StopIteration, TypeError, OSError) as error:
        raise InvalidRows(
            f"The rows for table '{table}' came damaged: {error}. Send them again."
        ) from None
    return batch
