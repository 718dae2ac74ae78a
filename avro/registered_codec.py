"""The format `avro` of one log, wherever the log is: ids by the options that Confluent's
serializers know, from the registry that they name or else from the log's own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from duolog.avro.codec import AvroCodec, AvroEncoder
    from duolog.avro.registry.options import ConnectionOptions
    from duolog.avro.registry.port import Registry
    from duolog.avro.registry.settle import RegisteredSchemas
    from duolog.log.routing.codec import Subject


def check_options(avro: Mapping[str, str]) -> None:
    """Refuse what is wrong in these options before anything is opened."""
    if avro:
        from duolog.avro.registry.options import RegistryOptions

        RegistryOptions.of(avro)


class RegisteredCodec:
    """Loads and opens nothing before the first schema comes."""

    def __init__(self, own_registry: Callable[[], Registry], options: Mapping[str, str]) -> None:
        self._own_registry = own_registry
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
            return self._own_registry()
        from duolog.avro.registry.client import RegistryClient

        return self._closing.enter_context(RegistryClient(connection))

    def close(self) -> None:
        self._closing.close()
