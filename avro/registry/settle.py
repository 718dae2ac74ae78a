"""Which schema records are written with, by the options that Confluent's serializers know.

| option                                  | the schema is                                         |
|-----------------------------------------|-------------------------------------------------------|
| auto.register.schemas=true (default)    | the columns' own, registered if it was not            |
| auto.register.schemas=false             | the columns' own, which has to be registered already  |
| use.latest.version=true                 | the subject's newest; the columns have to fit it      |
| use.schema.id=n                         | that one; the columns have to fit it                  |
"""

from __future__ import annotations

from dataclasses import dataclass

from duolog.avro.codec import Settled
from duolog.avro.compatibility import incompatibilities
from duolog.avro.registry.options import SerializerOptions
from duolog.avro.registry.port import Registry, SchemaText
from duolog.avro.registry.resolving import resolved_schema
from duolog.avro.registry.subject_names import subject_name
from duolog.avro.schema import Record, Schema
from duolog.avro.text import schema_text
from duolog.errors import IncompatibleSchema, UnknownSchema, UnknownSubject
from duolog.log.routing.codec import Part


@dataclass(frozen=True, slots=True)
class RegisteredSchemas:
    """Ids from a registry."""

    registry: Registry
    options: SerializerOptions

    def settle(self, topic: str, part: Part, record: Record) -> Settled:
        options = self.options
        strategy = options.key_strategy if part is Part.KEY else options.value_strategy
        subject = subject_name(strategy, topic, part, record.name)
        if options.use_schema_id is not None:
            schema = resolved_schema(
                self.registry, self.registry.schema_by_id(options.use_schema_id)
            )
            if options.id_compatibility_strict:
                _check_readable(schema, record, f"schema {options.use_schema_id}")
            return Settled(options.use_schema_id, schema, lasts=True)
        if options.use_latest_version:
            latest = self.registry.latest(subject)
            schema = resolved_schema(self.registry, latest.schema)
            if options.latest_compatibility_strict:
                _check_readable(
                    schema, record, f"version {latest.version} of '{subject}' (id {latest.id})"
                )
            return Settled(latest.id, schema, lasts=False)
        own = SchemaText(schema_text(record))
        if options.auto_register_schemas:
            found = self.registry.register(subject, own, normalize=options.normalize_schemas)
            return Settled(found, record, lasts=True)
        try:
            known = self.registry.lookup(subject, own, normalize=options.normalize_schemas)
        except (UnknownSubject, UnknownSchema) as error:
            raise UnknownSchema(
                f"Subject '{subject}' has no version with the columns of topic '{topic}': "
                f"{own.text}. Register it, or set auto.register.schemas or use.latest.version."
            ) from error
        return Settled(known.id, record, lasts=True)


def _check_readable(schema: Schema, record: Record, called: str) -> None:
    found = incompatibilities(schema, record)
    if found:
        raise IncompatibleSchema(
            f"What would be written cannot be read with {called}: {found[0].message} Change the "
            "columns, or register another version."
        )
