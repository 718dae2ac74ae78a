"""Rows of a table on the wire: one Arrow IPC stream for each image."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from duolog.errors import InvalidRows
from duolog.log.routing.given_rows import GivenRows

_BEFORE = "before"  # one column of whole rows, null where the row before is not known


def rows_to_bytes(batch: pa.RecordBatch) -> bytes:
    """Rows as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def rows_before_to_bytes(given: GivenRows) -> bytes | None:
    """The rows before, if any are given, as bytes."""
    before = given.before_as_structs()
    return None if before is None else rows_to_bytes(pa.record_batch([before], names=[_BEFORE]))


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


def rows_before_from_bytes(table: str, content: Any) -> pa.StructArray | None:
    """The rows before that such bytes hold."""
    if content is None:
        return None
    batch = rows_from_bytes(table, content)
    if batch.schema.names != [_BEFORE] or not pa.types.is_struct(batch.schema.field(0).type):
        raise InvalidRows(
            f"The rows before those of table '{table}' came as {batch.schema}. Use the same Duolog "
            "on both sides."
        )
    return batch.column(0)
