"""Columns whose nullability does not depend on how a frame was made.

Spark calls a literal never null and a column read from a file always nullable. A topic's schema
would change with it, and with the next run be refused as incompatible.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

_IMAGES = ("before", "after")


def settled_nullability(schema: pa.Schema, key_columns: Sequence[str]) -> pa.Schema:
    """The schema with all columns nullable but the key's, which are checked to have no nulls."""
    return pa.schema([_settled(field, key_columns) for field in schema])


def _settled(field: pa.Field, key_columns: Sequence[str]) -> pa.Field:
    kind = _nullable(field.type)
    if field.name in _IMAGES and pa.types.is_struct(kind):
        kind = pa.struct([_keyed(child, key_columns) for child in kind])
    return _keyed(field.with_type(kind), key_columns)


def _keyed(field: pa.Field, key_columns: Sequence[str]) -> pa.Field:
    return field.with_nullable(field.name not in key_columns)


def _nullable(kind: pa.DataType) -> pa.DataType:
    """The type with everything inside it nullable, but for what can never be null."""
    if pa.types.is_struct(kind):
        return pa.struct([_inside(field) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(_inside(kind.value_field))
    if pa.types.is_large_list(kind):
        return pa.large_list(_inside(kind.value_field))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_field.with_type(_nullable(kind.key_type)), _inside(kind.item_field))
    return kind


def _inside(field: pa.Field) -> pa.Field:
    return field.with_type(_nullable(field.type)).with_nullable(True)
