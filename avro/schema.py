"""Avro schemas as plain values.

    parse.py    text -> Schema          text.py   Schema -> text
    from_arrow  Arrow columns -> Schema to_arrow  Schema -> Arrow columns

Frozen and hashable, without any library, since they travel into Spark tasks. A named type is
written out where it is first met, in the order of the text, and is a `Reference` wherever its name
comes again, also inside itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, TypeAlias

from duolog.errors import InvalidSchema

Properties: TypeAlias = tuple[tuple[str, str], ...]
"""Further attributes, name and JSON text, in the order of the schema's text."""

MAX_DEPTH: Final = 64
"""Of nested types. What is deeper is refused before it can exhaust a stack."""


class Kind(StrEnum):
    """The primitive types."""

    NULL = "null"
    BOOLEAN = "boolean"
    INT = "int"
    LONG = "long"
    FLOAT = "float"
    DOUBLE = "double"
    BYTES = "bytes"
    STRING = "string"


@dataclass(frozen=True, slots=True)
class Logical:
    """What the bytes mean. Precision and scale are of decimals alone."""

    name: str  # decimal, date, time-millis, time-micros, timestamp-millis, uuid ...
    precision: int = 0
    scale: int = 0


@dataclass(frozen=True, slots=True)
class Primitive:
    """A type without a name of its own."""

    kind: Kind
    logical: Logical | None = None
    properties: Properties = ()


@dataclass(frozen=True, slots=True)
class Fixed:
    """So many bytes."""

    name: str  # names are full: namespace, dot, name
    size: int
    logical: Logical | None = None
    aliases: tuple[str, ...] = ()
    doc: str | None = None
    properties: Properties = ()


@dataclass(frozen=True, slots=True)
class Enum:
    """One of some words."""

    name: str
    symbols: tuple[str, ...]
    default: str | None = None
    aliases: tuple[str, ...] = ()
    doc: str | None = None
    properties: Properties = ()


@dataclass(frozen=True, slots=True)
class Array:
    """A list."""

    items: Schema
    properties: Properties = ()


@dataclass(frozen=True, slots=True)
class Map:
    """Values by strings."""

    values: Schema
    properties: Properties = ()


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a record."""

    name: str
    type: Schema
    default: str | None = None  # JSON text; None: there is no default ("null" is one)
    order: str | None = None  # ascending, descending, ignore, as it was written
    aliases: tuple[str, ...] = ()
    doc: str | None = None
    properties: Properties = ()


@dataclass(frozen=True, slots=True)
class Record:
    """Fields, one behind the other."""

    name: str
    fields: tuple[Field, ...]
    aliases: tuple[str, ...] = ()
    doc: str | None = None
    properties: Properties = ()
    is_error: bool = field(default=False)


@dataclass(frozen=True, slots=True)
class Union:
    """One of several types, none of them a union."""

    branches: tuple[Schema, ...]


@dataclass(frozen=True, slots=True)
class Reference:
    """A named type that was written out before."""

    name: str


Named: TypeAlias = Fixed | Enum | Record
Schema: TypeAlias = Primitive | Fixed | Enum | Array | Map | Record | Union | Reference

NULL: Final = Primitive(Kind.NULL)


def children(schema: Schema) -> Iterator[Schema]:
    """The types directly inside."""
    match schema:
        case Array(items=inner) | Map(values=inner):
            yield inner
        case Record(fields=fields):
            yield from (member.type for member in fields)
        case Union(branches=branches):
            yield from branches


def named_types(schema: Schema) -> dict[str, Named]:
    """All named types that are written out, by full name."""
    found: dict[str, Named] = {}
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Fixed | Enum | Record):
            found[node.name] = node
        waiting.extend(children(node))
    return found


def expanded(schema: Schema) -> Schema:
    """Without references: each replaced by what it names.

    Raises InvalidSchema for a type that contains itself, which has no end written out, and for
    what becomes deeper or larger than any table.
    """
    return _Expansion(named_types(schema)).expand(schema, (), 0)


_MAX_NODES = 10_000  # about a second's work


class _Expansion:
    def __init__(self, types: dict[str, Named]) -> None:
        self._types = types
        self._nodes = 0

    def expand(self, schema: Schema, inside: tuple[str, ...], depth: int) -> Schema:
        self._nodes += 1
        if self._nodes > _MAX_NODES:
            raise InvalidSchema(
                f"Written out, the schema has more than {_MAX_NODES} types. Use fewer references."
            )
        if depth > MAX_DEPTH:
            raise InvalidSchema(
                f"Written out, the schema is more than {MAX_DEPTH} types deep. Make it flatter."
            )
        if isinstance(schema, Reference):
            if schema.name not in self._types:
                raise InvalidSchema(f"The schema refers to '{schema.name}', which is not in it.")
            schema = self._types[schema.name]
        if isinstance(schema, Record):
            if schema.name in inside:
                raise InvalidSchema(
                    f"Record '{schema.name}' contains itself, which columns cannot. Give the inner "
                    "one a type of its own, as deep as it is needed."
                )
            inside = (*inside, schema.name)
        match schema:
            case Array(items=items):
                return replace(schema, items=self.expand(items, inside, depth + 1))
            case Map(values=values):
                return replace(schema, values=self.expand(values, inside, depth + 1))
            case Union(branches=branches):
                return Union(tuple(self.expand(branch, inside, depth + 1) for branch in branches))
            case Record(fields=fields):
                return replace(
                    schema,
                    fields=tuple(
                        replace(member, type=self.expand(member.type, inside, depth + 1))
                        for member in fields
                    ),
                )
            case _:
                return schema


def nullable(schema: Schema) -> tuple[Schema, int] | None:
    """Of a union of null and one other type: that type, and which branch null is."""
    if isinstance(schema, Union) and len(schema.branches) == 2:
        for index, branch in enumerate(schema.branches):
            if isinstance(branch, Primitive) and branch.kind is Kind.NULL:
                return schema.branches[1 - index], index
    return None
