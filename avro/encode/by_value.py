"""Columns of which each value finds its own place in a union: the one thing not done by columns.

Strings that may be symbols of one enum or of another, bytes that may be of one fixed's size or of
another's. There fastavro writes value by value.
"""

from __future__ import annotations

import functools
import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from duolog.avro.encode.buffers import stored_kind
from duolog.avro.encode.node import Unfit
from duolog.avro.encode.pieces import spans_where
from duolog.avro.encode.text import first_not_utf8, plain
from duolog.avro.schema import Enum, Fixed, Schema
from duolog.errors import InvalidRows
from duolog.log.routing.kinds import is_string

if TYPE_CHECKING:
    from duolog.avro.encode.pieces import Piece, Presence


def depends_on_value(kind: pa.DataType, schema: Schema) -> bool:
    """Whether only some values of the type can be written so."""
    plain_kind = stored_kind(kind.value_type if pa.types.is_dictionary(kind) else kind)
    if isinstance(schema, Enum):
        return is_string(plain_kind)
    return isinstance(schema, Fixed) and plain_kind in (pa.binary(), pa.large_binary())


@dataclass(frozen=True, slots=True)
class ByValue:
    """A union, null too, row by row."""

    path: str
    union: str  # JSON
    weight: int = 2

    def pieces(self, values: pa.Array, present: Presence | None) -> list[Piece]:
        write, schema = _writer(self.union, self.path)
        values = plain(
            values.dictionary_decode() if pa.types.is_dictionary(values.type) else values
        )
        if is_string(values.type):
            row = first_not_utf8(values, present)
            if row is not None:
                raise Unfit(row, self.path, "the bytes are not UTF-8, as a string must be.")
        stream = io.BytesIO()
        ends = np.zeros(len(values) + 1, np.int64)
        rows = range(len(values)) if present is None else np.flatnonzero(present.flags).tolist()
        for row in rows:
            value = values[row].as_py()
            try:
                write(stream, schema, value)
            except ValueError:
                raise Unfit(row, self.path, f"{value!r} fits no type of the union.") from None
            ends[row + 1] = stream.tell()
        np.maximum.accumulate(ends, out=ends)
        content = np.frombuffer(stream.getvalue(), np.uint8)
        sizes = np.diff(ends)
        return [spans_where(None, content, ends[:-1], sizes, int(sizes.max()))]


@functools.lru_cache(maxsize=64)
def _writer(union: str, path: str) -> tuple[Any, Any]:
    try:
        import fastavro
    except ImportError:
        raise InvalidRows(
            f"Column '{path}' is written value by value, which needs fastavro. Install it with "
            "`pip install duolog[avro]`, or cast the column to a type that the union has."
        ) from None
    return fastavro.schemaless_writer, fastavro.parse_schema(json.loads(union))
