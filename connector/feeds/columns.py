"""A feed's columns out of the batches that Spark hands to a task."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duolog.errors import InvalidRows
from duolog.log.routing.kinds import is_binary, is_string, without_view

_NESTED = (
    pa.types.is_struct,
    pa.types.is_list,
    pa.types.is_large_list,
    pa.types.is_fixed_size_list,
    pa.types.is_map,
)


def conformed(batch: pa.RecordBatch, wanted: pa.Schema, table: str) -> pa.RecordBatch:
    """These columns of a batch, as the driver saw them when it settled the routes.

    Spark's schema and its Arrow batches differ in time zones, in what may be null and in the width
    of text; all else that differs is refused.
    """
    columns = [conformed_column(batch, field, table) for field in wanted]
    return pa.RecordBatch.from_arrays(columns, schema=wanted)


def conformed_column(batch: pa.RecordBatch, field: pa.Field, table: str) -> pa.Array:
    """One column of a batch."""
    at = batch.schema.get_all_field_indices(field.name)
    if len(at) != 1:
        many = "more than one" if at else "no"
        raise InvalidRows(
            f"The rows of table '{table}' have {many} column '{field.name}'; they have "
            f"{', '.join(batch.schema.names)}."
        )
    column = batch.column(at[0])
    if column.type == field.type:
        return column
    if _alike(column.type, field.type):
        return column.cast(field.type)
    raise InvalidRows(
        f"Column '{field.name}' of table '{table}' is {column.type} in a batch, but was "
        f"{field.type} when the write began. Cast it to one type."
    )


def _alike(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a cast changes nothing that a value means."""
    found, wanted = without_view(found), without_view(wanted)
    if pa.types.is_timestamp(found) and pa.types.is_timestamp(wanted):
        return bool(found.unit == wanted.unit and (found.tz is None) == (wanted.tz is None))
    if pa.types.is_struct(found) and pa.types.is_struct(wanted):
        return [field.name for field in found] == [field.name for field in wanted] and all(
            _alike(found.field(i).type, wanted.field(i).type) for i in range(found.num_fields)
        )
    if pa.types.is_list(found) and pa.types.is_list(wanted):
        return _alike(found.value_type, wanted.value_type)
    if pa.types.is_map(found) and pa.types.is_map(wanted):
        return _alike(found.key_type, wanted.key_type) and _alike(found.item_type, wanted.item_type)
    both_text = is_string(found) and is_string(wanted)
    return bool(found == wanted or both_text or (is_binary(found) and is_binary(wanted)))


def check_key_types(table: str, rows: pa.Schema, key_columns: tuple[str, ...]) -> None:
    """Refuse key columns whose values cannot be told apart a column at a time."""
    for name in key_columns:
        kind = rows.field(name).type
        if any(is_nested(kind) for is_nested in _NESTED):
            raise InvalidRows(
                f"Key column '{name}' of table '{table}' is {kind}. A key is made of plain values: "
                "select a field of it as a column of its own, and name that in keyColumns."
            )


def check_no_null(batch: pa.RecordBatch, names: tuple[str, ...], table: str, what: str) -> None:
    """Refuse rows without a value in a column that each of them needs."""
    for name in names:
        column = batch.column(name)
        if column.null_count:
            rows = np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))
            raise InvalidRows(
                f"{what} '{name}' of table '{table}' is null in {rows.size} rows, first in row "
                f"{int(rows[0])} of a batch: {shown(batch, int(rows[0]))}. Filter these rows out, "
                "or name columns that are never null."
            )


def shown(batch: pa.RecordBatch, row: int) -> str:
    """A row for people, cut short."""
    (fields,) = batch.slice(row, 1).to_pylist()
    text = ", ".join(f"{name}={value!r}" for name, value in fields.items())
    return text if len(text) <= 200 else f"{text[:200]}…"


def as_ms(column: pa.Array) -> pa.Int64Array:
    """Milliseconds since 1970 of a column of timestamps."""
    zoned = pa.timestamp("ms", tz=column.type.tz)
    return pc.cast(column, zoned, safe=False).cast(pa.int64())
