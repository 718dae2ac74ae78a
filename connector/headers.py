"""Kafka headers, as Spark has them and as records have them. Runs in Spark tasks."""

from __future__ import annotations

import pyarrow as pa

from duolog.errors import InvalidRows
from duolog.log.batch import RECORD_SCHEMA
from duolog.log.routing.kinds import is_binary, is_string, without_view

_TYPE = RECORD_SCHEMA.field("headers").type


def is_headers(kind: pa.DataType) -> bool:
    """Whether this is Spark's array<struct<key string, value binary>>."""
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return False
    pair = kind.value_type
    return (
        pa.types.is_struct(pair)
        and [field.name for field in pair] == ["key", "value"]
        and is_string(without_view(pair[0].type))
        and is_binary(without_view(pair[1].type))
    )


def record_headers(column: pa.Array | None, rows: int) -> pa.ListArray:
    """The headers of records; null where a row has none."""
    if column is None or column.null_count == rows:
        return pa.nulls(rows, _TYPE)
    lists = pa.concat_arrays([column]) if column.offset else column
    pairs = lists.values
    names = pairs.field(0).cast(pa.string())
    if lists.flatten().null_count or lists.flatten().field(0).null_count:
        raise InvalidRows(
            "Column 'headers' has a header that is null or whose key is null. Each header needs a "
            "key; its value may be null."
        )
    return pa.ListArray.from_arrays(
        lists.offsets.cast(pa.int32()),
        pa.StructArray.from_arrays(
            [names, pairs.field(1).cast(pa.binary())], fields=list(_TYPE.value_type)
        ),
        type=_TYPE,
        mask=lists.is_null() if lists.null_count else None,
    )
