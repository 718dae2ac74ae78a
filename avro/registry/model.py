"""What a registry knows, as plain values."""

from __future__ import annotations

import hashlib
import sys
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from functools import cached_property
from typing import Final
from uuid import UUID

from duolog.avro.compatibility import Level
from duolog.avro.registry.contexts import context_of
from duolog.avro.registry.port import RegisteredSchema, SchemaReference, SchemaText
from duolog.avro.registry.rules import Metadata, RuleSet

AVRO: Final = "AVRO"
MAX_NUMBER: Final = 2**31 - 1
"""Of ids and versions: clients hold both in 32 bits."""


@dataclass(frozen=True)
class Content:
    """What has an id: within a context, equal contents have one id and an id has one content."""

    text: str
    type: str = AVRO
    references: tuple[SchemaReference, ...] = ()
    metadata: Metadata | None = None
    rules: RuleSet | None = None

    @cached_property
    def guid(self) -> UUID:
        """The same in every context and registry, also in Confluent's."""
        digest = hashlib.md5(self.text.encode(), usedforsecurity=False)
        for reference in self.references:
            digest.update(reference.name.encode() + reference.subject.encode())
            digest.update(reference.version.to_bytes(4, "big", signed=True))
        for part in (self.metadata, self.rules):
            if part is not None:
                digest.update(b"\x01" + "".join(part.words()).encode())
        return UUID(bytes=digest.digest())

    @cached_property
    def size_bytes(self) -> int:
        """About what it takes of memory."""
        words = [word for part in (self.metadata, self.rules) if part for word in part.words()]
        words += [name for each in self.references for name in (each.name, each.subject)]
        return sum(map(sys.getsizeof, (self.text, *words)))

    @property
    def schema(self) -> SchemaText:
        return SchemaText(self.text, self.type, self.references)


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a subject. A deleted one is still found by its id, and can be referred to."""

    subject: str
    version: int
    id: int
    content: Content
    deleted: bool = False

    @property
    def context(self) -> str:
        return context_of(self.subject)

    @property
    def registered(self) -> RegisteredSchema:
        return RegisteredSchema(self.subject, self.version, self.id, self.content.schema)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A schema as a client sends it, to be registered, looked up or checked."""

    text: str | None
    type: str = AVRO
    references: tuple[SchemaReference, ...] = ()
    metadata: Metadata | None = None
    rules: RuleSet | None = None
    version: int = 0  # 0: the next; -1: the next, and the schema is to name it
    id: int | None = None  # given in import mode

    @property
    def is_empty(self) -> bool:
        return self.text is None or not self.text.strip()


class Mode(StrEnum):
    """What may be done to a subject."""

    READWRITE = "READWRITE"
    READONLY = "READONLY"
    READONLY_OVERRIDE = "READONLY_OVERRIDE"  # set globally, it goes before those of subjects
    IMPORT = "IMPORT"  # ids and versions are given, nothing is checked

    @property
    def is_read_only(self) -> bool:
        return self in (Mode.READONLY, Mode.READONLY_OVERRIDE)


@dataclass(frozen=True, slots=True)
class Config:
    """Settings of a subject, a context or all. None: as the next wider one has it."""

    level: Level | None = None
    normalize: bool | None = None
    compatibility_group: str | None = None
    alias: str | None = None
    default_metadata: Metadata | None = None
    override_metadata: Metadata | None = None
    default_rules: RuleSet | None = None
    override_rules: RuleSet | None = None
    validate_new_schemas: bool | None = None  # defaults of fields, and clashes of aliases
    # Accepted and kept, without effect here.
    alias_for_deks: str | None = None
    compatibility_policy: str | None = None
    validate_fields: bool | None = None
    validate_rules: bool | None = None

    def over(self, wider: Config) -> Config:
        """With what a wider scope says where this one says nothing.

        An alias, metadata and rules are of one scope alone.
        """
        inherited = {
            name: getattr(wider, name) for name in _INHERITED if getattr(self, name) is None
        }
        return replace(self, **inherited)

    @property
    def adds_to_schemas(self) -> bool:
        return any(
            part is not None
            for part in (
                self.default_metadata,
                self.override_metadata,
                self.default_rules,
                self.override_rules,
            )
        )


_INHERITED: Final = (
    "level",
    "normalize",
    "compatibility_group",
    "compatibility_policy",
    "validate_fields",
    "validate_new_schemas",
    "validate_rules",
)

SETTINGS: Final = tuple(field.name for field in fields(Config))
"""The names of all settings: what a change of the config may name."""
