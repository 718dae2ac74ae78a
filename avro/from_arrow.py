"""Arrow columns as an Avro record.

| Arrow                                                  | Avro                              |
|--------------------------------------------------------|-----------------------------------|
| null, bool                                             | null, boolean                     |
| int8, int16, int32, uint8, uint16                      | int                               |
| int64, uint32                                          | long                              |
| uint64                                                 | bytes, decimal(20,0)              |
| float16, float32; float64                              | float; double                     |
| string, binary (large ones and views too)              | string, bytes                     |
| fixed_size_binary(n)                                   | fixed                             |
| decimal(p, s)                                          | bytes, decimal(p,s)               |
| date32, date64                                         | int, date                         |
| time32; time64[us]                                     | time-millis; time-micros          |
| timestamp with a zone: s and ms, us, ns                | timestamp-millis, -micros, -nanos |
| timestamp without one                                  | local-timestamp-...               |
| string or fixed_size_binary(16) with `avro.logical`    | string or fixed, uuid             |
| = `uuid` in the field's metadata; arrow.uuid           |                                   |
| dictionary of strings with `avro.enum` = a JSON list   | enum                              |
| of symbols in the field's metadata                     |                                   |
| dictionary otherwise                                   | as its values                     |
| list of any kind                                       | array                             |
| map with string keys; with others                      | map; array of record {key, value} |
| struct                                                 | record                            |

What may be null is a union of null and its type, with the default null; the field's metadata may
give another as JSON text in `avro.default`, and its doc in `comment`. A type that needs a name has
that of its column, in a namespace that is the full name of the record around it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from duolog.avro.defaults import DefaultCheck
from duolog.avro.json_tree import Json, json_text, read_json
from duolog.avro.names import (
    MAX_FULL_NAME_CHARACTERS,
    PRIMITIVE_NAMES,
    avro_name,
    is_avro_name,
    type_name,
)
from duolog.avro.schema import (
    MAX_DEPTH,
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
    Schema,
    Union,
)
from duolog.errors import InvalidRows, InvalidSchema
from duolog.log.routing.kinds import is_string, without_view
from duolog.log.routing.optional import is_optional, unwrapped

LOGICAL: Final = b"avro.logical"
ENUM: Final = b"avro.enum"
DEFAULT: Final = b"avro.default"
COMMENT: Final = b"comment"
UUID: Final = "uuid"

_INT: Final = Primitive(Kind.INT)
_LONG: Final = Primitive(Kind.LONG)
_FLOAT: Final = Primitive(Kind.FLOAT)
_STRING: Final = Primitive(Kind.STRING)
_BYTES: Final = Primitive(Kind.BYTES)
_DATE: Final = Primitive(Kind.INT, Logical("date"))
_TIME_MILLIS: Final = Primitive(Kind.INT, Logical("time-millis"))

_PLAIN: Final = {
    pa.null(): NULL,
    pa.bool_(): Primitive(Kind.BOOLEAN),
    pa.int8(): _INT,
    pa.int16(): _INT,
    pa.int32(): _INT,
    pa.uint8(): _INT,
    pa.uint16(): _INT,
    pa.int64(): _LONG,
    pa.uint32(): _LONG,
    pa.uint64(): Primitive(Kind.BYTES, Logical("decimal", 20, 0)),
    pa.float16(): _FLOAT,
    pa.float32(): _FLOAT,
    pa.float64(): Primitive(Kind.DOUBLE),
    pa.string(): _STRING,
    pa.large_string(): _STRING,
    pa.binary(): _BYTES,
    pa.large_binary(): _BYTES,
    pa.date32(): _DATE,
    pa.date64(): _DATE,
    pa.time32("s"): _TIME_MILLIS,
    pa.time32("ms"): _TIME_MILLIS,
    pa.time64("us"): Primitive(Kind.LONG, Logical("time-micros")),
}
_TIMESTAMP: Final = {"s": "millis", "ms": "millis", "us": "micros", "ns": "nanos"}
_DEFAULT_STEPS: Final = 1_000_000


def record_of(columns: pa.Schema | pa.StructType, name: str, *, doc: str | None = None) -> Record:
    """The record with these columns as fields.

    `name` is its full name. InvalidRows names a column that Avro has no form for.
    """
    parts = name.split(".")
    if not all(map(is_avro_name, parts)) or parts[-1] in PRIMITIVE_NAMES:
        raise InvalidSchema(
            f"'{name}' cannot name a record: use letters, digits and _ between dots, no part with "
            "a digit first, and no primitive type's name."
        )
    return _record(columns, _Place(name, "", 1), doc)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a type stands."""

    full_name: str  # of its type, should that need one
    path: str  # of columns, for messages
    depth: int

    @property
    def name(self) -> str:
        """The name, now that the type needs one."""
        if len(self.full_name) > MAX_FULL_NAME_CHARACTERS:
            raise InvalidRows(
                f"Column '{self.path}' needs a type named by its path, of more than "
                f"{MAX_FULL_NAME_CHARACTERS} characters. Rename or flatten it."
            )
        return self.full_name

    def branch(self) -> _Place:
        return replace(self, depth=self.depth + 1)

    def items(self) -> _Place:
        """Of a list's items and a map's values, whose types take the name of their column."""
        return replace(self, path=f"{self.path}[]", depth=self.depth + 1)

    def member(self, column: str) -> _Place:
        path = f"{self.path}.{column}" if self.path else column
        return _Place(f"{self.full_name}.{type_name(column)}", path, self.depth + 1)


def _record(columns: pa.Schema | pa.StructType, place: _Place, doc: str | None = None) -> Record:
    fields: list[Field] = []
    taken: set[str] = set()
    for column in columns:
        if column.name in taken:
            raise InvalidRows(
                f"Column '{place.member(column.name).path}' is there twice. Rename one of them."
            )
        taken.add(column.name)
        fields.append(_field(column, place))
    return Record(place.name, tuple(fields), doc=doc)


def _field(column: pa.Field, around: _Place) -> Field:
    name = avro_name(column.name)
    place = around.member(column.name)
    if is_optional(column):
        column = unwrapped(column).with_nullable(nullable=True)
    metadata = column.metadata or {}
    doc = metadata.get(COMMENT, b"").decode(errors="replace") or None
    kind = _nullable(column, place)
    default = _default(metadata[DEFAULT], place) if DEFAULT in metadata else None
    if DEFAULT in metadata and not DefaultCheck(lambda _: None, _DEFAULT_STEPS).fits(kind, default):
        raise InvalidRows(
            f"Column '{place.path}' of type {column.type} cannot have the default "
            f"{json_text(default)} (metadata '{DEFAULT.decode()}')."
        )
    if default is not None:
        if isinstance(kind, Union):  # the first branch is the one that old readers compare with
            kind = Union(kind.branches[::-1])
        return Field(name, kind, json_text(default), doc=doc)
    return Field(name, kind, "null" if isinstance(kind, Union) or kind == NULL else None, doc=doc)


def _default(text: bytes, place: _Place) -> Json:
    try:
        return read_json(text.decode())
    except (InvalidSchema, UnicodeDecodeError) as failure:
        raise InvalidRows(
            f"Column '{place.path}' has no JSON as its default (metadata "
            f"'{DEFAULT.decode()}'): {failure}"
        ) from None


def _nullable(field: pa.Field, place: _Place) -> Schema:
    """The type of a field's values, which may be null if the field says so."""
    if not field.nullable or field.type == pa.null():
        return _type(field, field.type, place)
    return Union((NULL, _type(field, field.type, place.branch())))


def _type(field: pa.Field, kind: pa.DataType, place: _Place) -> Schema:
    if place.depth > MAX_DEPTH:
        raise InvalidRows(
            f"Column '{place.path}' is nested too deeply: Avro types go to {MAX_DEPTH} here, and "
            "each one that may be null counts twice. Flatten it."
        )
    if isinstance(kind, pa.BaseExtensionType):
        if kind.extension_name == "arrow.uuid":
            return Primitive(Kind.STRING, Logical(UUID))
        raise _refused(kind, place)
    kind = without_view(kind)
    logical = (field.metadata or {}).get(LOGICAL)
    if logical is not None and not pa.types.is_dictionary(kind):
        return _uuid(logical.decode(errors="replace"), kind, place)
    if kind in _PLAIN:
        return _PLAIN[kind]
    if pa.types.is_fixed_size_binary(kind):
        return Fixed(place.name, kind.byte_width)
    if pa.types.is_decimal(kind) and 0 <= kind.scale <= kind.precision:
        return Primitive(Kind.BYTES, Logical("decimal", kind.precision, kind.scale))
    if pa.types.is_timestamp(kind):
        local = "local-" if kind.tz is None else ""
        return Primitive(Kind.LONG, Logical(f"{local}timestamp-{_TIMESTAMP[kind.unit]}"))
    if pa.types.is_dictionary(kind):
        symbols = (field.metadata or {}).get(ENUM)
        if symbols is not None and is_string(without_view(kind.value_type)):
            return Enum(place.name, _symbols(symbols, place))
        return _type(field, kind.value_type, place)
    if pa.types.is_struct(kind):
        return _record(kind, place)
    if pa.types.is_map(kind):
        return _map(kind, place)
    if _is_list(kind):
        return Array(_nullable(kind.value_field, place.items()))
    raise _refused(kind, place)


def _map(kind: pa.MapType, place: _Place) -> Schema:
    key = kind.key_type.value_type if pa.types.is_dictionary(kind.key_type) else kind.key_type
    if is_string(without_view(key)):
        return Map(_nullable(kind.item_field, place.items()))
    entry = pa.struct([kind.key_field.with_name("key"), kind.item_field.with_name("value")])
    return Array(_record(entry, place.items()))


def _uuid(logical: str, kind: pa.DataType, place: _Place) -> Schema:
    if logical == UUID and is_string(kind):
        return Primitive(Kind.STRING, Logical(UUID))
    if logical == UUID and kind == pa.binary(16):
        return Fixed(place.name, 16, Logical(UUID))
    raise InvalidRows(
        f"Column '{place.path}' of type {kind} has the metadata {LOGICAL.decode()}={logical!r}. "
        f"It goes as {UUID!r} on strings and on fixed_size_binary(16) alone; remove it."
    )


def _symbols(text: bytes, place: _Place) -> tuple[str, ...]:
    try:
        symbols = read_json(text.decode())
    except (InvalidSchema, UnicodeDecodeError):
        symbols = None
    if isinstance(symbols, list):
        names = [name for name in symbols if isinstance(name, str) and is_avro_name(name)]
        if len(set(names)) == len(symbols):
            return tuple(names)
    raise InvalidRows(
        f"Column '{place.path}' has {text!r} as its symbols (metadata '{ENUM.decode()}'). It must "
        "be a JSON list of names, each once: letters, digits and _, not a digit first."
    )


def _is_list(kind: pa.DataType) -> bool:
    views = ("is_list_view", "is_large_list_view")  # since pyarrow 16
    return bool(
        pa.types.is_list(kind)
        or pa.types.is_large_list(kind)
        or pa.types.is_fixed_size_list(kind)
        or any(getattr(pa.types, view)(kind) for view in views if hasattr(pa.types, view))
    )


def _refused(kind: pa.DataType, place: _Place) -> InvalidRows:
    return InvalidRows(
        f"Column '{place.path}' is of type {kind}, which Avro has no form for. {_advice(kind)}"
    )


def _advice(kind: pa.DataType) -> str:
    if pa.types.is_time64(kind):
        return "Cast it to time64[us]."
    if pa.types.is_duration(kind):
        return "Cast it to int64."
    if pa.types.is_decimal(kind):
        return f"Cast it to a decimal with a scale of 0 to {kind.precision}."
    if pa.types.is_union(kind):
        return "Make it a struct with a field for each of its types."
    if isinstance(kind, pa.BaseExtensionType):
        return f"Cast it to {kind.storage_type}."
    return "Cast it to a number or a string."
