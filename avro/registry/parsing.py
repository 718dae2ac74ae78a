"""Texts of schemas to trees, with the schemas that they refer to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from threading import Lock

from duolog.avro.parse import closed, parse_schema
from duolog.avro.registry import refusals
from duolog.avro.registry.contexts import beside
from duolog.avro.registry.model import AVRO, Candidate, Content, Version
from duolog.avro.registry.port import SchemaReference
from duolog.avro.schema import (
    Array,
    Enum,
    Fixed,
    Map,
    Named,
    Primitive,
    Record,
    Schema,
    Union,
    named_types,
)
from duolog.avro.text import normalized_text, schema_text
from duolog.errors import InvalidSchema

Find = Callable[[str, int], Version | None]
"""A version of a subject, for a reference; -1 is the latest."""

MAX_REFERENCED_SCHEMAS = 256
MAX_REFERENCED_BYTES = 8 << 20  # of their texts, for a schema that is sent
_CACHED_SCHEMAS = 1000
_CACHED_BYTES = 4 << 20  # of texts; a tree of small fields takes ten times as much


@dataclass(frozen=True)
class Parsed:
    """A schema that was understood."""

    tree: Schema
    text: str  # one spelling of it
    references: tuple[SchemaReference, ...]  # with the versions that they had
    outside: tuple[Schema, ...] = ()  # all that it refers to, also through others

    @cached_property
    def types(self) -> dict[str, Named]:
        """The named types that are not in its own tree."""
        found: dict[str, Named] = {}
        for schema in self.outside:
            found.update(named_types(schema))
        return found

    @property
    def resolved_text(self) -> str:
        """As a text that needs no references."""
        return schema_text(closed(self.tree, self.outside))

    def is_equivalent(self, other: Parsed) -> bool:
        """Whether they say the same, in whatever order and with whatever references."""
        return self._comparable is not None and self._comparable == other._comparable

    @cached_property
    def _comparable(self) -> Schema | None:
        """Without references, and unordered things in order. None: it is too deep for that."""
        try:
            return _ordered(closed(self.tree, self.outside))
        except InvalidSchema:
            return None


class SchemaReader:
    """Understands candidates, and stored schemas once each while there are few."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], _Known] = {}
        self._known_bytes = 0
        self._known_lock = Lock()

    def candidate(
        self, subject: str, candidate: Candidate, find: Find, *, normalize: bool, strict: bool
    ) -> Parsed:
        """Raises 42201 for what is no schema."""
        if candidate.type != AVRO:
            raise refusals.invalid_schema(f"Invalid schema type {candidate.type}")
        try:
            references, outside, _ = self._referenced(
                subject, candidate.references, find, MAX_REFERENCED_BYTES
            )
            tree = parse_schema(candidate.text or "", outside, strict=strict)
            if not normalize:
                return Parsed(tree, schema_text(tree), references, outside)
            text = normalized_text(tree)
            distinct = sorted(set(references), key=lambda one: (one.name, one.subject, one.version))
            return Parsed(parse_schema(text, outside, strict=False), text, tuple(distinct), outside)
        except InvalidSchema as error:
            raise refusals.invalid_schema(
                f"Invalid schema of type {candidate.type}, details: {error}"
            ) from error

    def stored(self, version: Version, find: Find) -> Parsed:
        """`find` has to see deleted versions too: they may be referred to."""
        place = (version.context, version.id)
        with self._known_lock:
            known = self._known.get(place)
        if known is not None and known.content is version.content:
            return known.parsed
        try:
            references, outside, referenced_bytes = self._referenced(
                version.subject, version.content.references, find
            )
            tree = parse_schema(version.content.text, outside, strict=False)
        except InvalidSchema as error:
            raise refusals.invalid_schema(
                f"Version {version.version} of subject '{version.subject}' is not understood, "
                f"details: {error}"
            ) from error
        parsed = Parsed(tree, version.content.text, references, outside)
        size_bytes = len(version.content.text) + referenced_bytes
        self._remember(place, _Known(version.content, parsed, size_bytes))
        return parsed

    def _remember(self, place: tuple[str, int], known: _Known) -> None:
        with self._known_lock:
            self._forget(place)
            if known.size_bytes > _CACHED_BYTES:
                return
            while (
                len(self._known) >= _CACHED_SCHEMAS
                or self._known_bytes + known.size_bytes > _CACHED_BYTES
            ):
                self._forget(next(iter(self._known)))
            self._known[place] = known
            self._known_bytes += known.size_bytes

    def _forget(self, place: tuple[str, int]) -> None:
        known = self._known.pop(place, None)
        if known is not None:
            self._known_bytes -= known.size_bytes

    def _referenced(
        self,
        subject: str,
        references: tuple[SchemaReference, ...],
        find: Find,
        max_bytes: int | None = None,
    ) -> tuple[tuple[SchemaReference, ...], tuple[Schema, ...], int]:
        """The references with their versions; the schemas, first those that others need; and how
        long their texts are together.
        """
        size_bytes = 0
        settled: list[SchemaReference] = []
        outside: list[Schema] = []
        names: set[str] = set()
        visits = [_Visit(subject, iter(references), None)]
        while visits:
            visit = visits[-1]
            reference = next(visit.references, None)
            if reference is None:
                visits.pop()
                if visit.text is not None:
                    outside.append(parse_schema(visit.text, outside, strict=False))
                continue
            target = beside(visit.subject, reference.subject)
            found = find(target, reference.version)
            if found is None:
                raise InvalidSchema(
                    f'No schema reference found for subject "{target}" and version '
                    f"{reference.version}"
                )
            if visit.text is None:
                settled.append(replace(reference, version=found.version))
            if reference.name not in names:
                names.add(reference.name)
                size_bytes += len(found.content.text)
                if max_bytes is not None and size_bytes > max_bytes:
                    raise InvalidSchema(
                        f"The schemas that it refers to, with those that they refer to, have more "
                        f"than {max_bytes} characters."
                    )
                visits.append(
                    _Visit(found.subject, iter(found.content.references), found.content.text)
                )
            if len(names) > MAX_REFERENCED_SCHEMAS:
                raise InvalidSchema(
                    f"It refers to more than {MAX_REFERENCED_SCHEMAS} schemas, with those that "
                    "they refer to."
                )
        return tuple(settled), tuple(outside), size_bytes


@dataclass(frozen=True, slots=True)
class _Known:
    content: Content
    parsed: Parsed
    size_bytes: int  # of the texts that it was made of


@dataclass(slots=True)
class _Visit:
    subject: str
    references: Iterator[SchemaReference]  # those still to be looked at
    text: str | None  # None: the one that is asked for


def _ordered(schema: Schema) -> Schema:
    match schema:
        case Union(branches=branches):
            return Union(tuple(map(_ordered, branches)))
        case Array(items=inner):
            return Array(_ordered(inner), tuple(sorted(schema.properties)))
        case Map(values=inner):
            return Map(_ordered(inner), tuple(sorted(schema.properties)))
        case Primitive():
            return replace(schema, properties=tuple(sorted(schema.properties)))
        case Record(fields=fields):
            members = (
                replace(
                    field,
                    type=_ordered(field.type),
                    aliases=tuple(sorted(field.aliases)),
                    properties=tuple(sorted(field.properties)),
                )
                for field in fields
            )
            schema = replace(schema, fields=tuple(members))
    if isinstance(schema, Fixed | Enum | Record):
        return replace(
            schema,
            aliases=tuple(sorted(schema.aliases)),
            properties=tuple(sorted(schema.properties)),
        )
    return schema
