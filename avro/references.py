"""Named types that one schema takes from others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias

from duolog.avro.schema import (
    MAX_DEPTH,
    Array,
    Enum,
    Fixed,
    Map,
    Named,
    Record,
    Reference,
    Schema,
    Union,
    named_types,
)
from duolog.errors import InvalidSchema

References: TypeAlias = Iterable[Schema] | Mapping[str, Named]
"""Schemas whose named types another one may use, or those types by full name."""


def closed(schema: Schema, references: References) -> Schema:
    """With the named types of `references` written out where they are first mentioned."""
    return _Closing(known_types(references)).close(schema, 1)


def known_types(references: References) -> dict[str, Named]:
    """Their named types, by full name."""
    if isinstance(references, Mapping):
        return dict(references)
    known: dict[str, Named] = {}
    for reference in references:
        for name, definition in named_types(reference).items():
            if known.setdefault(name, definition) != definition:
                raise InvalidSchema(
                    f"Two of the referenced schemas define '{name}', each in its own way."
                )
    return known


class _Closing:
    """Writes out referenced types, each where it is first mentioned."""

    def __init__(self, known: Mapping[str, Named]) -> None:
        self._known = known
        self._written: set[str] = set()

    def close(self, schema: Schema, depth: int) -> Schema:
        if depth > MAX_DEPTH:
            raise InvalidSchema(
                f"With its references written out, types are nested more than {MAX_DEPTH} deep."
            )
        if isinstance(schema, Reference):
            if schema.name in self._written:
                return schema
            if schema.name not in self._known:
                raise InvalidSchema(
                    f"The schema mentions '{schema.name}', which none of its references defines."
                )
            schema = self._known[schema.name]
        match schema:
            case Fixed(name=name) | Enum(name=name) | Record(name=name):
                if name in self._written:
                    return Reference(name)
                self._written.add(name)
        match schema:
            case Array(items=inner):
                return replace(schema, items=self.close(inner, depth + 1))
            case Map(values=inner):
                return replace(schema, values=self.close(inner, depth + 1))
            case Union(branches=branches):
                return Union(tuple(self.close(branch, depth + 1) for branch in branches))
            case Record(fields=fields):
                members = [replace(one, type=self.close(one.type, depth + 1)) for one in fields]
                return replace(schema, fields=tuple(members))
            case _:
                return schema
