"""An answer of SQL as it is sent: JSON, or an Arrow stream; within limits of rows and bytes.

{"columns": ["item", "n"], "types": ["string", "int64"], "rows": [["tea", 2], ["jam", 1]]}
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from duolog.errors import AnswerTooLarge
from duolog.sql.cells import cell, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duolog.sql.result import SqlResult

_compact: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
_ROWS_AT_ONCE: Final = 1000


class AnswerLimits:
    """How much one answer may have; told of what is added to it."""

    def __init__(self, max_rows: int | None = None, max_bytes: int | None = None) -> None:
        self._max_rows, self._max_bytes = max_rows, max_bytes
        self.rows = self._bytes = 0

    def add(self, *, rows: int = 0, size: int = 0) -> None:
        """Raises AnswerTooLarge."""
        self.rows += rows
        self._bytes += size
        if self._max_rows is not None and self.rows > self._max_rows:
            raise AnswerTooLarge(
                f"The answer has more than the {self._max_rows:,} rows that are sent at once. Add "
                "a LIMIT, group them, or read the topic by CONSUME."
            )
        if self._max_bytes is not None and self._bytes > self._max_bytes:
            raise AnswerTooLarge(
                f"The answer has more than the {self._max_bytes:,} bytes that are sent at once. "
                "Add a LIMIT, or select fewer columns."
            )


def as_json(result: SqlResult, limits: AnswerLimits) -> bytes:
    """One JSON object."""
    columns, types = (
        _compact(result.columns),
        _compact([str(_known(each)) for each in result.schema.types]),
    )
    head = f'{{"columns":{columns},"types":{types},"rows":['
    limits.add(size=len(head))
    pieces = [head]
    between = ""
    for batch in _small(result):
        limits.add(rows=batch.num_rows)
        for row in rows_of(batch):
            text = f"{between}{_compact([cell(value) for value in row])}"
            limits.add(size=len(text))
            pieces.append(text)
            between = ","
    return f"{''.join(pieces)}]}}".encode()


def as_arrow(result: SqlResult, limits: AnswerLimits) -> bytes:
    """One Arrow stream, of types that every reader of Arrow knows."""
    schema = pa.schema([field.with_type(_known(field.type)) for field in result.schema])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as stream:
        for batch in _small(result):
            limits.add(rows=batch.num_rows, size=batch.nbytes)
            stream.write_batch(batch if batch.schema == schema else _cast(batch, schema))
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _small(result: SqlResult) -> Iterator[pa.RecordBatch]:
    """Batches that do not go far beyond a limit by themselves."""
    for batch in result.batches():
        for at in range(0, batch.num_rows, _ROWS_AT_ONCE):
            yield batch.slice(at, _ROWS_AT_ONCE)


def _known(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_binary_view(kind):
        return pa.binary()
    return kind


def _cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
