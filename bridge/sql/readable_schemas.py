"""The schemas that a caller's statements are decoded with.

Whoever may publish to a topic may write any schema's id into a record. So a caller who is limited
to some subjects gets only schemas of these, and what these refer to; else a SELECT over such a
record would tell the fields of any schema.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from duolog.avro.registered_codec import RegisteredCodec
from duolog.avro.registry.contexts import normalized
from duolog.avro.registry.service import RegistryService
from duolog.errors import UnknownSchema
from duolog.log.model import Format

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from duolog.avro.reading import ValueReader
    from duolog.avro.registry.port import RegisteredSchema, Registry, SchemaText
    from duolog.bridge.http.callers import Caller
    from duolog.log import EmbeddedLog

_DEFAULT: Final = ""  # the context of ids


def registry_used_by(log: EmbeddedLog) -> Registry:
    """The registry that the log's own writers use."""
    codec = log.codec(Format.AVRO)
    assert isinstance(codec, RegisteredCodec)  # noqa: S101 - hosts open logs with this
    return codec.schemas().registry


def value_reader_of(log: EmbeddedLog) -> Callable[[], ValueReader]:
    """Reads values with all schemas of that registry. Made when it is first needed."""

    @cache
    def reader() -> ValueReader:
        from duolog.avro.reading import ValueReader

        return ValueReader(registry_used_by(log))

    return reader


class ReadableSchemas:
    """The part of a registry that reading needs, for one request.

    A registry elsewhere does not say which subjects have an id: there any schema is given by its
    id, and only names of subjects are checked.
    """

    def __init__(self, registry: Registry, caller: Caller) -> None:
        self._registry = registry
        self._caller = caller
        self._referred: set[tuple[str, int]] = set()

    def schema_by_id(self, schema_id: int) -> SchemaText:
        registry = self._registry
        if isinstance(registry, RegistryService):
            self._check_holders(registry, schema_id, _DEFAULT)
        return self._noted(registry.schema_by_id(schema_id))

    def schema_by_guid(self, guid: UUID) -> SchemaText:
        registry = self._registry
        if isinstance(registry, RegistryService):
            found = registry.find_by_guid(guid)
            self._check_holders(registry, found.id, found.subject)
        return self._noted(registry.schema_by_guid(guid))

    def version(self, subject: str, version: int) -> RegisteredSchema:
        if (subject, version) not in self._referred and not self._may_use(subject):
            raise self._not_theirs()
        found = self._registry.version(subject, version)
        self._noted(found.schema)
        return found

    def _check_holders(self, registry: RegistryService, schema_id: int, subject: str) -> None:
        holders = registry.versions_of_id(schema_id, subject, deleted=True)
        if not any(self._may_use(each.subject) for each in holders):
            raise self._not_theirs()

    def _noted(self, schema: SchemaText) -> SchemaText:
        self._referred |= {(each.subject, each.version) for each in schema.references}
        return schema

    def _may_use(self, subject: str) -> bool:
        return self._caller.may_use_subject(normalized(subject))

    def _not_theirs(self) -> UnknownSchema:
        return UnknownSchema(
            f"The token '{self._caller.name}' may read no subject that has this schema. Have one "
            "made with --subjects, or leave the record out."
        )
