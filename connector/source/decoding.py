"""Option decode: values as Spark's columns, read with the newest schema of their subject.

The driver settles what the columns are when a read is defined; records of older schemas, and of
newer ones that come while a stream runs, are resolved to it as Avro says. Before each batch the
driver tells the tasks the schemas that the subjects have by then. A task that meets another one
asks the log's own registry; a registry elsewhere is asked by the driver alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

import numpy as np
import pyarrow as pa

from duolog.avro.decode.decoder import decoder_of
from duolog.avro.registry.resolving import resolved_schema
from duolog.avro.text import schema_text
from duolog.avro.to_arrow import arrow_type
from duolog.avro.wire import bodies_are_bare, unframed
from duolog.connector.source.choice import chosen_topics
from duolog.connector.source.spark_types import as_spark, spark_type
from duolog.errors import (
    IncompatibleSchema,
    InvalidSetting,
    Undecodable,
    UnknownSchema,
    UnknownSubject,
)

if TYPE_CHECKING:
    from duolog.avro.decode.decoder import BodyDecoder
    from duolog.avro.registry.port import Registry
    from duolog.avro.schema import Schema
    from duolog.avro.wire import SchemaId
    from duolog.connector.place import LogPlace
    from duolog.connector.source.choice import Place
    from duolog.connector.source.options import SourceOptions
    from duolog.log.fetched import FetchedBatch


@dataclass(frozen=True, slots=True)
class WrittenSchemas:
    """Schemas by their ids. `are_all`: no task may ask for more."""

    by_id: Mapping[int, Schema]
    are_all: bool


@dataclass(frozen=True, slots=True)
class ValueColumns:
    """What the values of some subjects are read as."""

    reader: Schema
    sql: str
    arrow: pa.DataType
    subjects: tuple[str, ...]

    def written(self, place: LogPlace, registry: Mapping[str, str]) -> WrittenSchemas:
        """The schemas that the subjects have now. On the driver."""
        found: dict[int, Schema] = {}
        with place.opened() as log:
            asked = place.registry(log, registry)
            for subject in self.subjects:
                found |= _versions(asked, subject)
        return WrittenSchemas(found, are_all=bool(registry))

    def decoder(self, written: WrittenSchemas, place: LogPlace) -> ValueDecoder:
        return ValueDecoder(self, written, place)


def settle_value_columns(options: SourceOptions) -> ValueColumns:
    """The columns of what is chosen now. All topics need to have the same."""
    from duolog.avro.registry.options import RegistryOptions
    from duolog.avro.registry.subject_names import SubjectNameStrategy

    strategy = RegistryOptions.of(options.registry).serializer.value_strategy
    if strategy is not SubjectNameStrategy.TOPIC:
        raise InvalidSetting(
            f"Option decode needs one schema a topic, and {strategy}NameStrategy allows several. "
            "Read the bytes, and decode them with from_avro."
        )
    readers: dict[str, Schema] = {}
    with options.place.opened() as log:
        registry = options.place.registry(log, options.registry)
        for topic in chosen_topics(log, options.choice):
            subject = f"{topic.name}-value"
            try:
                readers[subject] = resolved_schema(registry, registry.latest(subject).schema)
            except UnknownSubject as error:
                raise InvalidSetting(
                    f"Option decode: topic '{topic.name}' has no Avro schema (subject "
                    f"'{subject}'). If its values are JSON, leave decode out and use Spark's own "
                    "from_json(CAST(value AS STRING), schema)."
                ) from error
    if not readers:
        raise InvalidSetting("Option decode: there is no topic yet whose columns could be known.")
    texts = {schema_text(reader): subject for subject, reader in readers.items()}
    if len(texts) > 1:
        raise InvalidSetting(
            f"Option decode: {' and '.join(sorted(texts.values()))} have different schemas, and "
            "one column can have only one. Read the topics apart."
        )
    reader = next(iter(readers.values()))
    kind = spark_type(arrow_type(reader))
    return ValueColumns(reader, kind.sql, kind.arrow, tuple(readers))


def _versions(registry: Registry, subject: str) -> dict[int, Schema]:
    found: dict[int, Schema] = {}
    for number in range(1, registry.latest(subject).version + 1):
        try:
            version = registry.version(subject, number)
        except UnknownSchema:  # it was deleted; its id is still known to the log's own registry
            continue
        found[version.id] = resolved_schema(registry, version.schema)
    return found


class ValueDecoder:
    """Decodes the values of one task."""

    def __init__(self, columns: ValueColumns, written: WrittenSchemas, place: LogPlace) -> None:
        self._columns = columns
        self._written = written
        self._place = place
        self._decoders: dict[SchemaId, BodyDecoder | None] = {}

    def decode(self, where: Place, batch: FetchedBatch) -> pa.Array:
        """The value column of a batch; null stays null."""
        values = batch.records.column("value")
        try:
            return self._decoded(values, batch.records.column("headers"))
        except (Undecodable, UnknownSchema, IncompatibleSchema) as error:
            raise type(error)(
                f"The values of {where}, in the batch from offset {batch.base_offset}: {error}"
            ) from error

    def _decoded(self, values: pa.BinaryArray, headers: pa.ListArray) -> pa.Array:
        kind = self._columns.arrow
        groups = unframed(values, headers).groups
        pieces = [self._one(group.schema, group.bodies) for group in groups]
        if len(groups) == 1 and len(groups[0].rows) == len(values):
            return pieces[0]
        if not groups:
            return pa.nulls(len(values), kind)
        place = np.full(len(values), -1, np.int64)
        place[np.concatenate([group.rows for group in groups])] = np.arange(
            sum(len(group.rows) for group in groups)
        )
        return pa.concat_arrays(pieces).take(pa.array(place, mask=place < 0))

    def _one(self, schema: SchemaId, bodies: pa.BinaryArray) -> pa.Array:
        if schema not in self._decoders:
            self._decoders[schema] = self._decoder(schema)
        decoder = self._decoders[schema]
        return as_spark(bodies if decoder is None else decoder.decode(bodies), self._columns.arrow)

    def _decoder(self, schema: SchemaId) -> BodyDecoder | None:
        """None where the bodies are the values."""
        writer = self._schema(schema)
        reader = self._columns.reader
        if bodies_are_bare(writer) and bodies_are_bare(reader):
            return None
        return decoder_of(writer, reader)

    def _schema(self, schema: SchemaId) -> Schema:
        if isinstance(schema, int) and schema in self._written.by_id:
            return self._written.by_id[schema]
        if self._written.are_all:
            raise UnknownSchema(
                f"Schema {schema} is not one of subject {' or '.join(self._columns.subjects)}, "
                "whose schemas the driver asked its registry for. Read the bytes, and decode them "
                "with from_avro."
            )
        with self._place.opened() as log:
            registry = self._place.registry(log, {})
            asked = registry.schema_by_guid if isinstance(schema, UUID) else registry.schema_by_id
            return resolved_schema(registry, asked(schema))  # type: ignore[arg-type]
