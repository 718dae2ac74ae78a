"""Finds the columns that a filter names, and brings them into the types that it calculates in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duolog.log.routing.filter import steps
from duolog.log.routing.filter.kinds import TEXT, Type, working_type
from duolog.log.routing.filter.mistake import Mistake
from duolog.log.routing.filter.refused import listed, nearest
from duolog.log.routing.filter.tree import Column, Operation

if TYPE_CHECKING:
    from duolog.log.routing.filter.steps import Array


def find(column: Column, schema: pa.Schema) -> tuple[list[int], Type]:
    """Where a column is, field by field, and its type."""
    places: list[int] = []
    found: Any = None
    for depth, name in enumerate(column.path):
        if found is None:
            fields = list(schema)
        elif pa.types.is_struct(found):
            fields = [found.field(at) for at in range(found.num_fields)]
        else:
            parent = ".".join(column.path[:depth])
            raise Mistake(column, f"`{parent}` has no fields: it is of type {found}.")
        places.append(_position(column, name, [field.name for field in fields]))
        found = fields[places[-1]].type
    return places, found


def _position(column: Column, name: str, names: list[str]) -> int:
    """The one field of this name; else the one that differs only in capitals."""
    for same in (name.__eq__, lambda each: each.lower() == name.lower()):
        matches = [at for at, each in enumerate(names) if same(each)]
        if len(matches) == 1:
            return matches[0]
        if matches:
            found = ", ".join(f"`{names[at]}`" for at in matches)
            raise Mistake(column, f"`{name}` could be any of {found}.")
    hint = f"{nearest(name, tuple(names))} {listed(tuple(names))}".lstrip()
    raise Mistake(column, f"There is no column `{name}`. {hint}")


@dataclass(frozen=True, slots=True)
class Change:
    """Change rows, side by side: as they are now, as they were, and what was done."""

    row: pa.RecordBatch
    before: pa.RecordBatch | None
    op: Array

    def load(self, name: Column | Operation) -> Array:
        """A column in its working type."""
        if isinstance(name, Operation):
            return _working(self.op, TEXT)
        side = self.before if name.side == "before" else self.row
        places, type_ = find(name, (self.row if side is None else side).schema)
        working = working_type(type_)
        if side is None:
            return pa.nulls(self.row.num_rows, working)
        first, *fields = places
        values = side.column(first)
        for place in fields:
            values = pc.struct_field(_decoded(values), [place])
        values = steps.guarded(name, _working, values, working)
        return self._unless_deleted(values) if name.side == "after" else values

    def _unless_deleted(self, values: Array) -> Array:
        deleted = pc.fill_null(pc.equal(self.load(Operation()), "delete"), False)
        if not steps.count(deleted):
            return values
        mask = deleted.to_numpy(zero_copy_only=False)
        return values.take(pa.array(np.arange(len(values)), mask=mask))


def _working(values: Array, type_: Type) -> Array:
    values = _decoded(values)
    if pa.types.is_float16(values.type):
        missing = values.is_null().to_numpy(zero_copy_only=False)
        numbers = values.to_numpy(zero_copy_only=False).astype(np.float32)
        return pa.array(numbers, mask=missing)
    return values if values.type == type_ else values.cast(type_)


def _decoded(values: Array) -> Array:
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values
