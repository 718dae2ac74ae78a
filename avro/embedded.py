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
from weakref import WeakKeyDictionary

from duolog.avro.codec import AvroCodec, Settled
from duolog.avro.registry.options import RegistryOptions
from duolog.log import EmbeddedLog, LogOptions, embedded
from duolog.log.model import Format
from duolog.log.routing.prepare import BUILT_IN

if TYPE_CHECKING:
    from duolog.avro.registry.port import Registry
    from duolog.avro.registry.service import RegistryService
    from duolog.avro.registry.settle import RegisteredSchemas
    from duolog.avro.schema import Record
    from duolog.log.routing.codec import Codecs, Part
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

    options_read = RegistryOptions.of(avro)

    opened: list[_Schemas] = []

    def codecs_for(documents: SchemaDocuments) -> Codecs:
        opened.append(_Schemas(documents, options_read))
        return {**BUILT_IN, Format.AVRO: AvroCodec(opened[0])}

    log = embedded.open_log(path, create=create, options=options, codecs_for=codecs_for)
    log.call_when_closed(opened[0].close)
    return log


def registry_of(log: EmbeddedLog) -> RegistryService:
    """The registry that lives in a log; the same one each time."""
    return _registry_in(log.schema_documents)


def _registry_in(documents: SchemaDocuments) -> RegistryService:
    from duolog.avro.registry.service import RegistryService

    with _registries_guard:
        if documents not in _registries:
            _registries[documents] = RegistryService(documents)
        return _registries[documents]


_registries: WeakKeyDictionary[SchemaDocuments, RegistryService] = WeakKeyDictionary()
_registries_guard = threading.Lock()


def registry_for(log: EmbeddedLog, avro: Mapping[str, str] = _NO_OPTIONS) -> Registry:
    """The registry that these options name, or the one that lives in the log."""
    schemas = _Schemas(log.schema_documents, RegistryOptions.of(avro))
    log.call_when_closed(schemas.close)
    return schemas.opened().registry


class _Schemas:
    """Opens the registry when the first schema is asked for: most logs never need one."""

    def __init__(self, documents: SchemaDocuments, options: RegistryOptions) -> None:
        self._documents = documents
        self._options = options
        self._opened: RegisteredSchemas | None = None
        self._closing = ExitStack()
        self._guard = threading.Lock()

    def settle(self, topic: str, part: Part, record: Record) -> Settled:
        return self.opened().settle(topic, part, record)

    def opened(self) -> RegisteredSchemas:
        from duolog.avro.registry.settle import RegisteredSchemas

        with self._guard:
            if self._opened is None:
                self._opened = RegisteredSchemas(self._registry(), self._options.serializer)
            return self._opened

    def _registry(self) -> Registry:
        if self._options.connection is None:
            return _registry_in(self._documents)
        from duolog.avro.registry.client import RegistryClient

        return self._closing.enter_context(RegistryClient(self._options.connection))

    def close(self) -> None:
        self._closing.close()
