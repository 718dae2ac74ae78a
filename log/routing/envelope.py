"""How a payload is wrapped, and which deletes are followed by a tombstone.

`flat`: the payload itself (see payload.py). `debezium`, in JSON:

    {"before":{"id":1,"qty":2},"after":{"id":1,"qty":3},
     "source":{"connector":"duolog","table":"shop.orders"},"op":"u","ts_ms":1700000000000}

`op` is c, u, d or r. `before` is null for inserts and reads, and for an update whose old row is not
known; for a delete whose old row is not known it holds the key. The payload says what both images
hold: full the row, key the key columns, diff the key columns and what changed (all of it where
there is only one image). After each delete comes a tombstone, a record with the same key and no
value, unless the topic does without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from duolog.log.model import Envelope, Op, PayloadMode
from duolog.log.routing.payload import (
    diff,
    flat_rows,
    flat_schema,
    key_fields,
    row_fields,
    row_presence,
    struct_of,
)

if TYPE_CHECKING:
    from duolog.log.model import Route, TopicSettings
    from duolog.log.routing.images import Images

_CONNECTOR = "duolog"
_SOURCE = pa.struct(
    [
        pa.field("connector", pa.string(), nullable=False),
        pa.field("table", pa.string(), nullable=False),
    ]
)
_WORDS = (None, "c", "u", "d", "r")  # by model.Op


def value_schema(
    rows: pa.Schema, key_columns: tuple[str, ...], route: Route, envelope: Envelope
) -> pa.Schema:
    """The columns of a route's values, whatever the format."""
    if envelope is Envelope.FLAT:
        return flat_schema(rows, key_columns, route)
    if route.payload is PayloadMode.KEY:
        before = after = key_fields(rows, key_columns)
    elif route.payload is PayloadMode.DIFF:
        before = after = row_fields(rows, key_columns, may_lack=True)
    else:
        before = row_fields(rows, key_columns, may_lack=Op.DELETE in route.ops)
        after = row_fields(rows, key_columns)
    return pa.schema(
        [
            pa.field("before", pa.struct(before)),
            pa.field("after", pa.struct(after)),
            pa.field("source", _SOURCE, nullable=False),
            pa.field("op", pa.string(), nullable=False),
            pa.field("ts_ms", pa.int64(), nullable=False),
        ]
    )


def value_rows(
    images: Images, schema: pa.Schema, payload: PayloadMode, envelope: Envelope
) -> pa.StructArray:
    """The value of each change, in the columns of `value_schema`."""
    if envelope is Envelope.FLAT:
        return flat_rows(images, schema, payload)
    old_type, new_type = schema.field("before").type, schema.field("after").type
    if payload is PayloadMode.DIFF:
        before, after = diff(images, old_type, new_type)
    else:
        had = images.known | images.is_delete
        before = struct_of(images.old(), old_type, row_presence(images), had)
        after = struct_of(images.row, new_type, exists=~images.is_delete)
    source = pa.StructArray.from_arrays(
        [pa.repeat(_CONNECTOR, len(images)), pa.repeat(images.table, len(images))],
        fields=list(_SOURCE),
    )
    op = pa.array(_WORDS).take(pa.array(images.op))
    return pa.StructArray.from_arrays([before, after, source, op, images.ts], fields=list(schema))


def has_tombstones(settings: TopicSettings) -> bool:
    """Whether each delete is followed by a record without a value."""
    return settings.envelope is Envelope.DEBEZIUM and settings.tombstones_on_delete
