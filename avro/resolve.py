"""What a reader makes of what a writer wrote, by the rules of the Avro specification. Pure.

A plan has the order of the bytes, so of the writer's schema; `reader` says what comes out. Where
only the bytes decide whether a value can be had (which branch of a union, which symbol of an enum
was written), the plan has a `Refusal` in that place.

Of a reader's union, the first branch of the very same type is taken, else the first that the
value can be promoted to. By the letter of the specification a long read with the same
["double", "long"] that it was written with would become a double; Java's reader prefers the same
type as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from duolog.avro.schema import (
    Array,
    Enum,
    Field,
    Fixed,
    Kind,
    Logical,
    Map,
    Named,
    Primitive,
    Record,
    Reference,
    Schema,
    Union,
    expanded,
)
from duolog.errors import IncompatibleSchema, InvalidSchema


@dataclass(frozen=True, slots=True)
class Value:
    """A primitive or fixed value, promoted where the kinds differ."""

    writer: Primitive | Fixed
    reader: Primitive | Fixed


@dataclass(frozen=True, slots=True)
class Symbol:
    """An enum: for each of the writer's symbols its place among the reader's, or a refusal."""

    writer: Enum
    reader: Enum
    places: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Items:
    """An array."""

    items: Plan
    reader: Array


@dataclass(frozen=True, slots=True)
class Entries:
    """A map."""

    values: Plan
    reader: Map


@dataclass(frozen=True, slots=True)
class Step:
    """One of the writer's fields. `place` is its index among the reader's; None: passed over."""

    name: str
    plan: Plan
    place: int | None


@dataclass(frozen=True, slots=True)
class Members:
    """A record: its steps, and the places of the reader's fields that get their default."""

    steps: tuple[Step, ...]
    defaults: tuple[int, ...]
    reader: Record


@dataclass(frozen=True, slots=True)
class Refusal:
    """What was written so cannot be read."""

    reason: str


@dataclass(frozen=True, slots=True)
class Choice:
    """A writer's union: what to do for each of its branches."""

    branches: tuple[Plan | Refusal, ...]
    reader: Schema


@dataclass(frozen=True, slots=True)
class Branch:
    """A value that becomes one branch of a reader's union."""

    index: int
    plan: Plan
    reader: Union


Plan: TypeAlias = Value | Symbol | Items | Entries | Members | Choice | Branch

_PROMOTIONS: Final = {
    Kind.INT: (Kind.LONG, Kind.FLOAT, Kind.DOUBLE),
    Kind.LONG: (Kind.FLOAT, Kind.DOUBLE),
    Kind.FLOAT: (Kind.DOUBLE,),
    Kind.STRING: (Kind.BYTES,),
    Kind.BYTES: (Kind.STRING,),
}

_MEANINGS: Final = {
    Kind.INT: {"date", "time-millis"},
    Kind.LONG: {"time-micros"}
    | {
        f"{zone}timestamp-{unit}s" for zone in ("", "local-") for unit in ("milli", "micro", "nano")
    },
    Kind.STRING: {"uuid"},
}


def resolve(writer: Schema, reader: Schema | None = None) -> Plan:
    """How the reader reads what the writer wrote; without a reader, as it was written.

    Raises IncompatibleSchema, which names the field, and InvalidSchema for a schema that cannot be
    written out.
    """
    written = expanded(writer)
    try:
        return _Resolution().plan(written, written if reader is None else expanded(reader), "")
    except _Mismatch as mismatch:
        place = f"Field '{mismatch.path}'" if mismatch.path else "The schema"
        raise IncompatibleSchema(
            f"{place} cannot be read with the reader's schema: {mismatch.reason}. Read it with the "
            "schema it was written with, or one that Avro can resolve to it."
        ) from None


def passed_over(writer: Schema) -> Plan:
    """How to find the end of a value that nobody wants: only what its length depends on."""
    bare = _bare(writer)
    return _Resolution().plan(bare, bare, "")


def meaning(schema: Primitive | Fixed) -> Logical | None:
    """The logical type, unless the specification says to ignore it."""
    logical = schema.logical
    if logical is None:
        return None
    if logical.name == "decimal":
        if not 0 <= logical.scale <= logical.precision or not logical.precision:
            return None
        if isinstance(schema, Fixed):
            return logical if 10**logical.precision <= 2 ** (8 * schema.size - 1) else None
        return logical if schema.kind is Kind.BYTES else None
    if isinstance(schema, Fixed):
        return logical if logical.name == "uuid" and schema.size == 16 else None
    return logical if logical.name in _MEANINGS.get(schema.kind, ()) else None


class _Mismatch(Exception):
    """Why no value can be read."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(path, reason)


_MOST_STEPS: Final = 100_000  # two schemas can be small, and their pairs of branches many


class _Resolution:
    def __init__(self) -> None:
        self._steps = 0

    def plan(self, writer: Schema, reader: Schema, path: str) -> Plan:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise InvalidSchema(
                f"The two schemas have more than {_MOST_STEPS} pairs of types to compare. Use "
                "smaller unions."
            )
        if isinstance(writer, Union):
            return self._choice(writer, reader, path)
        if isinstance(reader, Union):
            return self._branch(writer, reader, path)
        match writer, reader:
            case ((Primitive() | Fixed()), (Primitive() | Fixed())):
                _check_value(writer, reader, path)
                return Value(writer, reader)
            case Enum(), Enum():
                _check_names(writer, reader, path)
                return _symbol(writer, reader, path)
            case Array(), Array():
                return Items(self.plan(writer.items, reader.items, f"{path}[]"), reader)
            case Map(), Map():
                return Entries(self.plan(writer.values, reader.values, f"{path}[]"), reader)
            case Record(), Record():
                _check_names(writer, reader, path)
                return self._members(writer, reader, path)
        raise _Mismatch(path, f"{_called(writer)} was written, {_called(reader)} is to be read")

    def _members(self, writer: Record, reader: Record, path: str) -> Members:
        written = {field.name for field in writer.fields}
        by_name = {field.name: place for place, field in enumerate(reader.fields)}
        by_alias = {
            alias: place
            for place, field in enumerate(reader.fields)
            if field.name not in written
            for alias in field.aliases
        }
        missing = set(range(len(reader.fields)))
        steps = []
        for field in writer.fields:
            place = by_name.get(field.name, by_alias.get(field.name))
            if place is None or place not in missing:
                steps.append(Step(field.name, passed_over(field.type), None))
            else:
                missing.remove(place)
                inner = _joined(path, field.name)
                plan = self.plan(field.type, reader.fields[place].type, inner)
                steps.append(Step(field.name, plan, place))
        for place in sorted(missing):
            if reader.fields[place].default is None:
                raise _Mismatch(
                    _joined(path, reader.fields[place].name),
                    "it was not written, and it has no default",
                )
        return Members(tuple(steps), tuple(sorted(missing)), reader)

    def _choice(self, writer: Union, reader: Schema, path: str) -> Choice:
        branches: list[Plan | Refusal] = []
        for branch in writer.branches:
            try:
                branches.append(self.plan(branch, reader, path))
            except _Mismatch as mismatch:
                inner = mismatch.path.removeprefix(path).removeprefix(".")
                where = f"its '{inner}': " if inner else ""
                branches.append(Refusal(where + mismatch.reason))
        if all(isinstance(branch, Refusal) for branch in branches):
            raise _Mismatch(
                path, f"{_called(reader)} is to be read, which no branch of the union written gives"
            )
        return Choice(tuple(branches), reader)

    def _branch(self, writer: Schema, reader: Union, path: str) -> Branch:
        refused: _Mismatch | None = None
        for index in _candidates(writer, reader):
            try:
                return Branch(index, self.plan(writer, reader.branches[index], path), reader)
            except _Mismatch as mismatch:
                refused = refused or mismatch
        if refused is not None:
            raise refused
        raise _Mismatch(path, f"{_called(writer)} was written, which the union to be read lacks")


def _check_value(writer: Primitive | Fixed, reader: Primitive | Fixed, path: str) -> None:
    match writer, reader:
        case Fixed(), Fixed():
            _check_names(writer, reader, path)
            if writer.size != reader.size:
                raise _Mismatch(path, f"'{reader.name}' was {writer.size} bytes, not {reader.size}")
        case Primitive(kind=was), Primitive(kind=wanted) if (
            was is wanted or wanted in _PROMOTIONS.get(was, ())
        ):
            pass
        case _:
            raise _Mismatch(path, f"{_called(writer)} was written, {_called(reader)} is to be read")
    was_meant, is_meant = meaning(writer), meaning(reader)
    if was_meant and is_meant and was_meant != is_meant:
        raise _Mismatch(path, f"{_shown(was_meant)} would be read as {_shown(is_meant)}")
    if is_meant and is_meant.name == "decimal" and writer == Primitive(Kind.STRING):
        raise _Mismatch(path, "text would be read as a decimal's bytes")


def _symbol(writer: Enum, reader: Enum, path: str) -> Symbol:
    known = {symbol: place for place, symbol in enumerate(reader.symbols)}
    default = None if reader.default is None else known.get(reader.default)
    places = tuple(known.get(symbol, default) for symbol in writer.symbols)
    if writer.symbols and all(place is None for place in places):
        raise _Mismatch(path, f"enum '{reader.name}' has none of the symbols written")
    return Symbol(writer, reader, places)


def _candidates(writer: Schema, reader: Union) -> Iterator[int]:
    """Branches of the same type first, then those of the same short name, then promotions."""
    ranked: dict[int, list[int]] = {0: [], 1: [], 2: []}
    for index, branch in enumerate(reader.branches):
        if isinstance(writer, Primitive) and isinstance(branch, Primitive):
            if writer.kind is branch.kind:
                ranked[0].append(index)
            elif branch.kind in _PROMOTIONS.get(writer.kind, ()):
                ranked[2].append(index)
        elif type(writer) is type(branch):
            if not isinstance(writer, Fixed | Enum | Record) or _is_called(branch, writer.name):
                ranked[0].append(index)
            elif _has_same_name(writer, branch):
                ranked[1].append(index)
    for rank in ranked.values():
        yield from rank


def _check_names(writer: Named, reader: Named, path: str) -> None:
    if not _has_same_name(writer, reader):
        raise _Mismatch(
            path,
            f"{_called(writer)} was written, {_called(reader)} is to be read, without an alias",
        )


def _is_called(reader: Schema, name: str) -> bool:
    return isinstance(reader, Fixed | Enum | Record) and name in (reader.name, *reader.aliases)


def _has_same_name(writer: Named, reader: Schema) -> bool:
    """By the last part of the name, as the specification compares them, or by a full alias."""
    if not isinstance(reader, Fixed | Enum | Record):
        return False
    same = writer.name.rpartition(".")[2] == reader.name.rpartition(".")[2]
    return same or writer.name in reader.aliases


def _bare(schema: Schema) -> Schema:
    match schema:
        case Primitive(kind=Kind.INT | Kind.LONG) | Enum():
            return Primitive(Kind.LONG)
        case Primitive(kind=Kind.BYTES | Kind.STRING):
            return Primitive(Kind.BYTES)
        case Primitive(kind=kind):
            return Fixed("bytes", _SIZES[kind])
        case Fixed(size=size):
            return Fixed("bytes", size)
        case Array(items=items):
            return Array(_bare(items))
        case Map(values=values):
            return Map(_bare(values))
        case Record(name=name, fields=fields):
            return Record(name, tuple(Field(field.name, _bare(field.type)) for field in fields))
        case Union(branches=branches):
            return Union(tuple(_bare(branch) for branch in branches))
        case Reference(name=name):
            raise TypeError(f"Reference to '{name}' in an expanded schema")


_SIZES: Final = {Kind.NULL: 0, Kind.BOOLEAN: 1, Kind.FLOAT: 4, Kind.DOUBLE: 8}


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _called(schema: Schema) -> str:
    match schema:
        case Primitive(kind=kind):
            return f"{kind}"
        case Fixed(name=name) | Enum(name=name) | Record(name=name):
            return f"{type(schema).__name__.lower()} '{name}'"
        case _:
            return type(schema).__name__.lower()


def _shown(logical: Logical) -> str:
    if logical.name == "decimal":
        return f"decimal({logical.precision}, {logical.scale})"
    return logical.name
