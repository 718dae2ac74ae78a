"""The format `avro`: Confluent's wire format, with ids from a registry.

An encoder is prepared where the registry can be reached. That is where a schema that its subject
cannot take is refused, before any record is written. What goes to the tasks knows its id and needs
only pyarrow and numpy.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from duolog.avro.encode.encoder import BodyEncoder, encoder_of
from duolog.avro.records import record_for
from duolog.avro.schema import Record, Schema
from duolog.avro.shape import Shape, shape_of
from duolog.avro.wire import framed
from duolog.errors import InvalidRows
from duolog.log.model import Envelope, PayloadMode
from duolog.log.routing.codec import Part, Subject
from duolog.log.routing.nested import as_list

if TYPE_CHECKING:
    from collections.abc import Iterator

_PREPARED_LIMIT = 256


@dataclass(frozen=True, slots=True)
class Settled:
    """The schema that records are written with, and its id."""

    id: int
    schema: Schema
    lasts: bool  # False: another may be the right one next time


class Schemas(Protocol):
    """Where ids come from: `registry/settle.py`, by the serializer's options."""

    def settle(self, topic: str, part: Part, record: Record) -> Settled:
        """The schema to write this record with. Raises IncompatibleSchema and its like."""


@dataclass(frozen=True, slots=True)
class AvroEncoder:
    """Writes the rows of one schema. `schema_id` is None for bytes that are only hashed."""

    shape: Shape
    bodies: BodyEncoder
    schema_id: int | None
    subject: Subject

    def encode(self, rows: pa.StructArray) -> pa.BinaryArray:
        shaped = self.shape.rows(rows)
        if self.subject.part is not Part.VALUE:
            _refuse_nan(shaped, self.subject)
        bodies = self.bodies.encode(shaped)
        return bodies if self.schema_id is None else framed(bodies, self.schema_id)


class AvroCodec:
    """The format `avro`. Safe to use from many threads."""

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas
        self._guard = threading.Lock()
        self._prepared: OrderedDict[tuple[bytes, Subject], AvroEncoder] = OrderedDict()

    def prepare(self, schema: pa.Schema, subject: Subject) -> AvroEncoder:
        known = (schema.serialize().to_pybytes(), subject)  # == would pass over metadata
        with self._guard:
            if known in self._prepared:
                self._prepared.move_to_end(known)
                return self._prepared[known]
        encoder, lasts = self._prepare(schema, subject)
        if lasts:
            with self._guard:
                self._prepared[known] = encoder
                if len(self._prepared) > _PREPARED_LIMIT:
                    self._prepared.popitem(last=False)
        return encoder

    def _prepare(self, schema: pa.Schema, subject: Subject) -> tuple[AvroEncoder, bool]:
        has_images = subject.part is Part.VALUE and (
            subject.envelope is Envelope.DEBEZIUM or subject.payload is PayloadMode.DIFF
        )
        shape = shape_of(schema, subject, has_images=has_images)
        record = record_for(shape.columns, subject, has_images=has_images)
        if subject.part is Part.PLACE:
            return AvroEncoder(shape, encoder_of(shape.columns, record), None, subject), True
        settled = self._schemas.settle(subject.topic, subject.part, record)
        bodies = encoder_of(shape.columns, settled.schema)
        return AvroEncoder(shape, bodies, settled.id, subject), settled.lasts


def _refuse_nan(rows: pa.StructArray, subject: Subject) -> None:
    """NaN has many bit patterns and equals none: as a key, it would name no record."""
    for name, values in _floats(rows, ""):
        if pc.any(pc.is_nan(values)).as_py():
            raise InvalidRows(
                f"Column '{name}' holds NaN, which cannot be in the {subject}. Filter such rows, "
                "or choose other key columns."
            )


def _floats(values: pa.Array, name: str) -> Iterator[tuple[str, pa.Array]]:
    kind = values.type
    if pa.types.is_floating(kind):
        yield name, values
    elif pa.types.is_struct(kind):
        for field, child in zip(kind, values.flatten(), strict=True):
            yield from _floats(child, f"{name}.{field.name}" if name else field.name)
    elif pa.types.is_nested(kind):
        yield from _floats(as_list(values).flatten(), name)
