"""Schema trees as text.

schema_text      everything, in one fixed form: equal schemas have equal texts
normalized_text  what a Confluent registry keeps of a schema with normalize=true
canonical_text   Avro's Parsing Canonical Form: what matters to who reads bytes
fingerprint64    CRC-64-AVRO of that
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import Final

import numpy as np

from duolog.avro.defaults import DefaultCheck
from duolog.avro.json_tree import Json
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
    Properties,
    Record,
    Reference,
    Schema,
    Union,
    named_types,
)
from duolog.errors import InvalidSchema

_REST: Final = "*"  # where properties stand in a layout
_TYPE_LAYOUT: Final = (
    *("type", "name", "namespace", "doc", "aliases"),
    *("fields", "symbols", "items", "values", "size", "default"),
    *("logicalType", "precision", "scale", _REST),
)
_FIELD_LAYOUT: Final = ("name", "type", "doc", "aliases", "default", "order", _REST)
# As Java's Avro writes a schema.
_JAVA_TYPE_LAYOUT: Final = (
    *("type", "name", "namespace", "doc", "fields", "symbols", "items", "values", "size"),
    *("default", "logicalType", "precision", "scale", _REST, "aliases"),
)
_JAVA_FIELD_LAYOUT: Final = ("name", "type", "doc", "default", "order", "aliases", _REST)

_JAVA_TYPE_RESERVED: Final = frozenset(
    ("doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type", "aliases")
)
_TYPE_WORDS: Final = frozenset((*Kind, "record", "error", "enum", "array", "map", "fixed", "union"))
_CRC_EMPTY: Final = 0xC15D213AA4D7A795


def schema_text(schema: Schema) -> str:
    """Compact JSON that parses to this schema again."""
    return _Writer(_TYPE_LAYOUT, _FIELD_LAYOUT).write(schema, "")


def normalized_text(schema: Schema) -> str:
    """The form in which a Confluent registry keeps and compares schemas with normalize=true.

    Properties and aliases are sorted, defaults are written by their type (1 is 1.0 for a double),
    an empty doc and the order `ascending` are left out, an error is a record. Two things differ:
    the scale of a decimal is always written, and numbers have Python's form (1e+20, not 1.0E20).
    """
    return _Writer(_JAVA_TYPE_LAYOUT, _JAVA_FIELD_LAYOUT).write(_Normal(schema).of(schema), "")


def canonical_text(schema: Schema) -> str:
    """The Parsing Canonical Form."""
    match schema:
        case Primitive(kind=kind):
            return _quoted(kind)
        case Reference(name=name):
            return _quoted(name)
        case Union(branches=branches):
            return _list(canonical_text(branch) for branch in branches)
        case Array(items=inner):
            return f'{{"type":"array","items":{canonical_text(inner)}}}'
        case Map(values=inner):
            return f'{{"type":"map","values":{canonical_text(inner)}}}'
        case Fixed(name=name, size=size):
            return f'{{"name":"{name}","type":"fixed","size":{size}}}'
        case Enum(name=name, symbols=symbols):
            return f'{{"name":"{name}","type":"enum","symbols":{_list(map(_quoted, symbols))}}}'
        case Record(name=name, fields=fields):
            members = _list(
                f'{{"name":"{member.name}","type":{canonical_text(member.type)}}}'
                for member in fields
            )
            return f'{{"name":"{name}","type":"record","fields":{members}}}'


def fingerprint64(schema: Schema) -> int:
    """CRC-64-AVRO of the canonical form, without sign. Little endian in single-object encoding."""
    table = _crc_table()
    crc = _CRC_EMPTY
    for byte in canonical_text(schema).encode():
        crc = (crc >> 8) ^ table[(crc ^ byte) & 0xFF]
    return crc


@cache
def _crc_table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (_CRC_EMPTY if crc & 1 else 0)
        table.append(crc)
    return tuple(table)


class _Writer:
    """Writes one schema; `space` is the namespace of the enclosing type."""

    def __init__(self, type_layout: tuple[str, ...], field_layout: tuple[str, ...]) -> None:
        self._type_layout = type_layout
        self._field_layout = field_layout
        self._written: set[str] = set()

    def write(self, schema: Schema, space: str) -> str:
        match schema:
            case Reference(name=name):
                return _quoted(self._reference(name, space))
            case Union(branches=branches):
                return _list(self.write(branch, space) for branch in branches)
            case Primitive(kind=kind, logical=None, properties=()):
                return _quoted(kind)
            case Primitive(kind=kind, logical=logical):
                parts = {"type": _quoted(kind), **_logical(logical)}
            case Array(items=inner):
                parts = {"type": '"array"', "items": self.write(inner, space)}
            case Map(values=inner):
                parts = {"type": '"map"', "values": self.write(inner, space)}
            case Fixed(size=size, logical=logical):
                parts = {
                    **self._head(schema, "fixed", space),
                    "size": str(size),
                    **_logical(logical),
                }
            case Enum(symbols=symbols, default=default):
                parts = {
                    **self._head(schema, "enum", space),
                    "symbols": _list(map(_quoted, symbols)),
                }
                if default is not None:
                    parts["default"] = _quoted(default)
            case Record(fields=fields):
                parts = self._head(schema, "error" if schema.is_error else "record", space)
                inside = _space(schema.name)
                parts["fields"] = _list(self._field(member, inside) for member in fields)
        return _laid_out(parts, schema.properties, self._type_layout)

    def _head(self, schema: Fixed | Enum | Record, kind: str, space: str) -> dict[str, str]:
        own, _, name = schema.name.rpartition(".")
        self._written.add(schema.name)
        parts = {"type": _quoted(kind), "name": _quoted(name)}
        if own != space:
            parts["namespace"] = _quoted(own)
        if schema.doc is not None:
            parts["doc"] = _quoted(schema.doc)
        if schema.aliases:
            parts["aliases"] = _list(_quoted(_alias(alias, own)) for alias in schema.aliases)
        return parts

    def _field(self, member: Field, space: str) -> str:
        parts = {"name": _quoted(member.name), "type": self.write(member.type, space)}
        if member.doc is not None:
            parts["doc"] = _quoted(member.doc)
        if member.aliases:
            parts["aliases"] = _list(map(_quoted, member.aliases))
        if member.default is not None:
            parts["default"] = member.default
        if member.order is not None:
            parts["order"] = _quoted(member.order)
        return _laid_out(parts, member.properties, self._field_layout)

    def _reference(self, full: str, space: str) -> str:
        own, _, name = full.rpartition(".")
        if own and own == space and name not in _TYPE_WORDS:
            return name
        if not own and f"{space}.{name}" in self._written:
            raise InvalidSchema(
                f"The type '{full}' has no namespace, and '{space}.{full}' stands before it where "
                "it is mentioned. Avro has no way to write that; give it a namespace."
            )
        return full


class _Normal:
    """The tree of the normalized form."""

    def __init__(self, schema: Schema) -> None:
        self._types = named_types(schema)

    def of(self, schema: Schema) -> Schema:
        match schema:
            case Primitive():
                return replace(schema, properties=_sorted(schema.properties))
            case Array(items=inner):
                return Array(self.of(inner), _sorted(schema.properties))
            case Map(values=inner):
                return Map(self.of(inner), _sorted(schema.properties))
            case Union(branches=branches):
                return Union(tuple(self.of(branch) for branch in branches))
            case Fixed() | Enum() | Record():
                named = replace(
                    schema,
                    doc=schema.doc or None,
                    aliases=tuple(sorted(schema.aliases)),
                    properties=_sorted(schema.properties),
                )
                if isinstance(named, Record):
                    fields = tuple(map(self._field, named.fields))
                    return replace(named, fields=fields, is_error=False)
                return named
            case _:
                return schema

    def _field(self, member: Field) -> Field:
        default = member.default
        if default is not None:
            value = json.loads(default)
            check = DefaultCheck(self._types.get, 10_000 + 8 * len(default))
            if check.fits(member.type, value):
                value = self._default(member.type, value, check)
            default = _sorted_text(value)
        return replace(
            member,
            type=self.of(member.type),
            default=default,
            order=None if member.order == "ascending" else member.order,
            aliases=tuple(sorted(member.aliases)),
            properties=tuple(
                (name, _sorted_text(json.loads(text))) for name, text in sorted(member.properties)
            ),
        )

    def _default(self, schema: Schema, value: Json, check: DefaultCheck) -> Json:
        if isinstance(schema, Reference):
            schema = self._types.get(schema.name, schema)
        match schema, value:
            case Primitive(kind=Kind.DOUBLE), int() if not isinstance(value, bool):
                return float(value)
            case Primitive(kind=Kind.FLOAT), int() | float() if not isinstance(value, bool):
                return float(str(np.float32(value)))  # the fewest digits that name this float
            case Array(items=inner), list():
                return [self._default(inner, item, check) for item in value]
            case Map(values=inner), dict():
                return {name: self._default(inner, item, check) for name, item in value.items()}
            case Record(fields=fields), dict():
                types = {member.name: member.type for member in fields}
                return {
                    name: self._default(types.get(name, NULL), item, check)
                    for name, item in value.items()
                }
            case Union(branches=branches), _:
                fitting = (branch for branch in branches if check.fits(branch, value))
                return self._default(next(fitting, NULL), value, check)
            case _:
                return value


def _laid_out(parts: dict[str, str], properties: Properties, layout: tuple[str, ...]) -> str:
    members: list[str] = []
    for name in layout:
        if name == _REST:
            members += [f"{_quoted(key)}:{text}" for key, text in properties]
        elif name in parts:
            members.append(f'"{name}":{parts[name]}')
    return "{" + ",".join(members) + "}"


def _logical(logical: Logical | None) -> dict[str, str]:
    if logical is None:
        return {}
    parts = {"logicalType": _quoted(logical.name)}
    if logical.name == "decimal":
        parts |= {"precision": str(logical.precision), "scale": str(logical.scale)}
    return parts


def _alias(full: str, space: str) -> str:
    """Relative to the namespace of the type that has it, where that can be."""
    if not space:
        return full
    own, dot, name = full.rpartition(".")
    if not dot:
        return f".{full}"
    return name if own == space else full


def _space(full: str) -> str:
    return full.rpartition(".")[0]


def _sorted(properties: Properties) -> Properties:
    return tuple(
        (name, _sorted_text(json.loads(text)))
        for name, text in sorted(properties)
        if name not in _JAVA_TYPE_RESERVED
    )


def _sorted_text(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _list(texts: Iterable[str]) -> str:
    return f"[{','.join(texts)}]"
