"""Arrow rows of any shape for the tests of Avro, and what fastavro should be given for them.

Values are made as the numbers that Arrow stores, from a seeded generator. Columns get an offset,
and what lies below a null is random: it has no meaning, so it may not matter.
"""

from __future__ import annotations

import json
import math
import struct
import uuid
from dataclasses import replace
from decimal import Context
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from duolog.avro.names import avro_name
from duolog.avro.schema import (
    NULL,
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
)

CONTEXT = Context(prec=100)
UUID_MARK = {b"avro.logical": b"uuid"}
SYMBOLS = ("NEW", "PAID", "SENT", "x", "_y")
ENUM_MARK = {b"avro.enum": json.dumps(SYMBOLS).encode()}
UNION_MARK = {b"test": b"one member at most is not null"}
UNITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
DAY_MILLISECONDS = 86_400_000

PLAIN_KINDS = [
    pa.null(),
    pa.bool_(),
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
    *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.float16(), pa.float32(), pa.float64()),
    *(pa.string(), pa.large_string(), pa.string_view()),
    *(pa.binary(), pa.large_binary(), pa.binary_view()),
    *(pa.binary(1), pa.binary(7), pa.binary(16), pa.binary(70)),
    *(pa.decimal32(7, 3), pa.decimal64(15, 2)),
    *(pa.decimal128(5, 2), pa.decimal128(18, 18), pa.decimal128(38, 6)),
    *(pa.decimal256(40, 0), pa.decimal256(76, 20), pa.decimal256(9, 9)),
    *(pa.date32(), pa.date64()),
    *(pa.time32("s"), pa.time32("ms"), pa.time64("us")),
    *(pa.timestamp(unit) for unit in UNITS),
    *(pa.timestamp(unit, "Europe/Berlin") for unit in UNITS),
    pa.uuid(),
]
MARKED = [
    pa.field("", pa.string(), metadata=UUID_MARK),
    pa.field("", pa.binary(16), metadata=UUID_MARK),
    pa.field("", pa.dictionary(pa.int8(), pa.string()), metadata=ENUM_MARK),
    pa.field("", pa.dictionary(pa.uint32(), pa.large_string()), metadata=ENUM_MARK),
]
DICTIONARIES = [
    pa.dictionary(pa.int32(), pa.string()),
    pa.dictionary(pa.uint16(), pa.int64()),
    pa.dictionary(pa.int16(), pa.decimal128(20, 3)),
    pa.dictionary(pa.int64(), pa.binary()),
]

LEAVES = [*(pa.field("", kind) for kind in (*PLAIN_KINDS, *DICTIONARIES)), *MARKED]
KEYS = (pa.string(), pa.large_string(), pa.int32(), pa.date32(), pa.binary())
LISTS = (pa.list_, pa.large_list, pa.list_view, pa.large_list_view)
NAMES = ("id", "a b", "2nd", "größe", "_x0020_", "_x", "select", "a.b", "𝄞", "\0", "Ab", "_")


def columns_from(random: Random, depth: int = 4) -> pa.Schema:
    """Columns of any type, nested at most so deep, nullable or not."""
    return pa.schema(_fields(random, depth))


def _fields(random: Random, depth: int) -> list[pa.Field]:
    names = random.sample(NAMES, random.randint(1, 5))
    return [_field(name, random, depth) for name in names]


def _field(name: str, random: Random, depth: int) -> pa.Field:
    like = random.choice(LEAVES)
    if depth > 1 and random.random() < 0.5:
        like = pa.field("", _nested(random, depth - 1))
    nullable = random.random() < 0.5 or pa.types.is_null(like.type)
    return pa.field(name, like.type, nullable, like.metadata)


def _nested(random: Random, depth: int) -> pa.DataType:
    choice = random.randrange(4)
    if choice == 0:
        return pa.struct(_fields(random, depth))
    item = _field("item", random, depth)
    if choice == 1:
        return pa.map_(random.choice(KEYS), item)
    if choice == 2:
        return pa.list_(item, random.randint(0, 3))
    return random.choice(LISTS)(item)


# Schemas that are not made from the columns


class Varied:
    """Other schemas that the same columns can be written in."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._added = 0

    def record(self, record: Record, columns: Any) -> Record:
        """With fields in another order, of wider types, and with more of them."""
        by_name = {avro_name(column.name): column for column in columns}
        fields = [self._field(field, by_name[field.name]) for field in record.fields]
        self._random.shuffle(fields)
        for kind, default in self._random.sample(DEFAULTS, self._random.randrange(3)):
            self._added += 1
            place = self._random.randrange(len(fields) + 1)
            named = replace(kind, name=f"t{self._added}") if hasattr(kind, "name") else kind
            fields.insert(place, Field(f"added{self._added}", named, json.dumps(default)))
        return replace(record, fields=tuple(fields))

    def _field(self, field: Field, column: pa.Field) -> Field:
        kind = self.schema(field.type, column)
        if not isinstance(kind, Union) and kind != NULL and self._random.random() < 0.3:
            kind = Union((NULL, kind))
        if isinstance(kind, Union) and self._random.random() < 0.5:
            kind = Union(kind.branches[::-1])
        return replace(field, type=kind, default=None)

    def schema(self, schema: Schema, column: pa.Field) -> Schema:
        kind = column.type
        if pa.types.is_dictionary(kind):
            column = pa.field("", kind.value_type)
            kind = column.type
        match schema:
            case Union(branches=(null, value)):
                return Union((null, self.schema(value, column)))
            case Record() if pa.types.is_struct(kind):
                return self.record(schema, kind)
            case Array(items=items) if not pa.types.is_map(kind):
                return Array(self.schema(items, kind.value_field))
            case Map(values=values):
                return Map(self.schema(values, kind.item_field))
            case Primitive(logical=Logical(name="decimal", precision=precision, scale=scale)):
                return self._decimal(precision, scale)
            case Primitive(logical=None):
                return Primitive(self._random.choice(WIDER.get(kind, (schema.kind,))))
        return schema

    def _decimal(self, precision: int, scale: int) -> Schema:
        more = self._random.randrange(76 - precision + 1)
        decimal = Logical("decimal", precision + more, scale + self._random.randrange(more + 1))
        if self._random.random() < 0.5:
            return Primitive(Kind.BYTES, decimal)
        self._added += 1
        least = ((10**decimal.precision).bit_length() + 8) // 8
        return Fixed(f"d{self._added}", least + self._random.randrange(9), decimal)


_SMALL = (Kind.INT, Kind.LONG, Kind.FLOAT, Kind.DOUBLE)
WIDER = {
    **dict.fromkeys((pa.int8(), pa.int16(), pa.uint8(), pa.uint16()), _SMALL),
    pa.int32(): (Kind.INT, Kind.LONG, Kind.DOUBLE),
    pa.uint32(): (Kind.LONG, Kind.DOUBLE),
    pa.float16(): (Kind.FLOAT, Kind.DOUBLE),
    pa.float32(): (Kind.FLOAT, Kind.DOUBLE),
    **dict.fromkeys((pa.string(), pa.large_string()), (Kind.STRING, Kind.BYTES)),
}
_LONG = Primitive(Kind.LONG)
_STRING = Primitive(Kind.STRING)
DEFAULTS: list[tuple[Any, Any]] = [
    (_LONG, -(2**40)),
    (Primitive(Kind.DOUBLE), 1.5),
    (Primitive(Kind.BOOLEAN), True),
    (_STRING, "größe" * 9),
    (Union((NULL, _STRING)), None),
    (Union((_STRING, NULL)), "d"),
    (Array(_LONG), []),
    (Array(_LONG), [1, 2, 300]),
    (Map(_STRING), {"a": "b"}),
    (Enum("t", SYMBOLS), "SENT"),
    (Record("t", (Field("x", _LONG), Field("y", _STRING, '"z"'))), {"x": 7}),
]


def union_column(name: str, random: Random, written: set[str]) -> tuple[pa.Field, Union]:
    """A column with a member for each of a union's types, and the union.

    Named types that are written out already are referred to.
    """
    chosen = random.sample(BRANCHES, random.randint(2, len(BRANCHES)))
    members = [pa.field(f"member{place}", kind) for place, (kind, _) in enumerate(chosen)]
    branches: list[Schema] = []
    for _, branch in chosen:
        if isinstance(branch, Fixed | Record):
            branches.append(Reference(branch.name) if branch.name in written else branch)
            written.add(branch.name)
        else:
            branches.append(branch)
    nullable = random.random() < 0.5
    if nullable:
        branches.insert(random.randrange(len(branches) + 1), NULL)
    return pa.field(name, pa.struct(members), nullable, UNION_MARK), Union(tuple(branches))


BRANCHES: list[tuple[pa.DataType, Schema]] = [
    (pa.bool_(), Primitive(Kind.BOOLEAN)),
    (pa.int32(), Primitive(Kind.INT)),
    (pa.int64(), _LONG),
    (pa.float32(), Primitive(Kind.FLOAT)),
    (pa.large_string(), _STRING),
    (pa.binary(), Primitive(Kind.BYTES)),
    (pa.binary(3), Fixed("three", 3)),
    (pa.list_(pa.field("item", pa.int32(), nullable=False)), Array(Primitive(Kind.INT))),
    (pa.map_(pa.string(), pa.field("value", pa.int64(), nullable=False)), Map(_LONG)),
    (
        pa.struct([pa.field("x", pa.int64(), nullable=False), pa.field("y", pa.string())]),
        Record("point", (Field("x", _LONG), Field("y", Union((_STRING, NULL))))),
    ),
]


# Values


def values_of(field: pa.Field, count: int, random: Random) -> list[Any]:
    """So many values of a column, null among them where it may be."""
    often = random.choice((0.0, 0.1, 0.5, 1.0)) if field.nullable else 0.0
    return [
        None if random.random() < often or pa.types.is_null(field.type) else value_of(field, random)
        for _ in range(count)
    ]


def value_of(field: pa.Field, random: Random) -> Any:
    """A value of this column that is not null."""
    kind, types = field.type, pa.types
    if types.is_dictionary(kind):
        if b"avro.enum" in (field.metadata or {}):
            return random.choice(SYMBOLS)
        return value_of(pa.field("", kind.value_type), random)
    if types.is_boolean(kind):
        return random.random() < 0.5
    if types.is_integer(kind):
        return integer(random, kind.bit_width, signed=types.is_signed_integer(kind))
    if types.is_floating(kind):
        return floating(random, kind)
    if types.is_decimal(kind):
        return decimal(random, kind.precision)
    if kind == pa.uuid():
        return random.randbytes(16)
    if types.is_fixed_size_binary(kind):
        return random.randbytes(kind.byte_width)
    if types.is_date32(kind):
        return integer(random, 32, signed=True)
    if types.is_date64(kind):
        return integer(random, 32, signed=True) * DAY_MILLISECONDS
    if types.is_time(kind):
        return random.randrange(86_400 * 10 ** UNITS[kind.unit])
    if types.is_timestamp(kind):
        number = integer(random, 64, signed=True)
        return (
            int(number / 1000)
            if kind.unit == "s" and abs(number) < 2**52
            else (number >> 10 if kind.unit == "s" else number)
        )
    if field.metadata == UNION_MARK:
        names = [child.name for child in kind]
        chosen = random.choice([*names, ""] if field.nullable else names)
        return {
            child.name: value_of(child, random) if child.name == chosen else None for child in kind
        }
    if types.is_struct(kind):
        return {child.name: values_of(child, 1, random)[0] for child in kind}
    if types.is_map(kind):
        keys = {value_of(kind.key_field, random) for _ in range(_count(kind.item_field, random))}
        return [(key, values_of(kind.item_field, 1, random)[0]) for key in keys]
    if types.is_fixed_size_list(kind):
        return values_of(kind.value_field, kind.list_size, random)
    if types.is_nested(kind):
        return values_of(kind.value_field, _count(kind.value_field, random), random)
    if field.metadata:
        return str(uuid.UUID(int=random.getrandbits(128)))
    text = "".join(random.choice("a€é𝄞\0 z") for _ in range(_length(random)))
    is_text = any(check(kind) for check in (types.is_string, types.is_large_string))
    return text if is_text or kind == pa.string_view() else random.randbytes(_length(random))


def _count(item: pa.Field, random: Random) -> int:
    """How many items; many only where each is small."""
    if pa.types.is_nested(item.type):
        return random.randrange(4)
    return random.choice((0, 0, 1, 1, 2, 3, 70))


def _length(random: Random) -> int:
    return random.choice((0, 0, 1, 1, 2, 3, 5, 8, 31, 32, 33, random.randrange(200)))


def integer(random: Random, bits: int, *, signed: bool) -> int:
    """Of any size up to so many bits, and often right beside a power of two."""
    if signed:
        bits -= 1
    number = random.choice((random.getrandbits(random.randint(0, bits)), 0))
    if random.random() < 0.3:
        number = (1 << random.randint(0, bits)) - random.randint(0, 1)
    number = min(number, (1 << bits) - 1)
    return random.choice((number, ~number)) if signed else number


def decimal(random: Random, precision: int) -> int:
    """A number without its point."""
    limit: int = 10**precision - 1
    return max(-limit, min(limit, integer(random, precision * 4, signed=True)))


def floating(random: Random, kind: pa.DataType) -> float:
    numbers = (0.0, -0.0, 1.5, math.inf, -math.inf, math.nan, random.uniform(-100, 100))
    return float(np.dtype(f"float{kind.bit_width}").type(random.choice(numbers)))


# Columns


def array_of(values: list[Any], field: pa.Field, random: Random) -> pa.Array:
    """A column of these values, inside a longer one, with anything below its nulls."""
    before, after = random.randrange(10), random.randrange(3)
    margin = [None] * before, [None] * after
    whole = _array([*margin[0], *values, *margin[1]], field, random)
    return whole.slice(before, len(values))


def _array(values: list[Any], field: pa.Field, random: Random) -> pa.Array:
    kind, types = field.type, pa.types
    count = len(values)
    valid = [value is not None for value in values]
    bitmap = None if all(valid) else pa.array(valid).buffers()[1]
    filled = [_anything(field, random) if value is None else value for value in values]
    if types.is_null(kind):
        return pa.nulls(count)
    if kind == pa.uuid():
        storage = _array(values, pa.field("", pa.binary(16)), random)
        return pa.ExtensionArray.from_storage(kind, storage)
    if types.is_dictionary(kind):
        return _dictionary(values, field, random)
    if types.is_boolean(kind):
        return pa.array(filled, kind, mask=~np.array(valid, np.bool_))
    if types.is_struct(kind):
        children = [
            array_of([value[child.name] for value in filled], child, random) for child in kind
        ]
        if not children:
            return pa.array([{} if known else None for known in valid], kind)
        missing = None if bitmap is None else pa.array([not known for known in valid])
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=missing)
    if types.is_nested(kind):
        return _list(filled, kind, bitmap, random)
    if kind in (pa.string_view(), pa.binary_view()):
        return pa.array(values, kind)
    if any(
        check(kind)
        for check in (
            types.is_string,
            types.is_large_string,
            types.is_binary,
            types.is_large_binary,
        )
    ):
        parts = [part.encode() if isinstance(part, str) else part for part in filled]
        wide = types.is_large_string(kind) or types.is_large_binary(kind)
        offsets = np.cumsum([0, *map(len, parts)]).astype(np.int64 if wide else np.int32)
        buffers = [bitmap, pa.py_buffer(offsets), pa.py_buffer(b"".join(parts))]
        return pa.Array.from_buffers(kind, count, buffers)
    content = b"".join(_packed(value, kind) for value in filled)
    return pa.Array.from_buffers(kind, count, [bitmap, pa.py_buffer(content)])


def _anything(field: pa.Field, random: Random) -> Any:
    """What may lie below a null."""
    kind, types = field.type, pa.types
    if types.is_null(kind):
        return None
    if types.is_struct(kind):
        return {child.name: random.choice((None, _anything(child, random))) for child in kind}
    if types.is_decimal(kind):
        return int.from_bytes(random.randbytes(kind.byte_width), "little", signed=True)
    if types.is_temporal(kind):
        return int.from_bytes(random.randbytes(kind.bit_width // 8), "little", signed=True)
    if types.is_string(kind) or types.is_large_string(kind):
        return random.randbytes(3)
    return value_of(field, random)


def _packed(value: Any, kind: pa.DataType) -> bytes:
    types = pa.types
    if types.is_fixed_size_binary(kind):
        return bytes(value)
    if types.is_floating(kind):
        return struct.pack({16: "<e", 32: "<f", 64: "<d"}[kind.bit_width], value)
    signed = not types.is_unsigned_integer(kind)
    return int(value).to_bytes(kind.bit_width // 8, "little", signed=signed)


def _dictionary(values: list[Any], field: pa.Field, random: Random) -> pa.DictionaryArray:
    kind = field.type
    entry = pa.field("", kind.value_type)
    known: list[Any] = []
    indices: list[int | None] = []
    for value in values:
        if value is not None and value not in known:
            known.append(value)
        indices.append(None if value is None else known.index(value))
    if None in values and random.random() < 0.5 and len(known) < 100:
        known.append(None)  # a dictionary may say null as well
        indices = [len(known) - 1 if index is None else index for index in indices]
    if len(known) < 100:
        known += [_anything(entry, random) for _ in range(random.randrange(3))]  # not used
    dictionary = array_of(known, entry, random)
    places = pa.array(indices, kind.index_type)
    return pa.DictionaryArray.from_arrays(places, dictionary)


def _list(filled: list[Any], kind: pa.DataType, bitmap: Any, random: Random) -> pa.Array:
    types = pa.types
    items = [item for value in filled for item in value]
    lengths = [len(value) for value in filled]
    if types.is_map(kind):
        pairs = pa.field(
            "entries", pa.struct([kind.key_field.with_name("key"), kind.item_field]), nullable=False
        )
        names = [field.name for field in pairs.type]
        rows = [dict(zip(names, pair, strict=True)) for pair in items]
        child = _array(rows, pairs, random)
    else:
        child = array_of(items, kind.value_field, random)
    bounds = np.cumsum([0, *lengths])
    wide = types.is_large_list(kind) or types.is_large_list_view(kind)
    width = np.int64 if wide else np.int32
    buffers = [bitmap]
    if types.is_list_view(kind) or types.is_large_list_view(kind):
        buffers += [pa.py_buffer(bounds[:-1].astype(width)), pa.py_buffer(np.array(lengths, width))]
    elif not types.is_fixed_size_list(kind):
        buffers.append(pa.py_buffer(bounds.astype(width)))
    return pa.Array.from_buffers(kind, len(filled), buffers, children=[child])


def rows_of(columns: pa.Schema, count: int, random: Random) -> tuple[list[Any], pa.StructArray]:
    """Rows as Python values, some of them null, and as Arrow has them."""
    row = pa.field("", pa.struct(list(columns)), nullable=random.random() < 0.5)
    values = values_of(row, count, random)
    return values, array_of(values, row, random)
