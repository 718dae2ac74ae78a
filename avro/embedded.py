"""A log in this process whose topics may also be in Avro.

Ids come from the log's own registry, which lives in the log beside the topics, or from another one
by the options that Confluent's serializers know.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from types import MappingProxyType
from typing import TYPE_CHECKING

from duolog.log import EmbeddedLog, LogOptions, embedded
from duolog.log.model import Format
from duolog.log.routing.prepare import BUILT_IN

if TYPE_CHECKING:
    import pyarrow as pa

    from duolog.avro.codec import AvroCodec, AvroEncoder
    from duolog.avro.registry.options import ConnectionOptions
    from duolog.avro.registry.port import Registry
    from duolog.avro.registry.service import RegistryService
    from duolog.avro.registry.settle import RegisteredSchemas
    from duolog.log.routing.codec import Codecs, Subject
    from duolog.log.schemas import SchemaDocuments

_NO_OPTIONS: Mapping[str, str] = MappingProxyType({})


def open_log(
    path: str | os.PathLike[str],
    *,
    create: bool = True,
    options: LogOptions | None = None,
    avro: Mapping[str, str] = _NO_OPTIONS,
) -> EmbeddedLog:
    """Own and open the log in a directory; use it as a context manager, or close it.

    `avro` holds options as Confluent's serializers take them, like `schema.registry.url`; without
    a url, schemas are registered in the log itself.
    """
    check_options(avro)
    made: list[_LogCodec] = []

    def codecs_for(documents: SchemaDocuments) -> Codecs:
        made.append(_LogCodec(documents, avro))
        return {**BUILT_IN, Format.AVRO: made[0]}

    log = embedded.open_log(path, create=create, options=options, codecs_for=codecs_for)
    log.call_when_closed(made[0].close)
    return log


def check_options(avro: Mapping[str, str]) -> None:
    """Refuse what is wrong in these options before anything is opened."""
    if avro:
        from duolog.avro.registry.options import RegistryOptions

        RegistryOptions.of(avro)


def registry_of(log: EmbeddedLog) -> RegistryService:
    """The registry that lives in a log; the same one each time."""
    return _registry_in(log.schema_documents)


def registry_for(log: EmbeddedLog, avro: Mapping[str, str] = _NO_OPTIONS) -> Registry:
    """The registry that these options name, or the one that lives in the log."""
    codec = _LogCodec(log.schema_documents, avro)
    log.call_when_closed(codec.close)
    return codec.schemas().registry


def _registry_in(documents: SchemaDocuments) -> RegistryService:
    from duolog.avro.registry.service import RegistryService

    with documents.guard:
        if not isinstance(documents.kept_by, RegistryService):
            documents.kept_by = RegistryService(documents)
        return documents.kept_by


class _LogCodec:
    """The format `avro` of one log. Loads and opens nothing before the first schema comes."""

    def __init__(self, documents: SchemaDocuments, options: Mapping[str, str]) -> None:
        self._documents = documents
        self._options = options
        self._codec: AvroCodec | None = None
        self._schemas: RegisteredSchemas | None = None
        self._closing = ExitStack()
        self._guard = threading.Lock()

    def prepare(self, schema: pa.Schema, subject: Subject) -> AvroEncoder:
        from duolog.avro.codec import AvroCodec

        schemas = self.schemas()
        with self._guard:
            if self._codec is None:
                self._codec = AvroCodec(schemas)
        return self._codec.prepare(schema, subject)

    def schemas(self) -> RegisteredSchemas:
        """Where ids come from."""
        from duolog.avro.registry.options import RegistryOptions
        from duolog.avro.registry.settle import RegisteredSchemas

        with self._guard:
            if self._schemas is None:
                options = RegistryOptions.of(self._options)
                registry = self._registry(options.connection)
                self._schemas = RegisteredSchemas(registry, options.serializer)
            return self._schemas

    def _registry(self, connection: ConnectionOptions | None) -> Registry:
        if connection is None:
            return _registry_in(self._documents)
        from duolog.avro.registry.client import RegistryClient

        return self._closing.enter_context(RegistryClient(connection))

    def close(self) -> None:
        self._closing.close()
