"""Whether one schema reads what another wrote. Pure.

The rules, the names of the differences and the paths to them are those of Avro's Java library, on
which Confluent's registry stands:

- a field of the reader is looked for by its name, then by its aliases; what the writer has not
  needs a default;
- int reads as long, float and double, long as float and double, float as double, bytes and string
  as one another;
- each branch of the writer's union has to be readable, and one branch of the reader's suffices;
- records, enums and fixed types are the same when their names without namespace are, or when the
  reader has the writer's full name as an alias;
- a default makes an enum accept words it does not know.

Logical types count for nothing there, so they count for nothing here: a decimal that gets another
scale, or a long that becomes a timestamp, is compatible, and its old values will be read as other
ones. Nor is it noticed that bytes which become a string are not UTF-8.

Where that library would fail (a field that could be read from two), or forgets what it had only
assumed of a type that contains itself, the pair is incompatible here.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from duolog.avro.schema import (
    Array,
    Enum,
    Field,
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
from duolog.errors import InvalidSchema


class Difference(StrEnum):
    """What stands against reading."""

    NAME_MISMATCH = "NAME_MISMATCH"
    FIXED_SIZE_MISMATCH = "FIXED_SIZE_MISMATCH"
    MISSING_ENUM_SYMBOLS = "MISSING_ENUM_SYMBOLS"
    READER_FIELD_MISSING_DEFAULT_VALUE = "READER_FIELD_MISSING_DEFAULT_VALUE"
    TYPE_MISMATCH = "TYPE_MISMATCH"
    MISSING_UNION_BRANCH = "MISSING_UNION_BRANCH"
    AMBIGUOUS_FIELD = "AMBIGUOUS_FIELD"  # for which Java raises


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """One difference, and where it is."""

    type: Difference
    path: str  # a JSON pointer into the reader: /fields/0/type
    field: str  # the names on the way there, with dots; empty at the top
    message: str  # a sentence of ours
    detail: str  # as Java words it


Types: TypeAlias = Mapping[str, Named]

MAX_COMPARISONS: Final = 500_000
"""Of pairs of types. Two schemas can be small and their pairs many."""

_READS: Final = {
    Kind.LONG: frozenset({Kind.INT}),
    Kind.FLOAT: frozenset({Kind.INT, Kind.LONG}),
    Kind.DOUBLE: frozenset({Kind.INT, Kind.LONG, Kind.FLOAT}),
    Kind.BYTES: frozenset({Kind.STRING}),
    Kind.STRING: frozenset({Kind.BYTES}),
}


def incompatibilities(
    reader: Schema,
    writer: Schema,
    *,
    reader_types: Types | None = None,
    writer_types: Types | None = None,
) -> tuple[Incompatibility, ...]:
    """What keeps `reader` from reading all that `writer` writes, in the order of the reader.

    `reader_types` and `writer_types` are named types that stand outside the schemas' own trees.
    Raises InvalidSchema for a pair that is too large to compare.
    """
    comparison = _Comparison(
        {**(reader_types or {}), **named_types(reader)},
        {**(writer_types or {}), **named_types(writer)},
    )
    found = dict.fromkeys(comparison.run(reader, writer))
    return tuple(finding.told() for finding in found)


@dataclass(frozen=True, slots=True, eq=False)
class _Place:
    """A step on the way from the top; written out only where a difference is found."""

    steps: tuple[str, ...] = ()
    field: str | None = None
    before: _Place | None = None

    def at(self, *steps: str, field: str | None = None) -> _Place:
        return _Place(steps, field, self)

    def differs(self, type_: Difference, detail: str, message: str) -> _Finding:
        return _Finding(type_, self, detail, message)


@dataclass(frozen=True, slots=True, eq=False)
class _Finding:
    """Not yet in words: what is found in one branch of a union is forgotten when another reads."""

    type: Difference
    place: _Place
    detail: str
    message: str

    def told(self) -> Incompatibility:
        path: list[str] = []
        fields: list[str] = []
        place: _Place | None = self.place
        while place is not None:
            path += reversed(place.steps)
            if place.field is not None:
                fields.append(place.field)
            place = place.before
        field = ".".join(reversed(fields))
        where = f"Field '{field}'" if field else "The schema"
        return Incompatibility(
            self.type,
            "/" + "/".join(reversed(path)),
            field,
            f"{where} {self.message}",
            self.detail,
        )


_Found: TypeAlias = tuple[_Finding, ...]
_Question: TypeAlias = tuple[Schema, Schema, _Place]
_Walk: TypeAlias = Generator[_Question, _Found, _Found]


class _Comparison:
    """Each pair of records is looked at once. A pair inside itself is taken to be readable.

    What was found readable on such an assumption is forgotten when the assumption turns out wrong;
    what was found unreadable stays so.
    """

    def __init__(self, reader_types: Types, writer_types: Types) -> None:
        self._reader_types = reader_types
        self._writer_types = writer_types
        self._unreadable: dict[tuple[int, int], _Found] = {}
        self._readable: dict[tuple[int, int], None] = {}  # also those being looked at, in order
        self._comparisons = 0

    def run(self, reader: Schema, writer: Schema) -> _Found:
        """A stack of its own, since types can refer to one another deeper than Python calls."""
        stack: list[_Walk] = [self._pair(reader, writer, _Place())]
        answer: _Found | None = None
        while True:
            try:
                question = next(stack[-1]) if answer is None else stack[-1].send(answer)
            except StopIteration as finished:
                stack.pop()
                found: _Found = finished.value
                if not stack:
                    return found
                answer = found
            else:
                reader, writer, _ = question
                if _is_plain(reader) and reader == writer:
                    answer = ()  # most fields of most pairs, in half the time
                else:
                    stack.append(self._pair(*question))
                    answer = None

    def _pair(self, reader: Schema, writer: Schema, place: _Place) -> _Walk:
        reader = _referred(reader, self._reader_types)
        writer = _referred(writer, self._writer_types)
        self._comparisons += 1
        if self._comparisons > MAX_COMPARISONS:
            raise InvalidSchema(
                f"The schemas have more than {MAX_COMPARISONS} pairs of types to compare. Use "
                "fewer types, or smaller unions."
            )
        if not (isinstance(reader, Record) and isinstance(writer, Record)):
            return (yield from self._compared(reader, writer, place))
        pair = (id(reader), id(writer))
        if pair in self._unreadable:
            return self._unreadable[pair][:1]  # all of them were told before
        if pair in self._readable:
            return ()
        self._readable[pair] = None
        found = yield from self._compared(reader, writer, place)
        if found:
            while next(reversed(self._readable)) != pair:
                self._readable.popitem()
            self._readable.popitem()
            self._unreadable[pair] = found
        return found

    def _compared(self, reader: Schema, writer: Schema, place: _Place) -> _Walk:
        match reader, writer:
            case Union(), Union(branches=branches):
                return (yield from self._union_by_union(reader, branches, place))
            case _, Union(branches=branches):
                found: _Found = ()
                for index, branch in enumerate(branches):
                    found += yield reader, branch, place.at(str(index))
                return found
            case Union(branches=branches), _:
                for branch in branches:
                    if not (yield branch, writer, place):
                        return ()
                return (_missing_branch(writer, place),)
            case Primitive(kind=kind), Primitive(kind=written):
                readable = kind is written or written in _READS.get(kind, ())
                return () if readable else (_other_type(reader, writer, place),)
            case Array(items=items), Array(items=written_items):
                return (yield items, written_items, place.at("items"))
            case Map(values=values), Map(values=written_values):
                return (yield values, written_values, place.at("values"))
            case Fixed(), Fixed():
                return _names(reader, writer, place) + _sizes(reader, writer, place)
            case Enum(), Enum():
                return _names(reader, writer, place) + _symbols(reader, writer, place)
            case Record(), Record():
                named = _names(reader, writer, place)
                return named + (yield from self._fields(reader, writer, place))
            case _:
                return (_other_type(reader, writer, place),)

    def _union_by_union(self, reader: Union, branches: tuple[Schema, ...], place: _Place) -> _Walk:
        found: _Found = ()
        for index, branch in enumerate(branches):
            branch_place = place.at(str(index))
            if (yield reader, branch, branch_place):
                found += (_missing_branch(_referred(branch, self._writer_types), branch_place),)
        return found

    def _fields(self, reader: Record, writer: Record, place: _Place) -> _Walk:
        written = {field.name: field for field in writer.fields}
        found: _Found = ()
        for index, field in enumerate(reader.fields):
            field_place = place.at("fields", str(index), field=field.name)
            sources = [written[name] for name in (field.name, *field.aliases) if name in written]
            sources = list({source.name: source for source in sources}.values())
            if len(sources) > 1:
                found += (_ambiguous(field, sources, field_place),)
            elif sources:
                found += yield field.type, sources[0].type, field_place.at("type")
            elif field.default is None:
                found += (
                    field_place.differs(
                        Difference.READER_FIELD_MISSING_DEFAULT_VALUE,
                        field.name,
                        "is not in what was written, and has no default to stand for it.",
                    ),
                )
        return found


def _referred(schema: Schema, types: Types) -> Schema:
    if not isinstance(schema, Reference):
        return schema
    if schema.name not in types:
        raise InvalidSchema(f"The schema refers to '{schema.name}', which is not in it.")
    return types[schema.name]


def _is_plain(schema: Schema) -> bool:
    """A primitive type, or a union of some."""
    if isinstance(schema, Union):
        return all(isinstance(branch, Primitive) for branch in schema.branches)
    return isinstance(schema, Primitive)


def _names(reader: Named, writer: Named, place: _Place) -> _Found:
    if _simple(reader.name) == _simple(writer.name) or writer.name in reader.aliases:
        return ()
    return (
        place.at("name").differs(
            Difference.NAME_MISMATCH,
            f"expected: {writer.name}",
            f"is called '{reader.name}', and '{writer.name}' where it was written. Give it that "
            "name, or that alias.",
        ),
    )


def _simple(name: str) -> str:
    return name.rpartition(".")[2]


def _sizes(reader: Fixed, writer: Fixed, place: _Place) -> _Found:
    if reader.size == writer.size:
        return ()
    return (
        place.at("size").differs(
            Difference.FIXED_SIZE_MISMATCH,
            f"expected: {writer.size}, found: {reader.size}",
            f"has {reader.size} bytes, and {writer.size} where it was written.",
        ),
    )


def _symbols(reader: Enum, writer: Enum, place: _Place) -> _Found:
    missing = sorted(set(writer.symbols) - set(reader.symbols))
    if not missing or reader.default in reader.symbols:
        return ()
    return (
        place.at("symbols").differs(
            Difference.MISSING_ENUM_SYMBOLS,
            f"[{', '.join(missing)}]",
            f"does not know the words {', '.join(missing)}, and has no default for them.",
        ),
    )


def _other_type(reader: Schema, writer: Schema, place: _Place) -> _Finding:
    return place.differs(
        Difference.TYPE_MISMATCH,
        f"reader type: {type_word(reader).upper()} not compatible with writer type: "
        f"{type_word(writer).upper()}",
        f"is {_article(reader)}, which cannot be read from {_article(writer)}.",
    )


def _missing_branch(writer: Schema, place: _Place) -> _Finding:
    return place.differs(
        Difference.MISSING_UNION_BRANCH,
        f"reader union lacking writer type: {type_word(writer).upper()}",
        f"has no branch that reads {_article(writer)}.",
    )


def _ambiguous(field: Field, sources: list[Field], place: _Place) -> _Finding:
    names = ", ".join(source.name for source in sources)
    return place.differs(
        Difference.AMBIGUOUS_FIELD,
        f"reader field {field.name} matches multiple fields of the writer: {names}",
        f"could be read from each of {names}. Drop an alias.",
    )


def type_word(schema: Schema) -> str:
    """A type in one word, as it is written in schemas."""
    match schema:
        case Primitive(kind=kind):
            return kind.value
        case Reference(name=name):
            return name
        case _:
            return type(schema).__name__.lower()


def _article(schema: Schema) -> str:
    word = type_word(schema)
    name = f" '{schema.name}'" if isinstance(schema, Fixed | Enum | Record) else ""
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word}{name}"


class Level(StrEnum):
    """What a subject promises of its versions."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"  # the new one reads what the last one wrote
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"  # … what any before wrote
    FORWARD = "FORWARD"  # the last one reads what the new one writes
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"  # both
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def is_transitive(self) -> bool:
        return self.value.endswith("_TRANSITIVE")

    @property
    def is_backward(self) -> bool:
        return self.value.startswith(("BACKWARD", "FULL"))

    @property
    def is_forward(self) -> bool:
        return self.value.startswith(("FORWARD", "FULL"))
