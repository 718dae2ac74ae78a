"""Columns of the fields of Avro values, whatever schemas they were written with.

The columns are those of the schemas in a sample. Where these differ, a column is of the type that
takes all of them; a field whose types do not go together is no column, and is seen in `value`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duolog.errors import Undecodable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from duolog.avro.reading import DecodedRows, ValueReader
    from duolog.sql.select.record_columns import Page


class AvroValues:
    """Decodes the values of one topic."""

    def __init__(self, reader: ValueReader, sample: Iterable[Page]) -> None:
        self._reader = reader
        found: dict[str, pa.DataType | None] = {}
        for page in sample:
            for kind in self._record_types(*_columns(page)):
                for field in kind:
                    known = found.get(field.name, field.type)
                    found[field.name] = None if known is None else _both(known, field.type)
        self.types = {name: kind for name, kind in found.items() if kind is not None}

    def decode(self, page: Page, names: Sequence[str]) -> dict[str, pa.Array]:
        """Some of the columns."""
        columns = _columns(page)
        try:
            groups = self._reader.decode(*columns)
        except Undecodable as error:
            raise page.somewhere(error) from error
        return {name: self._column(page, name, groups) for name in names}

    def _record_types(self, values: pa.BinaryArray, headers: pa.ListArray) -> list[pa.DataType]:
        try:
            groups = self._reader.decode(values, headers)
        except Undecodable:
            if len(values) == 1:
                return []  # a query that looks at its value will say what is wrong with it
            half = len(values) // 2
            first = self._record_types(values.slice(0, half), headers.slice(0, half))
            return first + self._record_types(values.slice(half), headers.slice(half))
        return [group.values.type for group in groups if pa.types.is_struct(group.values.type)]

    def _column(self, page: Page, name: str, groups: Sequence[DecodedRows]) -> pa.Array:
        kind = self.types[name]
        count = page.records.num_rows
        place = np.full(count, -1, np.int64)
        pieces = []
        at = 0
        for group in groups:
            values, rows = group.values, group.rows
            if not pa.types.is_struct(values.type) or values.type.get_field_index(name) < 0:
                continue
            try:
                pieces.append(pc.struct_field(values, [name]).cast(kind))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise page.undecodable(
                    int(rows[0]),
                    f"`{name}` is {values.type.field(name).type} in its schema and {kind} in "
                    f"others ({error}). Read `value` instead of this column.",
                ) from None
            place[rows] = np.arange(at, at + len(rows))
            at += len(rows)
        if not pieces:
            return pa.nulls(count, kind)
        return pa.concat_arrays(pieces).take(pa.array(place, mask=place < 0))


def _columns(page: Page) -> tuple[pa.BinaryArray, pa.ListArray]:
    records = page.records
    return records.column("value").combine_chunks(), records.column("headers").combine_chunks()


def _both(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """The type that takes both, if there is one."""
    if one == other:
        return one
    schemas = [pa.schema([("x", each)]) for each in (one, other)]
    try:
        return pa.unify_schemas(schemas, promote_options="permissive").field("x").type
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return None
