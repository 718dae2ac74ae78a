"""Columns matched with a schema: which node writes what. Decided once, before any row is seen.

A record's fields are found by the Avro names of the columns and written in the schema's order. A
field that no column has is filled with its default. A column that the schema lacks is refused, for
it would be lost.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from duolog.avro.default_bytes import default_bytes
from duolog.avro.encode.buffers import is_list_view, stored_kind
from duolog.avro.encode.by_value import ByValue, depends_on_value
from duolog.avro.encode.leaves import leaf_of
from duolog.avro.encode.misfits import called, misfit
from duolog.avro.encode.nested import Entries, Fields, Items
from duolog.avro.encode.presence import Branch, OneOf, Required
from duolog.avro.encode.scalars import Constant, Nothing
from duolog.avro.names import avro_name
from duolog.avro.schema import (
    MAX_DEPTH,
    Array,
    Enum,
    Fixed,
    Kind,
    Map,
    Named,
    Primitive,
    Record,
    Reference,
    Schema,
    Union,
    named_types,
)
from duolog.avro.text import schema_text
from duolog.avro.varint import varint
from duolog.errors import InvalidRows, InvalidSchema
from duolog.log.routing.kinds import is_list_like, is_string

if TYPE_CHECKING:
    from collections.abc import Iterable

    from duolog.avro.encode.node import Node

_LOG: Final = logging.getLogger("duolog.avro")
_STRING: Final = Primitive(Kind.STRING)
# The branch of a union that a column of this type takes first.
_NATURAL: Final = {
    Kind.INT: (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16()),
    Kind.LONG: (pa.int64(), pa.uint32()),
    Kind.FLOAT: (pa.float16(), pa.float32()),
    Kind.DOUBLE: (pa.float64(),),
    Kind.STRING: (pa.string(), pa.large_string()),
    Kind.BYTES: (pa.binary(), pa.large_binary()),
}


def node_for(columns: pa.Schema | pa.StructType, schema: Schema) -> Node:
    """What writes rows of these columns as this record."""
    plan = _Plan(named_types(schema))
    record = plan.resolved(schema)
    if not isinstance(record, Record):
        raise InvalidSchema(
            f"Rows are written as a record, but the schema is Avro's {called(record)}."
        )
    return plan.record(columns, record, "", 1)


@dataclass(frozen=True, slots=True)
class _Plan:
    named: dict[str, Named]

    def resolved(self, schema: Schema) -> Schema:
        if not isinstance(schema, Reference):
            return schema
        if schema.name not in self.named:
            raise InvalidSchema(f"The schema refers to '{schema.name}', which is not in it.")
        return self.named[schema.name]

    def record(self, columns: Iterable[pa.Field], record: Record, path: str, depth: int) -> Node:
        places: dict[str, tuple[int, pa.Field]] = {}
        wanted = {field.name for field in record.fields}
        for place, column in enumerate(columns):
            # A name that only looks as if something in it was mangled stands for itself.
            mangled = avro_name(column.name)
            name = mangled if mangled in wanted or column.name not in wanted else column.name
            if name in places:
                raise InvalidRows(f"Column '{_inside(path, column.name)}' is there twice.")
            places[name] = place, column
        members: list[tuple[int | None, Node]] = []
        for field in record.fields:
            if field.name in places:
                place, column = places.pop(field.name)
                inside = _inside(path, column.name)
                members.append((place, self.column(column, field.type, inside, depth + 1)))
            elif field.default is not None:
                members.append((None, Constant(default_bytes(field, self.named))))
            else:
                raise InvalidRows(
                    f"The schema's field '{_inside(path, field.name)}' has no default, and there "
                    "is no column of that name. Add the column, or give the field a default."
                )
        for _, column in places.values():
            raise InvalidRows(
                f"Column '{_inside(path, column.name)}' is not in the schema's record "
                f"'{record.name}', so it would be lost. Drop the column, or register a schema "
                "that has it."
            )
        return Fields(tuple(members))

    def column(self, field: pa.Field, schema: Schema, path: str, depth: int) -> Node:
        """What writes a column, null or not."""
        if depth > 2 * MAX_DEPTH:
            raise InvalidRows(f"Column '{path}' is nested too deeply. Flatten it.")
        schema = self.resolved(schema)
        if isinstance(schema, Union):
            return self._union(field, schema, path, depth)
        node = self._value(field, schema, path, depth)
        return node if isinstance(node, Nothing) else Required(path, node)

    def _union(self, field: pa.Field, union: Union, path: str, depth: int) -> Node:
        branches = {
            index: self.resolved(branch)
            for index, branch in enumerate(union.branches)
            if not _is_null(branch)
        }
        nulls = [index for index in range(len(union.branches)) if index not in branches]
        null = nulls[0] if nulls else None
        if pa.types.is_null(field.type) and null is not None:
            return Constant(varint(null))
        if len(branches) > 1 and _is_members(field.type, len(branches)):
            members = tuple(
                self._value(member, branch, _inside(path, member.name), depth + 1)
                for member, branch in zip(field.type, branches.values(), strict=True)
            )
            return OneOf(path, tuple(branches), null, members)
        node = self._branch(field, branches, path, depth)
        if node is None:
            return self._by_value(field, union, path)
        branch, inner = node
        return Branch(branch, null, inner if null is not None else Required(path, inner))

    def _branch(
        self, field: pa.Field, branches: dict[int, Schema], path: str, depth: int
    ) -> tuple[int, Node] | None:
        """The branch that the column's type names, or else the first that it can be written as."""
        if len(branches) == 1:
            ((index, schema),) = branches.items()
            return index, self._value(field, schema, path, depth + 1)
        natural = [index for index in branches if _is_natural(field.type, branches[index])]
        for index in dict.fromkeys((*natural, *branches)):
            if depends_on_value(field.type, branches[index]):
                continue
            try:
                return index, self._value(field, branches[index], path, depth + 1)
            except InvalidRows:
                continue
        return None

    def _by_value(self, field: pa.Field, union: Union, path: str) -> Node:
        """Where each value decides for itself, fastavro does it, row by row."""
        if not any(depends_on_value(field.type, self.resolved(one)) for one in union.branches):
            raise misfit(path, field.type, union)
        _LOG.debug(
            "Column '%s' of type %s is written row by row with fastavro: which branch of the "
            "%s it takes depends on the value.",
            path,
            field.type,
            called(union),
        )
        whole = Union(tuple(self.resolved(branch) for branch in union.branches))
        return ByValue(path, schema_text(whole))

    def _value(self, field: pa.Field, schema: Schema, path: str, depth: int) -> Node:
        """What writes the values of a column that are not null."""
        kind = stored_kind(field.type)
        if pa.types.is_dictionary(kind):
            entries = pa.field(field.name, kind.value_type, metadata=field.metadata)
            return Entries(self._value(entries, schema, path, depth))
        node: Node | None = None
        match schema:
            case Primitive() | Fixed() | Enum():
                node = leaf_of(field, schema, path)
            case Record() if pa.types.is_struct(kind):
                node = self.record(kind, schema, path, depth)
            case Array(items=items) if pa.types.is_map(kind):
                entry = pa.field("", pa.struct(_entry(kind)), nullable=False)
                node = Items(self.column(entry, items, f"{path}[]", depth + 1))
            case Array(items=items) if is_list_like(kind) or is_list_view(kind):
                node = Items(self.column(kind.value_field, items, f"{path}[]", depth + 1))
            case Map(values=values) if pa.types.is_map(kind):
                node = self._map(kind, values, path, depth)
        if node is None:
            raise misfit(path, field.type, schema)
        return node

    def _map(self, kind: pa.MapType, values: Schema, path: str, depth: int) -> Node | None:
        key, value = _entry(kind)
        key_kind = key.type.value_type if pa.types.is_dictionary(key.type) else key.type
        if not is_string(stored_kind(key_kind)):
            return None
        members = (
            (0, self.column(key, _STRING, f"{path}.key", depth + 1)),
            (1, self.column(value, values, f"{path}[]", depth + 1)),
        )
        return Items(Fields(members))


def _inside(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _is_null(schema: Schema) -> bool:
    return isinstance(schema, Primitive) and schema.kind is Kind.NULL


def _is_members(kind: pa.DataType, count: int) -> bool:
    """Whether this is struct<member0, member1 ...>, a column for each type of a union."""
    return bool(pa.types.is_struct(kind)) and [field.name for field in kind] == [
        f"member{place}" for place in range(count)
    ]


def _is_natural(kind: pa.DataType, schema: Schema) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return isinstance(schema, Primitive) and stored_kind(kind) in _NATURAL.get(schema.kind, ())


def _entry(kind: pa.MapType) -> tuple[pa.Field, pa.Field]:
    return kind.key_field.with_name("key"), kind.item_field.with_name("value")
