"""Avro schemas as Arrow columns: what `from_arrow` does, the other way.

| Avro                                | Arrow                                                     |
|-------------------------------------|-----------------------------------------------------------|
| null, boolean, int, long            | null, bool, int32, int64                                  |
| float, double, string, bytes        | float32, float64, string, binary                          |
| fixed                               | fixed_size_binary(n)                                      |
| decimal(p,s) on bytes and fixed     | decimal128(p,s), from p = 39 decimal256, from 77 refused  |
| date; time-millis, time-micros      | date32; time32[ms], time64[us]                            |
| timestamp-millis, -micros, -nanos   | timestamp[ms, us, ns] in UTC                              |
| local-timestamp-...                 | timestamp without a zone                                  |
| uuid on string and fixed            | string or fixed_size_binary(16), metadata `avro.logical`  |
| enum                                | dictionary<int32, string>, metadata `avro.enum`           |
| array, map, record                  | list, map<string, ...>, struct                            |
| union of null and another           | that, nullable                                            |
| union of several others             | struct<member0, member1 ...>, of which one is not null    |

Other logical types count as what they annotate.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from duolog.avro.from_arrow import COMMENT, DEFAULT, ENUM, LOGICAL, UUID
from duolog.avro.json_tree import json_text
from duolog.avro.names import column_name
from duolog.avro.schema import (
    Array,
    Enum,
    Field,
    Fixed,
    Kind,
    Logical,
    Map,
    Primitive,
    Record,
    Reference,
    Schema,
    Union,
    expanded,
)
from duolog.errors import InvalidSchema

_KINDS: Final = {
    Kind.NULL: pa.null(),
    Kind.BOOLEAN: pa.bool_(),
    Kind.INT: pa.int32(),
    Kind.LONG: pa.int64(),
    Kind.FLOAT: pa.float32(),
    Kind.DOUBLE: pa.float64(),
    Kind.BYTES: pa.binary(),
    Kind.STRING: pa.string(),
}
_LOGICALS: Final = {
    "date": pa.date32(),
    "time-millis": pa.time32("ms"),
    "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("ms", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "timestamp-nanos": pa.timestamp("ns", "UTC"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
    "local-timestamp-nanos": pa.timestamp("ns"),
}
_LONGEST_DECIMAL: Final = 76


def arrow_type(schema: Schema) -> pa.DataType:
    """The Arrow type of its values. Whether they may be null is said by `arrow_field`."""
    return arrow_field(schema, "").type


def arrow_field(schema: Schema, name: str) -> pa.Field:
    """A column of its values, with what only a field can say: null or not, uuid, an enum's words.

    InvalidSchema for what no columns can hold.
    """
    return _field(expanded(schema), name, name)


def columns_of(schema: Schema) -> pa.Schema:
    """The columns that a record's fields are."""
    if isinstance(schema, Reference | Record):
        record = expanded(schema)
        if isinstance(record, Record):
            return pa.schema(_members(record, ""))
    raise InvalidSchema("Only a record has columns; this schema is of another type.")


def member_name(index: int) -> str:
    """The field for the type at this place among those of a union, null not counted."""
    return f"member{index}"


def _field(schema: Schema, name: str, path: str) -> pa.Field:
    if not isinstance(schema, Union):
        kind, metadata = _type(schema, path)
        return pa.field(name, kind, kind == pa.null(), metadata)
    others = [branch for branch in schema.branches if not _is_null(branch)]
    may_be_null = len(others) < len(schema.branches)
    if len(others) == 1:
        kind, metadata = _type(others[0], path)
        return pa.field(name, kind, may_be_null, metadata)
    if others:
        members = [
            _field(branch, member_name(index), path).with_nullable(nullable=True)
            for index, branch in enumerate(others)
        ]
        return pa.field(name, pa.struct(members), may_be_null)
    if may_be_null:
        return pa.field(name, pa.null())
    raise InvalidSchema(f"No value can be of the empty union of {_place(path)}. Give it types.")


def _members(record: Record, path: str) -> list[pa.Field]:
    fields: list[pa.Field] = []
    taken: dict[str, str] = {}
    for member in record.fields:
        name = column_name(member.name)
        if name in taken:
            raise InvalidSchema(
                f"record '{record.name}': the fields '{taken[name]}' and '{member.name}' are one "
                f"column, {name!r}. Rename one of them."
            )
        taken[name] = member.name
        field = _field(member.type, name, f"{path}.{name}" if path else name)
        fields.append(field.with_metadata({**(field.metadata or {}), **_remarks(member)} or None))
    return fields


def _remarks(member: Field) -> dict[bytes, bytes]:
    """What a field has beside its type, as `from_arrow` reads it."""
    remarks: dict[bytes, bytes] = {}
    if member.doc:
        remarks[COMMENT] = member.doc.encode()
    branches = member.type.branches if isinstance(member.type, Union) else ()
    several = sum(not _is_null(branch) for branch in branches) > 1
    if member.default not in {None, "null"} and not several:
        remarks[DEFAULT] = str(member.default).encode()
    return remarks


def _type(schema: Schema, path: str) -> tuple[pa.DataType, dict[bytes, bytes] | None]:
    match schema:
        case Primitive(kind=Kind.STRING, logical=Logical(name="uuid")):
            return pa.string(), {LOGICAL: UUID.encode()}
        case Fixed(size=16, logical=Logical(name="uuid")):
            return pa.binary(16), {LOGICAL: UUID.encode()}
        case (
            Primitive(logical=Logical(name="decimal", precision=precision, scale=scale))
            | Fixed(logical=Logical(name="decimal", precision=precision, scale=scale))
        ):
            return _decimal(precision, scale, path), None
        case Primitive(kind=kind, logical=logical):
            return _LOGICALS.get(logical.name if logical else "", _KINDS[kind]), None
        case Fixed(size=size):
            return pa.binary(size), None
        case Enum(symbols=symbols):
            words = json_text(list(symbols)).encode()
            return pa.dictionary(pa.int32(), pa.string()), {ENUM: words}
        case Array(items=inner):
            return pa.list_(_field(inner, "item", path)), None
        case Map(values=inner):
            return pa.map_(pa.string(), _field(inner, "value", path)), None
        case Record():
            return pa.struct(_members(schema, path)), None
        case _:
            raise TypeError(f"{schema} was to be expanded")


def _decimal(precision: int, scale: int, path: str) -> pa.DataType:
    if precision > _LONGEST_DECIMAL:
        raise InvalidSchema(
            f"The decimal({precision},{scale}) of {_place(path)} has more digits than a column's "
            f"{_LONGEST_DECIMAL}. Lower its precision."
        )
    return (pa.decimal128 if precision <= 38 else pa.decimal256)(precision, scale)


def _place(path: str) -> str:
    return f"'{path}'" if path else "the schema"


def _is_null(schema: Schema) -> bool:
    return isinstance(schema, Primitive) and schema.kind is Kind.NULL
