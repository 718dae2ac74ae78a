"""What an encoder or decoder asks of a schema registry, wherever it runs.

`service.py` answers from a log, `client.py` from any registry that speaks Confluent's REST API.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol
from uuid import UUID


@dataclass(frozen=True, slots=True)
class SchemaReference:
    """A schema of another subject whose types a schema uses."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class SchemaText:
    """A schema as a registry keeps it."""

    text: str
    type: str = "AVRO"
    references: tuple[SchemaReference, ...] = ()


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """One version of a subject."""

    subject: str
    version: int
    id: int
    schema: SchemaText


class SchemaSource(Protocol):
    """The calls that deserializers make. Each may raise a RegistryFault."""

    def version(self, subject: str, version: int) -> RegisteredSchema:
        """One version, as references name it; UnknownSubject, UnknownSchema."""

    def schema_by_id(self, schema_id: int) -> SchemaText:
        """The schema with this id; UnknownSchema when there is none."""

    def schema_by_guid(self, guid: UUID) -> SchemaText:
        """The schema with this guid; UnknownSchema when there is none."""


class Registry(SchemaSource, Protocol):
    """The calls that serializers make, besides. Each may raise a RegistryFault."""

    def register(self, subject: str, schema: SchemaText, *, normalize: bool = False) -> int:
        """The id of this schema under the subject, registered now if it was not.

        Raises IncompatibleSchema, and InvalidSchema for what is no schema.
        """

    def lookup(
        self, subject: str, schema: SchemaText, *, normalize: bool = False
    ) -> RegisteredSchema:
        """The version of the subject that is this schema; UnknownSubject, UnknownSchema."""

    def latest(self, subject: str) -> RegisteredSchema:
        """The newest version; UnknownSubject when there is none."""
