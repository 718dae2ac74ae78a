"""A log in this process whose topics may also be in Avro.

Ids come from the log's own registry, which lives in the log beside the topics, or from another one
by the options that Confluent's serializers know.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from duolog.avro.registered_codec import RegisteredCodec, check_options
from duolog.log import EmbeddedLog, LogOptions, embedded
from duolog.log.model import Format
from duolog.log.routing.prepare import BUILT_IN

if TYPE_CHECKING:
    from duolog.avro.registry.port import Registry
    from duolog.avro.registry.service import RegistryService
    from duolog.log.owner import Ownership
    from duolog.log.routing.codec import Codecs
    from duolog.log.schemas import SchemaDocuments

_NO_OPTIONS: Mapping[str, str] = MappingProxyType({})


def open_log(
    path: str | os.PathLike[str],
    *,
    create: bool = True,
    options: LogOptions | None = None,
    avro: Mapping[str, str] = _NO_OPTIONS,
    ownership: Ownership | None = None,
) -> EmbeddedLog:
    """Own and open the log in a directory; use it as a context manager, or close it.

    `avro` holds options as Confluent's serializers take them, like `schema.registry.url`; without
    a url, schemas are registered in the log itself.
    """
    check_options(avro)
    made: list[RegisteredCodec] = []

    def codecs_for(documents: SchemaDocuments) -> Codecs:
        made.append(_codec_of(documents, avro))
        return {**BUILT_IN, Format.AVRO: made[0]}

    log = embedded.open_log(
        path, create=create, options=options, codecs_for=codecs_for, ownership=ownership
    )
    log.call_when_closed(made[0].close)
    return log


def registry_of(log: EmbeddedLog) -> RegistryService:
    """The registry that lives in a log; the same one each time."""
    return _registry_in(log.schema_documents)


def registry_for(log: EmbeddedLog, avro: Mapping[str, str] = _NO_OPTIONS) -> Registry:
    """The registry that these options name, or the one that lives in the log."""
    codec = _codec_of(log.schema_documents, avro)
    log.call_when_closed(codec.close)
    return codec.schemas().registry


def _registry_in(documents: SchemaDocuments) -> RegistryService:
    from duolog.avro.registry.service import RegistryService

    with documents.guard:
        if not isinstance(documents.kept_by, RegistryService):
            documents.kept_by = RegistryService(documents)
        return documents.kept_by


def _codec_of(documents: SchemaDocuments, avro: Mapping[str, str]) -> RegisteredCodec:
    return RegisteredCodec(lambda: _registry_in(documents), avro)
