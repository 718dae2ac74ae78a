"""A registry that is asked over HTTP: Duolog's own, Confluent's, or one that speaks the same."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self
from urllib.parse import quote
from uuid import UUID

import httpx

from duolog.avro.registry.cache import AnswerCache
from duolog.avro.registry.connection import RegistryConnection
from duolog.avro.registry.connection_options import ConnectionOptions
from duolog.avro.registry.port import RegisteredSchema, SchemaText


class RegistryClient:
    """Implements `port.Registry`. Safe to use from many threads; close it at the end.

    What cannot change is asked once and remembered: ids, guids, versions, and that a schema is
    registered under a subject. `latest` is asked each time, unless `latest.cache.ttl.sec` is set.
    """

    def __init__(
        self, options: ConnectionOptions, *, transport: httpx.BaseTransport | None = None
    ) -> None:
        self._connection = RegistryConnection(options, transport=transport)
        self._remembered = AnswerCache(options.cache_capacity)
        self._latest_seconds = options.latest_cache_seconds

    def close(self) -> None:
        """Give the connections back. Further calls raise RegistryUnreachable."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

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
