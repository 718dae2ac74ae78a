"""Avro schemas at random, all valid."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from duolog.avro.schema import (
    NULL,
    Array,
    Enum,
    Field,
    Fixed,
    Kind,
    Logical,
    Map,
    Named,
    Primitive,
    Properties,
    Record,
    Reference,
    Schema,
    Union,
)

Draw = Callable[[st.SearchStrategy[Any]], Any]

NAMES = st.sampled_from(["a", "b", "Order", "qty", "_", "x1", "T", "record", "union"])
SPACES = st.sampled_from(["", "shop", "shop.Order", "a.b_c"])
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)  # fmt: skip
_UNITS = ("millis", "micros", "nanos")
LOGICAL_KINDS = {
    Kind.INT: ["date", "time-millis"],
    Kind.LONG: ["time-micros", *(f"{a}timestamp-{b}" for a in ("", "local-") for b in _UNITS)],
    Kind.STRING: ["uuid"],
}


@dataclass
class _Types:
    """The types of one schema."""

    open: list[str] = field(default_factory=list)
    done: dict[str, Named] = field(default_factory=dict)
    aliases: int = 0

    @property
    def names(self) -> list[str]:
        return [*self.open, *self.done]


@st.composite
def schemas(draw: Draw, *, depth: int = 3, defaults: bool = True) -> Schema:
    """A schema of any kind."""
    return _schema(draw, _Types(), "", depth, defaults=defaults)


@st.composite
def records(draw: Draw, *, depth: int = 3, defaults: bool = True) -> Record:
    """A schema that is a record."""
    return _record(draw, _Types(), "", depth, defaults=defaults)


def _schema(draw: Draw, types: _Types, space: str, depth: int, *, defaults: bool) -> Schema:
    kinds = ["primitive", "primitive", "fixed", "enum", "reference"]
    if depth > 0:
        kinds += ["array", "map", "union", "record", "record"]
    match draw(st.sampled_from(kinds)):
        case "fixed":
            return _fixed(draw, types, space)
        case "enum":
            return _enum(draw, types, space)
        case "reference" if usable := _usable(types, space):
            return Reference(draw(st.sampled_from(usable)))
        case "array":
            inner = _schema(draw, types, space, depth - 1, defaults=defaults)
            return Array(inner, draw(properties()))
        case "map":
            inner = _schema(draw, types, space, depth - 1, defaults=defaults)
            return Map(inner, draw(properties()))
        case "record":
            return _record(draw, types, space, depth, defaults=defaults)
        case "union":
            branches: dict[str, Schema] = {}
            for _ in range(draw(st.integers(1, 3))):
                before = dict(types.done)
                branch = _schema(draw, types, space, depth - 1, defaults=defaults)
                if isinstance(branch, Union) or _branch_name(branch) in branches:
                    types.done = before
                else:
                    branches[_branch_name(branch)] = branch
            return Union(tuple(branches.values()) or (NULL,))
    return _primitive(draw)


def _usable(types: _Types, space: str) -> list[str]:
    """What can be mentioned here: the specification has no way out of a namespace to none."""
    return [name for name in types.names if "." in name or not space]


def _branch_name(schema: Schema) -> str:
    match schema:
        case Primitive(kind=kind):
            return str(kind)
        case Fixed() | Enum() | Record() | Reference():
            return schema.name
        case _:
            return type(schema).__name__


def _primitive(draw: Draw) -> Primitive:
    kind = draw(st.sampled_from(list(Kind)))
    logical = None
    if kind is Kind.BYTES and draw(st.booleans()):
        logical = draw(_decimals(60))
    elif kind in LOGICAL_KINDS and draw(st.booleans()):
        logical = Logical(draw(st.sampled_from(LOGICAL_KINDS[kind])))
    return Primitive(kind, logical, draw(properties()))


@st.composite
def _decimals(draw: Draw, longest: int) -> Logical:
    precision = draw(st.integers(1, longest))
    return Logical("decimal", precision, draw(st.integers(0, precision)))


@st.composite
def properties(draw: Draw) -> Properties:
    """Attributes that Avro does not know."""
    names = st.sampled_from(["owner", "x-y", "avro.java.string", "größe", "a", "zz"])
    found = draw(st.dictionaries(names, JSON, max_size=2) if draw(st.booleans()) else st.just({}))
    return tuple(
        (name, json.dumps(value, ensure_ascii=False, separators=(",", ":")))
        for name, value in found.items()
    )


def _name(draw: Draw, types: _Types, space: str) -> str:
    own = draw(st.just(space) | SPACES)
    simple = draw(NAMES)
    full = f"{own}.{simple}" if own else simple
    while full in types.names:
        full += "_"
    types.open.append(full)
    return full


def _finish(types: _Types, named: Named) -> None:
    types.open.remove(named.name)
    types.done[named.name] = named


def _aliases(draw: Draw, types: _Types, full: str = "") -> tuple[str, ...]:
    """Full, if the name of their type is given."""
    own = full.rpartition(".")[0]
    aliases = []
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        types.aliases += 1
        alias = draw(st.sampled_from(["old{}", "an old-one {}", "x.old{}", "x.y.old{}", ".old{}"]))
        alias = alias.format(types.aliases)
        if full and alias.startswith("."):
            alias = alias[1:]
        elif full and own and "." not in alias:
            alias = f"{own}.{alias}"
        aliases.append(alias)
    return tuple(aliases)


def _fixed(draw: Draw, types: _Types, space: str) -> Fixed:
    name = _name(draw, types, space)
    size = draw(st.sampled_from([0, 1, 3, 16]))
    logical = None
    if size and draw(st.booleans()):
        logical = draw(_decimals({1: 2, 3: 6, 16: 38}[size]))
    elif size == 16:
        logical = draw(st.sampled_from([None, Logical("uuid")]))
    doc, props = draw(st.none() | TEXT), draw(properties())
    fixed = Fixed(name, size, logical, _aliases(draw, types, name), doc, props)
    _finish(types, fixed)
    return fixed


def _enum(draw: Draw, types: _Types, space: str) -> Enum:
    name = _name(draw, types, space)
    symbols = draw(st.lists(NAMES, unique=True, min_size=1, max_size=3))
    default = draw(st.none() | st.sampled_from(symbols))
    doc, props = draw(st.none() | TEXT), draw(properties())
    enum = Enum(name, tuple(symbols), default, _aliases(draw, types, name), doc, props)
    _finish(types, enum)
    return enum


def _record(draw: Draw, types: _Types, space: str, depth: int, *, defaults: bool) -> Record:
    name = _name(draw, types, space)
    inside = name.rpartition(".")[0]
    fields = []
    for member in draw(st.lists(NAMES, unique=True, max_size=3)):
        kind = _schema(draw, types, inside, depth - 1, defaults=defaults)
        fitting = default_values(kind, types.done) if defaults and draw(st.booleans()) else None
        default = None
        if fitting is not None:
            default = json.dumps(draw(fitting), ensure_ascii=False, separators=(",", ":"))
        order = draw(st.sampled_from([None, None, "ascending", "descending", "ignore"]))
        doc, props = draw(st.none() | TEXT), draw(properties())
        fields.append(Field(member, kind, default, order, _aliases(draw, types), doc, props))
    record = Record(
        name,
        tuple(fields),
        _aliases(draw, types, name),
        draw(st.none() | TEXT),
        draw(properties()),
        draw(st.sampled_from([False, False, False, True])),
    )
    _finish(types, record)
    return record


def default_values(schema: Schema, done: dict[str, Named]) -> st.SearchStrategy[Any] | None:
    """JSON values that fit a type; None when there is none, or its type is not finished."""
    match schema:
        case Primitive(kind=kind):
            return _PRIMITIVE_VALUES[kind]
        case Fixed(size=size):
            return st.text(st.characters(max_codepoint=255), min_size=size, max_size=size)
        case Enum(symbols=symbols):
            return st.sampled_from(symbols)
        case Reference(name=name):
            others = {full: named for full, named in done.items() if full != name}
            return default_values(done[name], others) if name in done else None
        case Array(items=inner):
            items = default_values(inner, done)
            return st.just([]) if items is None else st.lists(items, max_size=2)
        case Map(values=inner):
            values = default_values(inner, done)
            return st.just({}) if values is None else st.dictionaries(TEXT, values, max_size=2)
        case Union(branches=branches):
            fitting = [default_values(branch, done) for branch in branches]
            found = [values for values in fitting if values is not None]
            return st.one_of(*found) if found else None
        case Record(fields=fields):
            members = {member.name: default_values(member.type, done) for member in fields}
            if any(values is None for values in members.values()):
                return None
            return st.fixed_dictionaries(members)  # type: ignore[arg-type]


_PRIMITIVE_VALUES: dict[Kind, st.SearchStrategy[Any]] = {
    Kind.NULL: st.none(),
    Kind.BOOLEAN: st.booleans(),
    Kind.INT: st.integers(-(2**31), 2**31 - 1),
    Kind.LONG: st.integers(-(2**63), 2**63 - 1),
    Kind.FLOAT: st.floats(allow_nan=False, allow_infinity=False, width=32),
    Kind.DOUBLE: st.floats(allow_nan=False, allow_infinity=False),
    Kind.BYTES: st.text(st.characters(max_codepoint=255), max_size=3),
    Kind.STRING: TEXT,
}
