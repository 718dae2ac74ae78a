"""Schemas with all that they refer to, fetched from a registry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from duolog.avro.parse import closed, parse_schema
from duolog.avro.schema import MAX_DEPTH
from duolog.errors import InvalidSchema

if TYPE_CHECKING:
    from duolog.avro.registry.port import SchemaReference, SchemaSource, SchemaText
    from duolog.avro.schema import Schema

MAX_REFERENCED_SCHEMAS: Final = 256
_AVRO: Final = "AVRO"


def resolved_schema(registry: SchemaSource, schema: SchemaText) -> Schema:
    """The schema of a text, with the types of its references written out where they come first.

    Raises InvalidSchema for what is no Avro schema, for references in a circle, and for too many
    of them; UnknownSubject and UnknownSchema where one is missing.
    """
    _check_type(schema, "The schema")
    outside = _referenced(registry, schema)
    # Not strict: the registry has taken it, and a default that never fitted harms no reader.
    tree = parse_schema(schema.text, outside, strict=False)
    return closed(tree, outside) if outside else tree


@dataclass(slots=True)
class _Visit:
    """A schema whose references are being fetched."""

    place: tuple[str, int] | None  # None: the one that is asked for
    schema: SchemaText
    waiting: Iterator[SchemaReference]


def _referenced(registry: SchemaSource, schema: SchemaText) -> list[Schema]:
    """The schemas that are referred to, also through others: first those that others need."""
    outside: list[Schema] = []
    seen: set[tuple[str, int]] = set()
    way = [_Visit(None, schema, iter(schema.references))]
    while way:
        visit = way[-1]
        reference = next(visit.waiting, None)
        if reference is None:
            way.pop()
            if visit.place is not None:
                outside.append(parse_schema(visit.schema.text, outside, strict=False))
            continue
        place = (reference.subject, reference.version)
        if any(place == earlier.place for earlier in way):
            raise InvalidSchema(
                f"The schema's references go in a circle: {_shown(way, place)}. Register one of "
                "them without."
            )
        if place in seen:
            continue
        seen.add(place)
        if len(seen) > MAX_REFERENCED_SCHEMAS or len(way) > MAX_DEPTH:
            raise InvalidSchema(
                f"The schema refers to more than {MAX_REFERENCED_SCHEMAS} others, or through more "
                f"than {MAX_DEPTH} in a row: {_shown(way[:4], place)}."
            )
        found = registry.version(*place).schema
        _check_type(found, f"Version {place[1]} of subject '{place[0]}', which is referred to,")
        way.append(_Visit(place, found, iter(found.references)))
    return outside


def _check_type(schema: SchemaText, what: str) -> None:
    if schema.type != _AVRO:
        raise InvalidSchema(f"{what} is of type {schema.type}; only {_AVRO} can be used here.")


def _shown(way: list[_Visit], last: tuple[str, int]) -> str:
    places = [*(visit.place for visit in way if visit.place is not None), last]
    return " -> ".join(f"'{subject}' version {version}" for subject, version in places)
