"""What is asked of a registry that speaks Confluent's REST API, over any connection to it.

What cannot change is asked once and remembered: ids, guids, versions, and that a schema is
registered under a subject. `latest` is asked each time, unless told otherwise.
"""

from __future__ import annotations

from typing import Any, Protocol
from urllib.parse import quote
from uuid import UUID

from duolog.avro.registry.answers import Answer
from duolog.avro.registry.cache import AnswerCache
from duolog.avro.registry.port import RegisteredSchema, SchemaText


class Connection(Protocol):
    """A way to a registry. All that is asked may be asked again."""

    def ask(self, method: str, path: str, asked: str, *, body: Any = None) -> Answer:
        """Its answer; `asked` continues "asked to ..." in messages."""


class AskedRegistry:
    """Implements `port.Registry`. Safe to use from many threads."""

    def __init__(
        self, connection: Connection, *, capacity: int = 1000, latest_seconds: float = 0.0
    ) -> None:
        self._connection = connection
        self._remembered = AnswerCache(capacity)
        self._latest_seconds = latest_seconds

    def register(self, subject: str, schema: SchemaText, *, normalize: bool = False) -> int:
        """The id of this schema under the subject, registered now if it was not."""

        def ask() -> int:
            path = f"subjects/{_quoted(subject)}/versions{_normalized(normalize)}"
            asked = f"register a schema under subject '{subject}'"
            return self._connection.ask("POST", path, asked, body=_body(schema)).schema_id()

        return self._remembered.get(("register", subject, schema, normalize), ask)

    def lookup(
        self, subject: str, schema: SchemaText, *, normalize: bool = False
    ) -> RegisteredSchema:
        """The version of the subject that is this schema."""

        def ask() -> RegisteredSchema:
            path = f"subjects/{_quoted(subject)}{_normalized(normalize)}"
            asked = f"look up a schema under subject '{subject}'"
            return self._connection.ask("POST", path, asked, body=_body(schema)).registered()

        return self._remembered.get(("lookup", subject, schema, normalize), ask)

    def latest(self, subject: str) -> RegisteredSchema:
        """The newest version."""

        def ask() -> RegisteredSchema:
            path = f"subjects/{_quoted(subject)}/versions/latest"
            asked = f"give the latest version of subject '{subject}'"
            found = self._connection.ask("GET", path, asked).registered()
            self._remembered.put(("version", subject, found.version), found)
            self._remembered.put(("id", found.id), found.schema)
            return found

        return self._remembered.get(("latest", subject), ask, lifetime_seconds=self._latest_seconds)

    def version(self, subject: str, version: int) -> RegisteredSchema:
        """One version, also one that was deleted since: what refers to it still needs it."""

        def ask() -> RegisteredSchema:
            path = f"subjects/{_quoted(subject)}/versions/{version}?deleted=true"
            asked = f"give version {version} of subject '{subject}'"
            return self._connection.ask("GET", path, asked).registered()

        return self._remembered.get(("version", subject, version), ask)

    def schema_by_id(self, schema_id: int) -> SchemaText:
        """The schema with this id."""

        def ask() -> SchemaText:
            asked = f"give the schema with id {schema_id}"
            return self._connection.ask("GET", f"schemas/ids/{schema_id}", asked).schema()

        return self._remembered.get(("id", schema_id), ask)

    def schema_by_guid(self, guid: UUID) -> SchemaText:
        """The schema with this guid."""

        def ask() -> SchemaText:
            asked = f"give the schema with guid {guid}"
            return self._connection.ask("GET", f"schemas/guids/{guid}", asked).schema()

        return self._remembered.get(("guid", guid), ask)


def _quoted(subject: str) -> str:
    return quote(subject, safe="")


def _normalized(normalize: bool) -> str:
    return "?normalize=true" if normalize else ""


def _body(schema: SchemaText) -> dict[str, Any]:
    """As Java's client sends it: older registries know nothing of types and references."""
    body: dict[str, Any] = {"schema": schema.text}
    if schema.type != "AVRO":
        body["schemaType"] = schema.type
    if schema.references:
        body["references"] = [
            {"name": ref.name, "subject": ref.subject, "version": ref.version}
            for ref in schema.references
        ]
    return body
