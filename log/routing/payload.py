"""What of a change a record carries: the payload of a flat envelope, as columns.

In JSON, for the table `shop.orders` with the key `id`:

    full   insert, read  {"_table":"shop.orders","id":1,"item":"tea","qty":2}
           update        the new row, likewise
           delete        the old row, likewise; where it is not known, as payload key
    key    all           {"_table":"shop.orders","id":1}
    diff   insert, read  {"_table":"shop.orders","id":1,
                          "before":null,"after":{"id":1,"item":"tea","qty":2}}
           update        {"_table":"shop.orders","id":1,"before":{"qty":2},"after":{"qty":3}}
                         where the old row is not known: before null, after the whole new row
           delete        {"_table":"shop.orders","id":1,
                          "before":{"id":1,"item":"tea","qty":3},"after":null}
                         where the old row is not known: before {"id":1}

An update that changed nothing is still a record: its diff is `"before":{},"after":{}`. The
operation itself is a column of the record.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from duolog.errors import InvalidRows
from duolog.log.model import Op, PayloadMode
from duolog.log.routing.changes import TABLE_FIELD
from duolog.log.routing.difference import differs
from duolog.log.routing.optional import is_optional, optional, optional_field

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy.typing as npt

    from duolog.log.model import Route
    from duolog.log.routing.images import Images

    Mask = npt.NDArray[np.bool_]

_TABLE = pa.field(TABLE_FIELD, pa.string(), nullable=False)
_NONE: Mapping[str, Any] = MappingProxyType({})


def flat_schema(rows: pa.Schema, key_columns: tuple[str, ...], route: Route) -> pa.Schema:
    """The columns of a flat payload."""
    keys = key_fields(rows, key_columns)
    if route.payload is PayloadMode.KEY:
        return pa.schema([_TABLE, *keys])
    if route.payload is PayloadMode.FULL:
        return pa.schema([_TABLE, *row_fields(rows, key_columns, may_lack=Op.DELETE in route.ops)])
    for name in ("before", "after"):
        if name in key_columns:
            raise InvalidRows(
                f"Key column '{name}' of table '{route.table}' has the name of a part of the "
                "diff. Rename it, or use payload full or the debezium envelope."
            )
    image = pa.struct([optional_field(field) for field in row_fields(rows, key_columns)])
    return pa.schema([_TABLE, *keys, pa.field("before", image), pa.field("after", image)])


def flat_rows(images: Images, schema: pa.Schema, payload: PayloadMode) -> pa.StructArray:
    """The payload of each change, in the columns of `flat_schema`."""
    table = pa.repeat(images.table, len(images))
    if payload is not PayloadMode.DIFF:
        return struct_of(images.row, schema, row_presence(images), columns={TABLE_FIELD: table})
    before, after = diff(images, schema.field("before").type, schema.field("after").type)
    columns = {TABLE_FIELD: table, "before": before, "after": after}
    return struct_of(images.row, schema, columns=columns)


def row_presence(images: Images) -> dict[str, Mask]:
    """By column, where a whole row has it: everywhere, unless only the key is known."""
    return dict.fromkeys(images.row.schema.names, ~images.only_key)


def diff(
    images: Images, before: pa.StructType, after: pa.StructType
) -> tuple[pa.StructArray, pa.StructArray]:
    """Both images with only what changed; of the first and the last image of a row, all."""
    compared = images.known & ~images.is_delete
    changed = _changed(images, compared)
    present_before = {
        name: mask | (images.is_delete & images.known) for name, mask in changed.items()
    }
    present_after = {name: mask | ~compared for name, mask in changed.items()}
    for name in images.key_columns:
        present_before[name] = images.is_delete
    return (
        struct_of(images.old(), before, present_before, images.known | images.is_delete),
        struct_of(images.row, after, present_after, ~images.is_delete),
    )


def _changed(images: Images, compared: Mask) -> dict[str, Mask]:
    """By column, where it is known to have changed. A key never does."""
    changed = {}
    for name in images.row.schema.names:
        if name in images.key_columns or images.before is None or not compared.any():
            changed[name] = np.zeros(len(images), np.bool_)
        else:
            column, old = images.row.column(name), images.before.column(name)
            changed[name] = compared & differs(old, column, name)
    return changed


def key_fields(rows: pa.Schema, key_columns: tuple[str, ...]) -> list[pa.Field]:
    """The key columns, in the order of the key."""
    return [pa.field(name, rows.field(name).type, nullable=False) for name in key_columns]


def row_fields(
    rows: pa.Schema, key_columns: tuple[str, ...], *, may_lack: bool = False
) -> list[pa.Field]:
    """All columns; with `may_lack`, rows may have nothing but the key."""
    fields = []
    for column in rows:
        is_key = column.name in key_columns
        field = pa.field(column.name, column.type, column.nullable and not is_key)
        fields.append(optional_field(field) if may_lack and not is_key else field)
    return fields


def struct_of(
    rows: pa.RecordBatch,
    fields: Iterable[pa.Field],
    present: Mapping[str, Mask] = _NONE,
    exists: Mask | None = None,
    columns: Mapping[str, pa.Array] = _NONE,
) -> pa.StructArray:
    """A struct column of these fields, from `columns` where given there, else from `rows`.

    `present` says where an optional field is there; `exists` where the struct is not null.
    """
    fields = list(fields)
    arrays = []
    for field in fields:
        made = columns.get(field.name)
        array = rows.column(field.name) if made is None else made
        arrays.append(optional(array, field, present[field.name]) if is_optional(field) else array)
    missing = None if exists is None or exists.all() else pa.array(~exists)
    return pa.StructArray.from_arrays(arrays, fields=fields, mask=missing)
