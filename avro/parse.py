"""Text of an Avro schema to the schema tree, by the rules of Avro 1.12.

The text may come from anywhere, so its length, its depth and the work that it can cause are
bounded, and whatever is wrong with it is an InvalidSchema that names the place.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, TypeGuard

from duolog.avro.defaults import DefaultCheck
from duolog.avro.json_tree import Json, json_text, read_json, shown
from duolog.avro.names import MAX_FULL_NAME_CHARACTERS, PRIMITIVE_NAMES, is_avro_name
from duolog.avro.references import References, closed, known_types
from duolog.avro.schema import (
    MAX_DEPTH,
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
from duolog.errors import InvalidSchema

__all__ = ["References", "closed", "parse_schema"]

_MAX_NAME_CHARACTERS: Final = 1 << 24  # of all full names together
_MAX_INT: Final = 2**31 - 1

_KINDS: Final[Mapping[str, Kind]] = {kind.value: kind for kind in Kind}
_ORDERS: Final = ("ascending", "descending", "ignore")
_OBJECT_TYPES: Final = ("record", "error", "enum", "array", "map", "fixed")
# The logical types that have an Arrow form, and what they annotate. All others, big-decimal and
# duration too, stay properties.
_LOGICAL_KINDS: Final = {
    "date": Kind.INT,
    "time-millis": Kind.INT,
    "time-micros": Kind.LONG,
    "timestamp-millis": Kind.LONG,
    "timestamp-micros": Kind.LONG,
    "timestamp-nanos": Kind.LONG,
    "local-timestamp-millis": Kind.LONG,
    "local-timestamp-micros": Kind.LONG,
    "local-timestamp-nanos": Kind.LONG,
    "uuid": Kind.STRING,
}


def parse_schema(text: str, references: References = (), *, strict: bool = True) -> Schema:
    """The schema that this text describes.

    Named types of `references` count as known; the schema mentions them as `Reference`, and
    `closed` writes them out. A name without a namespace that is unknown in the enclosing one is
    looked for in the null namespace, as Java's Avro does. A primitive's name may stand without
    quotes.

    Not `strict` is for what a registry took before: defaults that do not fit their type and
    aliases that clash are let through, since both harm only who uses them.
    """
    known = known_types(references)
    bare = text.strip() if isinstance(text, str) else ""
    tree: Json = bare if bare in _KINDS else read_json(text)
    parser = _Parser(known, strict=strict)
    try:
        schema = parser.schema(tree, "schema", "", 1)
        parser.check(steps=1000 + 2 * len(text))
    except RecursionError:
        raise InvalidSchema("schema: it is nested too deeply for this thread's stack.") from None
    return schema


class _Parser:
    """One text; `where` names the place in it, `space` is the enclosing namespace."""

    def __init__(self, known: Mapping[str, Named], *, strict: bool) -> None:
        self._known = known
        self._strict = strict
        self._defined: dict[str, Named | None] = {}  # None: its own fields are being read
        self._aliases: list[tuple[str, str, str]] = []  # alias, its type, where
        self._defaults: list[tuple[str, Schema, Json]] = []
        self._name_characters = 0

    def schema(self, tree: Json, where: str, space: str, depth: int) -> Schema:
        if depth > MAX_DEPTH:
            raise _invalid(where, f"types are nested more than {MAX_DEPTH} deep.")
        if isinstance(tree, str):
            return self._by_name(tree, where, space)
        if isinstance(tree, list):
            return self._union(tree, where, space, depth)
        if isinstance(tree, dict):
            return self._object(tree, where, space, depth)
        raise _invalid(
            where, f"{shown(tree)} is no schema: write a type's name, an object or a union."
        )

    def check(self, steps: int) -> None:
        """What can be said only once all types are known: defaults and aliases."""
        if not self._strict:
            return
        owners = {name: name for name in self._defined}
        for alias, name, where in self._aliases:
            if owners.setdefault(alias, name) != name:
                raise _invalid(where, f"its alias {shown(alias)} names another type too.")
        check = DefaultCheck(lambda name: self._defined.get(name) or self._known.get(name), steps)
        for where, schema, value in self._defaults:
            if not check.fits(schema, value):
                raise _invalid(
                    where, f"the default {shown(value)} is not of its type {_kind_name(schema)}."
                )

    def _by_name(self, name: str, where: str, space: str) -> Schema:
        if name in _KINDS:
            return Primitive(_KINDS[name])
        for full in [name] if "." in name or not space else [f"{space}.{name}", name]:
            if full in self._defined or full in self._known:
                return Reference(self._counted(full, where))
        if name in _OBJECT_TYPES:
            raise _invalid(
                where, f'a type {name} is written as an object: {{"type": "{name}", ...}}.'
            )
        raise _invalid(
            where,
            f"the type {shown(name)} is not known. Define it before its first use, or register "
            "it and name it among the references.",
        )

    def _object(self, tree: dict[str, Json], where: str, space: str, depth: int) -> Schema:
        if "type" not in tree:
            raise _invalid(where, 'an object without "type" is no schema.')
        kind = tree["type"]
        if not isinstance(kind, str):
            raise _invalid(
                where, f'"type" must name a type; got {shown(kind)}. Write that in place of this.'
            )
        match kind:
            case "record" | "error":
                return self._record(tree, where, space, depth)
            case "enum":
                return self._enum(tree, where, space)
            case "fixed":
                return self._fixed(tree, where, space)
            case "array":
                items = self._inner(tree, "items", where, space, depth)
                return Array(items, _properties(tree, "type", "items"))
            case "map":
                values = self._inner(tree, "values", where, space, depth)
                return Map(values, _properties(tree, "type", "values"))
            case _ if kind in _KINDS:
                logical, used = _logical(tree, _KINDS[kind])
                return Primitive(_KINDS[kind], logical, _properties(tree, "type", *used))
            case _:
                return self._by_name(kind, where, space)

    def _inner(
        self, tree: dict[str, Json], attribute: str, where: str, space: str, depth: int
    ) -> Schema:
        if attribute not in tree:
            raise _invalid(where, f'a type {tree["type"]} needs "{attribute}".')
        return self.schema(tree[attribute], f"{where}, {attribute}", space, depth + 1)

    def _union(self, tree: list[Json], where: str, space: str, depth: int) -> Schema:
        branches: list[Schema] = []
        names: set[str] = set()
        for index, branch in enumerate(tree):
            if isinstance(branch, list):
                raise _invalid(where, "a union directly in a union; make one of both.")
            schema = self.schema(branch, f"{where}, branch {index}", space, depth + 1)
            name = _kind_name(schema)
            if name in names:
                raise _invalid(where, f"a union has {name} twice.")
            names.add(name)
            branches.append(schema)
        return Union(tuple(branches))

    def _enum(self, tree: dict[str, Json], where: str, space: str) -> Enum:
        name = self._define(tree, where, space)
        where = f"enum '{name}'"
        symbols = tree.get("symbols")
        if not isinstance(symbols, list):
            raise _invalid(where, 'it needs "symbols", a list of names.')
        seen: set[str] = set()
        for symbol in symbols:
            if not isinstance(symbol, str) or not is_avro_name(symbol):
                raise _invalid(where, f"{shown(symbol)} is no symbol: {_NAME_RULE}.")
            if symbol in seen:
                raise _invalid(where, f"it has the symbol '{symbol}' twice.")
            seen.add(symbol)
        default = tree.get("default")
        if default is not None and (not isinstance(default, str) or default not in seen):
            raise _invalid(where, f"the default {shown(default)} is none of its symbols.")
        enum = Enum(
            name,
            tuple(str(symbol) for symbol in symbols),
            default,
            self._type_aliases(tree, name, where),
            _doc(tree, where),
            _properties(tree, *_NAMED, "symbols", "default"),
        )
        self._finish(enum, where)
        return enum

    def _fixed(self, tree: dict[str, Json], where: str, space: str) -> Fixed:
        name = self._define(tree, where, space)
        where = f"fixed '{name}'"
        size = tree.get("size")
        if not _is_int(size, 0):
            raise _invalid(where, f'it needs "size", 0 to {_MAX_INT} bytes; got {shown(size)}.')
        logical, used = _logical(tree, size)
        fixed = Fixed(
            name,
            size,
            logical,
            self._type_aliases(tree, name, where),
            _doc(tree, where),
            _properties(tree, *_NAMED, "size", *used),
        )
        self._finish(fixed, where)
        return fixed

    def _record(self, tree: dict[str, Json], where: str, space: str, depth: int) -> Record:
        name = self._define(tree, where, space)
        where = f"record '{name}'"
        members = tree.get("fields")
        if not isinstance(members, list):
            raise _invalid(where, 'it needs "fields", a list of objects.')
        fields: list[Field] = []
        taken: set[str] = set()
        for member in members:
            field = self._field(member, where, _space(name), depth)
            if field.name in taken:
                raise _invalid(where, f"it has the field '{field.name}' twice.")
            taken.add(field.name)
            fields.append(field)
        if self._strict:
            _check_field_aliases(fields, where)
        record = Record(
            name,
            tuple(fields),
            self._type_aliases(tree, name, where),
            _doc(tree, where),
            _properties(tree, *_NAMED, "fields"),
            is_error=tree["type"] == "error",
        )
        self._finish(record, where)
        return record

    def _field(self, tree: Json, where: str, space: str, depth: int) -> Field:
        if not isinstance(tree, dict):
            raise _invalid(where, f"{shown(tree)} is no field: write an object.")
        name = tree.get("name")
        if not isinstance(name, str) or not is_avro_name(name):
            raise _invalid(where, f"{shown(name)} cannot name a field: {_NAME_RULE}.")
        where = f"{where}, field '{name}'"
        if "type" not in tree:
            raise _invalid(where, 'it needs a "type".')
        kind = self.schema(tree["type"], where, space, depth + 1)
        order = tree.get("order")
        if "order" in tree and order not in _ORDERS:
            raise _invalid(where, f"the order {shown(order)} is none of {', '.join(_ORDERS)}.")
        default = None
        if "default" in tree:
            default = json_text(tree["default"])
            self._defaults.append((where, kind, tree["default"]))
        return Field(
            name,
            kind,
            default,
            str(order) if order is not None else None,
            tuple(dict.fromkeys(_aliases(tree, where))),
            _doc(tree, where),
            _properties(tree, "name", "type", "default", "order", "aliases", "doc"),
        )

    def _define(self, tree: dict[str, Json], where: str, space: str) -> str:
        """The full name of a type that is written out here."""
        name, own_space = tree.get("name"), tree.get("namespace")
        what = f"the name {shown(name)} of a type {tree['type']}"
        if not isinstance(name, str):
            raise _invalid(where, f'a type {tree["type"]} needs a "name"; got {shown(name)}.')
        if own_space is not None and not isinstance(own_space, str):
            raise _invalid(where, f"the namespace {shown(own_space)} is no string.")
        if "." not in name and own_space is not None:
            space = own_space
        full = f"{space}.{name}" if space and "." not in name else name
        if len(full) > MAX_FULL_NAME_CHARACTERS:
            raise _invalid(
                where,
                f"{what} is too long: full names have at most {MAX_FULL_NAME_CHARACTERS} "
                "characters.",
            )
        parts = full.split(".")
        if not all(is_avro_name(part) for part in parts):
            raise _invalid(where, f"{what} is not allowed (full: {shown(full)}): {_NAME_RULE}.")
        if parts[-1] in PRIMITIVE_NAMES:
            raise _invalid(where, f"{what} is that of a primitive type.")
        if full in self._defined:
            raise _invalid(where, f"the type '{full}' is defined twice. Use its name alone here.")
        self._defined[full] = None
        return self._counted(full, where)

    def _counted(self, full: str, where: str) -> str:
        """A full name that is kept. A long namespace must not fill the memory with every use."""
        self._name_characters += len(full)
        if self._name_characters > _MAX_NAME_CHARACTERS:
            raise _invalid(
                where,
                f"the full names up to here have more than {_MAX_NAME_CHARACTERS} characters. Use "
                "shorter namespaces.",
            )
        return full

    def _finish(self, named: Named, where: str) -> None:
        if self._known.get(named.name, named) != named:
            raise _invalid(where, "a referenced schema defines this type in another way.")
        self._defined[named.name] = named

    def _type_aliases(self, tree: dict[str, Json], name: str, where: str) -> tuple[str, ...]:
        """Full names. Any string is accepted, as the specification says."""
        space = _space(name)
        full = tuple(
            dict.fromkeys(
                f"{space}.{alias}" if space and "." not in alias else _without_empty_space(alias)
                for alias in _aliases(tree, where)
            )
        )
        self._aliases += [(self._counted(alias, where), name, where) for alias in full]
        return full


_NAME_RULE: Final = "letters, digits and _ are allowed, not a digit first"
_NAMED: Final = ("type", "name", "namespace", "aliases", "doc")


def _invalid(where: str, what: str) -> InvalidSchema:
    return InvalidSchema(f"{where}: {what}")


def _space(full: str) -> str:
    return full.rpartition(".")[0]


def _without_empty_space(alias: str) -> str:
    return alias[1:] if alias.rfind(".") == 0 else alias


def _kind_name(schema: Schema) -> str:
    """What tells the branches of a union apart."""
    match schema:
        case Primitive(kind=kind):
            return kind.value
        case Array():
            return "array"
        case Map():
            return "map"
        case Union():
            return "union"
        case _:
            return schema.name


def _is_int(value: Json, lowest: int) -> TypeGuard[int]:
    if isinstance(value, bool) or not isinstance(value, int):
        return False
    return lowest <= value <= _MAX_INT


def _doc(tree: dict[str, Json], where: str) -> str | None:
    doc = tree.get("doc")
    if doc is not None and not isinstance(doc, str):
        raise _invalid(where, f"the doc {shown(doc)} is no string.")
    return doc


def _aliases(tree: dict[str, Json], where: str) -> list[str]:
    aliases = tree.get("aliases", [])
    if not isinstance(aliases, list) or not all(isinstance(alias, str) for alias in aliases):
        raise _invalid(where, f"the aliases {shown(aliases)} are no list of strings.")
    return [str(alias) for alias in aliases]


def _check_field_aliases(fields: list[Field], where: str) -> None:
    owners = {field.name: field.name for field in fields}
    for field in fields:
        for alias in field.aliases:
            if owners.setdefault(alias, field.name) != field.name:
                raise _invalid(
                    where,
                    f"the fields '{owners[alias]}' and '{field.name}' share "
                    f"the name {shown(alias)}.",
                )


def _properties(tree: dict[str, Json], *used: str) -> Properties:
    return tuple((name, json_text(value)) for name, value in tree.items() if name not in used)


def _logical(tree: dict[str, Json], base: Kind | int) -> tuple[Logical | None, tuple[str, ...]]:
    """The logical type, if it is one and valid here, and the attributes that say so.

    `base` is the kind of a primitive type, or the size of a fixed one.
    """
    name = tree.get("logicalType")
    if not isinstance(name, str):
        return None, ()
    if name == "decimal":
        precision, scale = tree.get("precision"), tree.get("scale", 0)
        if not _is_int(precision, 1) or not _is_int(scale, 0):
            return None, ()
        longest = _MAX_INT if base is Kind.BYTES else 0
        if isinstance(base, int):
            longest = math.floor(math.log10(2) * (8 * base - 1))
        if not scale <= precision <= longest:
            return None, ()
        return Logical(name, precision, scale), ("logicalType", "precision", "scale")
    if _LOGICAL_KINDS.get(name) is base or (name == "uuid" and base == 16):
        return Logical(name), ("logicalType",)
    return None, ()
