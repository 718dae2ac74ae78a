"""Which columns JSON objects have, found from some of them. Pure.

A field is a boolean, a bigint, a double, a text, an object or a list if it is that everywhere;
bigint and double together are double. Whatever else comes together is text: the JSON of it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_DEEPEST = 8  # objects and lists within one another; what lies deeper is text
_WIDEST = 1000  # fields of an object; one with more is text
_BIGGEST = 2**63


@dataclass(frozen=True, slots=True)
class Plain:
    """A value without parts. `json` is anything at all, as its text."""

    word: str  # null, boolean, bigint, double, text, json


@dataclass(frozen=True, slots=True)
class ListOf:
    item: Kind


@dataclass(frozen=True, slots=True)
class Object:
    fields: tuple[tuple[str, Kind], ...]


Kind: TypeAlias = Plain | ListOf | Object

NULL = Plain("null")
BIGINT = Plain("bigint")
DOUBLE = Plain("double")
TEXT = Plain("text")
ANYTHING = Plain("json")
_ARROW = {
    "null": pa.string(),
    "boolean": pa.bool_(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "text": pa.string(),
    "json": pa.string(),
}


class Misfit(Exception):
    """A value that is not of its column's kind."""

    def __init__(self, path: str, value: Any, kind: Kind) -> None:
        self.path = path
        self.value = value
        self.kind = kind
        super().__init__(path)


def columns_of(objects: Iterable[Mapping[str, Any]]) -> dict[str, Kind]:
    """The fields of some objects, in the order in which they come first."""
    found: dict[str, Kind] = {}
    for each in objects:
        for name, value in each.items():
            if name in found or (len(found) < _WIDEST and _is_column_name(name)):
                found[name] = merged(found.get(name, NULL), kind_of(value))
    return found


def kind_of(value: Any, depth: int = 1) -> Kind:
    """What a value is."""
    match value:
        case None:
            return NULL
        case bool():
            return Plain("boolean")
        case int():
            return BIGINT if -_BIGGEST <= value < _BIGGEST else ANYTHING
        case float():
            return DOUBLE
        case str():
            return TEXT
    if value == []:
        return ListOf(NULL)
    if depth > _DEEPEST or not 0 < len(value) <= _WIDEST:
        return ANYTHING
    if isinstance(value, dict):
        if not all(map(_is_column_name, value)):
            return ANYTHING
        return Object(tuple((name, kind_of(each, depth + 1)) for name, each in value.items()))
    item: Kind = NULL
    for each in value:
        item = merged(item, kind_of(each, depth + 1))
    return ListOf(item)


def merged(one: Kind, other: Kind) -> Kind:
    """What takes both."""
    if other in (one, NULL):
        return one
    if one == NULL:
        return other
    match one, other:
        case Plain(), Plain() if {one, other} == {BIGINT, DOUBLE}:
            return DOUBLE
        case ListOf(mine), ListOf(its):
            return ListOf(merged(mine, its))
        case Object(mine), Object(its):
            fields = dict(mine)
            for name, kind in its:
                fields[name] = merged(fields.get(name, NULL), kind)
            return Object(tuple(fields.items())) if len(fields) <= _WIDEST else ANYTHING
    return ANYTHING


def arrow_type(kind: Kind) -> pa.DataType:
    match kind:
        case Plain(word):
            return _ARROW[word]
        case ListOf(item):
            return pa.list_(arrow_type(item))
        case Object(fields):
            return pa.struct([(name, arrow_type(each)) for name, each in fields])


def has_json_text(kind: Kind) -> bool:
    """Whether something in it is shown as the text of its JSON."""
    match kind:
        case Plain():
            return kind in (ANYTHING, NULL)
        case ListOf(item):
            return has_json_text(item)
        case Object(fields):
            return any(has_json_text(each) for _, each in fields)


def fitted(value: Any, kind: Kind, path: str) -> Any:
    """The value as Arrow takes it for this kind. Raises Misfit."""
    if value is None:
        return None
    match kind:
        case Plain("json" | "null"):
            text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
            return text if _is_unicode(text) else json.dumps(value, separators=(",", ":"))
        case Plain("text") if isinstance(value, str) and _is_unicode(value):
            return value
        case Plain("double") if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        case Plain("boolean" | "bigint") if kind_of(value) == kind:
            return value
        case ListOf(item) if isinstance(value, list):
            return [fitted(each, item, f"{path}[{at}]") for at, each in enumerate(value)]
        case Object(fields) if isinstance(value, dict):
            return {name: fitted(value.get(name), each, f"{path}.{name}") for name, each in fields}
    raise Misfit(path, value, kind)


def _is_column_name(name: str) -> bool:
    """DataFusion's names end at a NUL."""
    return "\0" not in name and _is_unicode(name)


def _is_unicode(text: str) -> bool:
    """JSON can escape half of a surrogate pair, which is no character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
