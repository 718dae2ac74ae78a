"""Values in Confluent's wire format, read by whole columns whatever their schemas are."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duolog.avro.decode.decoder import BodyDecoder, decoder_of
from duolog.avro.registry.resolving import resolved_schema
from duolog.avro.wire import bodies_are_bare, unframed
from duolog.errors import DuologError, InvalidSchema, Undecodable
from duolog.log.routing.codec import Part, Subject
from duolog.log.routing.json_codec import JsonCodec, JsonEncoder

if TYPE_CHECKING:
    import numpy.typing as npt

    from duolog.avro.registry.port import SchemaSource
    from duolog.avro.schema import Schema
    from duolog.avro.wire import SchemaId

_READERS_LIMIT = 256
_VALUE = "value"
_BEFORE_VALUE = '{"value":'


@dataclass(frozen=True, slots=True, eq=False)
class DecodedRows:
    """Rows of a column that have one schema, as Arrow values."""

    schema: SchemaId
    rows: npt.NDArray[np.int64]
    values: pa.Array


class _Reader:
    """Reads what one schema has written."""

    def __init__(self, schema: Schema) -> None:
        self._decoder: BodyDecoder | None = None
        kind = pa.binary()
        if not bodies_are_bare(schema):
            self._decoder = decoder_of(schema)
            kind = self._decoder.type
        self._is_record = bool(pa.types.is_struct(kind))
        columns = pa.schema(list(kind)) if self._is_record else pa.schema([(_VALUE, kind)])
        self._json: JsonEncoder = JsonCodec().prepare(columns, Subject("", "", Part.VALUE))

    def decode(self, bodies: pa.BinaryArray) -> pa.Array:
        return self._decoder.decode(bodies) if self._decoder else bodies

    def as_json(self, bodies: pa.BinaryArray) -> pa.BinaryArray:
        values = self.decode(bodies)
        if self._is_record:
            return self._json.encode(values)
        texts = self._json.encode(pa.StructArray.from_arrays([values], names=[_VALUE]))
        return pc.binary_slice(texts, len(_BEFORE_VALUE), -1)


class ValueReader:
    """Decodes columns of values with the schemas of a registry. Safe to use from many threads."""

    def __init__(self, registry: SchemaSource) -> None:
        self._registry = registry
        self._guard = threading.Lock()
        self._readers: OrderedDict[SchemaId, _Reader | DuologError] = OrderedDict()

    def decode(
        self,
        values: pa.BinaryArray,
        headers: pa.ListArray | None = None,
        part: Part = Part.VALUE,
    ) -> list[DecodedRows]:
        """The rows that are not null, by schema. Raises Undecodable, UnknownSchema."""
        return [
            DecodedRows(group.schema, group.rows, self._reader(group.schema).decode(group.bodies))
            for group in unframed(values, headers, part).groups
        ]

    def as_json(
        self,
        values: pa.BinaryArray,
        headers: pa.ListArray | None = None,
        part: Part = Part.VALUE,
    ) -> pa.BinaryArray:
        """Each value as JSON; null stays null."""
        pieces = []
        rows = []
        for group in unframed(values, headers, part).groups:
            pieces.append(self._reader(group.schema).as_json(group.bodies))
            rows.append(group.rows)
        if not pieces:
            return pa.nulls(len(values), pa.binary())
        place = np.full(len(values), -1, np.int64)
        place[np.concatenate(rows)] = np.arange(sum(map(len, rows)))
        return pa.concat_arrays(pieces).take(pa.array(place, mask=place < 0))

    def _reader(self, schema: SchemaId) -> _Reader:
        """A schema never changes, so what cannot be read with it is not tried again."""
        with self._guard:
            known = self._readers.get(schema)
            if known is not None:
                self._readers.move_to_end(schema)
        if known is None:
            known = self._made(schema)
            with self._guard:
                self._readers[schema] = known
                if len(self._readers) > _READERS_LIMIT:
                    self._readers.popitem(last=False)
        if isinstance(known, DuologError):
            raise type(known)(str(known))
        return known

    def _made(self, schema: SchemaId) -> _Reader | DuologError:
        """Made anew; or why nothing can be read with this schema."""
        text = (
            self._registry.schema_by_guid(schema)
            if isinstance(schema, UUID)
            else self._registry.schema_by_id(schema)
        )
        if text.type != "AVRO":
            return Undecodable(f"Schema {schema} is of type {text.type}; only Avro is read here.")
        try:
            return _Reader(resolved_schema(self._registry, text))
        except InvalidSchema as error:
            return error.with_traceback(None)
