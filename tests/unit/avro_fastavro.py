"""Rows as fastavro is given them."""

from __future__ import annotations

import io
import json
import uuid
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa

from duolog.avro.names import avro_name
from duolog.avro.schema import (
    Array,
    Kind,
    Map,
    Primitive,
    Record,
    Reference,
    Schema,
    Union,
    named_types,
)
from duolog.avro.text import schema_text
from tests.unit.avro_rows import CONTEXT, DAY_MILLISECONDS


class Fastavro:
    """Writes rows with fastavro."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._named = named_types(schema)
        self._parsed = fastavro.parse_schema(json.loads(schema_text(schema)))

    def body(self, row: Any, columns: pa.Schema) -> bytes | None:
        """The body of a row; null of a null."""
        if row is None:
            return None
        stream = io.BytesIO()
        given = self.datum(row, pa.field("", pa.struct(list(columns))), self._schema)
        fastavro.schemaless_writer(stream, self._parsed, given)
        return stream.getvalue()

    def datum(self, value: Any, field: pa.Field, schema: Schema) -> Any:
        """A value in the form in which fastavro takes it for this schema."""
        kind, types = field.type, pa.types
        if isinstance(schema, Reference):
            schema = self._named[schema.name]
        if types.is_dictionary(kind):
            field = pa.field("", kind.value_type)
            kind = field.type
        match schema:
            case Union(branches=branches):
                return self._branch(value, field, branches)
            case Record(fields=members):
                if types.is_map(kind):
                    return None
                return self._record(value, kind, members)
            case Array(items=items):
                item = _entry(kind) if types.is_map(kind) else kind.value_field
                if types.is_map(kind):
                    value = [{"key": one, "value": other} for one, other in value]
                return [self.datum(one, item, items) for one in value]
            case Map(values=values):
                return {key: self.datum(one, kind.item_field, values) for key, one in value}
        return _leaf(value, kind, schema)

    def _record(self, value: Any, kind: pa.DataType, members: Any) -> dict[str, Any]:
        named = {avro_name(child.name): child for child in kind}
        return {
            member.name: self.datum(value[named[member.name].name], named[member.name], member.type)
            for member in members
            if member.name in named
        }

    def _branch(self, value: Any, field: pa.Field, branches: tuple[Schema, ...]) -> Any:
        others = [one for one in branches if one != Primitive(Kind.NULL)]
        if value is None:
            return None
        if len(others) == 1:
            return self.datum(value, field, others[0])
        chosen = [place for place, child in enumerate(field.type) if value[child.name] is not None]
        if not chosen:
            return None
        (place,) = chosen
        member = field.type.field(place)
        return _called(others[place]), self.datum(value[member.name], member, others[place])


def _called(schema: Schema) -> str:
    match schema:
        case Primitive(kind=kind):
            return str(kind)
        case Array():
            return "array"
        case Map():
            return "map"
        case _:
            return schema.name  # type: ignore[union-attr]


def _entry(kind: pa.MapType) -> pa.Field:
    return pa.field(
        "", pa.struct([kind.key_field.with_name("key"), kind.item_field.with_name("value")])
    )


def _leaf(value: Any, kind: pa.DataType, schema: Schema) -> Any:
    types = pa.types
    if value is None:
        return None
    if types.is_decimal(kind):
        return Decimal(value).scaleb(-kind.scale, CONTEXT)
    if types.is_uint64(kind):
        return Decimal(value)
    if types.is_date64(kind):
        return value // DAY_MILLISECONDS
    if (types.is_time32(kind) or types.is_timestamp(kind)) and kind.unit == "s":
        return value * 1000
    if kind == pa.uuid():
        return str(uuid.UUID(bytes=value))
    if isinstance(value, str) and isinstance(schema, Primitive) and schema.kind is Kind.BYTES:
        return value.encode()
    return value
