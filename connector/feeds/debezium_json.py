"""Debezium's envelope out of JSON, with Kafka Connect's schema part around it or without.

The columns of the rows are given, since JSON tells numbers from text and no more. Arrow's own
parser reads whole batches; only how a value is written, where that can differ, is looked up in the
first rows:

| column    | in JSON                                                                        |
|-----------|--------------------------------------------------------------------------------|
| decimal   | text, a number, or with the schema part Connect's unscaled bytes               |
| date      | days since 1970, or text                                                       |
| timestamp | text, or with the schema part a number (milli-, micro- or nanoseconds)         |
| binary    | base64                                                                         |
"""

from __future__ import annotations

import json
from base64 import b64decode
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from duolog.errors import InvalidRows

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    import numpy.typing as npt

_LOOK_AT_ROWS = 200
_UNITS = {
    "io.debezium.time.Timestamp": "ms",
    "org.apache.kafka.connect.data.Timestamp": "ms",
    "io.debezium.time.MicroTimestamp": "us",
    "io.debezium.time.NanoTimestamp": "ns",
}
_UNSCALED = "org.apache.kafka.connect.data.Decimal"


@dataclass(frozen=True, slots=True, eq=False)
class Envelopes:
    """The parts of a batch of envelopes that are used."""

    op: pa.StringArray
    before: pa.StructArray
    after: pa.StructArray
    ts: pa.Int64Array

    def take(self, rows: npt.NDArray[np.int64]) -> Envelopes:
        at = pa.array(rows)
        return Envelopes(
            self.op.take(at), self.before.take(at), self.after.take(at), self.ts.take(at)
        )


def parsed(values: pa.Array, rows: pa.Schema, table: str) -> Envelopes:
    """The envelopes of a column of JSON without nulls."""
    forms = _Forms.of(values, rows, table)
    read = _read_json(values, forms, table)
    with_schema = read.column("payload")
    inner = with_schema.flatten()
    names = [field.name for field in with_schema.type]

    def part(name: str) -> pa.Array:
        """From the payload where there is a schema part, else from the top."""
        return _either(inner[names.index(name)], read.column(name))

    source = part("source").flatten()[0]
    return Envelopes(
        op=part("op"),
        before=forms.rows_of(part("before")),
        after=forms.rows_of(part("after")),
        ts=pc.coalesce(source, part("ts_ms")),
    )


@dataclass(frozen=True, slots=True)
class _Forms:
    """How the values of each column are written."""

    rows: pa.Schema
    table: str
    written: Mapping[str, pa.DataType]
    names: Mapping[str, str]  # Connect's name of a column's type, from the schema part

    @classmethod
    def of(cls, values: pa.Array, rows: pa.Schema, table: str) -> _Forms:
        unsure = {field.name for field in rows if _may_differ(field.type)}
        names: dict[str, str] = {}
        written: dict[str, pa.DataType] = {}
        first: list[Any] = values.slice(0, _LOOK_AT_ROWS).to_pylist() if unsure else []
        for value in first:
            if len(written) == len(unsure):
                break
            envelope = _loaded(value, table)
            if "payload" in envelope:
                names = names or _type_names(envelope.get("schema"))
                envelope = _object(envelope["payload"])
            for image in (envelope.get("before"), envelope.get("after")):
                row = _object(image)
                for name in unsure & row.keys():
                    if row[name] is not None:
                        written[name] = _form(row[name])
        plain = {field.name: _plain(field.type) for field in rows}
        return cls(rows, table, {**plain, **written}, names)

    @property
    def image(self) -> pa.DataType:
        return pa.struct([pa.field(field.name, self.written[field.name]) for field in self.rows])

    def rows_of(self, images: pa.StructArray) -> pa.StructArray:
        """The images with the columns of the rows."""
        columns = [
            self._as_wanted(column, field)
            for column, field in zip(images.flatten(), self.rows, strict=True)
        ]
        return pa.StructArray.from_arrays(columns, fields=list(self.rows), mask=images.is_null())

    def _as_wanted(self, column: pa.Array, field: pa.Field) -> pa.Array:
        try:
            return self._converted(column, field.name, field.type)
        except (pa.ArrowException, ValueError) as error:
            raise InvalidRows(
                f"Column '{field.name}' of table '{self.table}' cannot be read as {field.type} "
                f"from Debezium's JSON: {error}. Name another type for it in the row's columns."
            ) from error

    def _converted(self, column: pa.Array, name: str, wanted: pa.DataType) -> pa.Array:
        if column.type == wanted:
            return column
        connect_name = self.names.get(name)
        if pa.types.is_decimal(wanted) and connect_name == _UNSCALED:
            unscaled = [_unscaled(text, wanted.scale) for text in column.to_pylist()]
            return pa.array(unscaled, wanted)
        if pa.types.is_date(wanted) and pa.types.is_integer(column.type):
            return column.cast(pa.int32()).cast(pa.date32()).cast(wanted)
        if pa.types.is_timestamp(wanted) and pa.types.is_integer(column.type):
            unit = _UNITS.get(connect_name or "")
            if unit is None:
                raise ValueError(
                    "a number alone does not say its unit; keep the schema part, or take it as a "
                    "number"
                )
            return column.cast(pa.timestamp(unit, wanted.tz)).cast(wanted)
        if pa.types.is_timestamp(wanted) and wanted.tz is not None:
            return column.cast(pa.timestamp("us", "UTC")).cast(wanted)
        if pa.types.is_binary(wanted) or pa.types.is_large_binary(wanted):
            decoded = [
                None if t is None else b64decode(t, validate=True) for t in column.to_pylist()
            ]
            return pa.array(decoded, wanted)
        return column.cast(wanted)


def _read_json(values: pa.Array, forms: _Forms, table: str) -> pa.RecordBatch:
    import pyarrow.json as pa_json

    envelope = [
        pa.field("before", forms.image),
        pa.field("after", forms.image),
        pa.field("source", pa.struct([pa.field("ts_ms", pa.int64())])),
        pa.field("op", pa.string()),
        pa.field("ts_ms", pa.int64()),
    ]
    wanted = pa.schema([*envelope, pa.field("payload", pa.struct(envelope))])
    lines = b"\n".join(
        value.encode() if isinstance(value, str) else value for value in values.to_pylist()
    )
    try:
        read = pa_json.read_json(
            pa.BufferReader(lines),
            read_options=pa_json.ReadOptions(use_threads=False, block_size=len(lines) + 1),
            parse_options=pa_json.ParseOptions(
                explicit_schema=wanted,
                newlines_in_values=True,
                unexpected_field_behavior="ignore",
            ),
        )
    except pa.ArrowInvalid as error:
        raise InvalidRows(
            f"A value of table '{table}' cannot be read as Debezium's JSON: {error}. Is it "
            "Debezium's envelope, and are the row's columns as it has them?"
        ) from error
    if read.num_rows != len(values):
        raise InvalidRows(
            f"{len(values)} values of table '{table}' hold {read.num_rows} JSON objects. Each must "
            "be one envelope."
        )
    (batch,) = read.combine_chunks().to_batches()
    return batch.select(wanted.names)


def _either(first: pa.Array, second: pa.Array) -> pa.Array:
    """`first` where it is there. Not by coalesce, which does not know every nested type."""
    if first.null_count == len(first):
        return second
    if second.null_count == len(second):
        return first
    place = pc.if_else(
        first.is_valid(), pa.array(range(len(first))), pa.array(range(len(first), 2 * len(first)))
    )
    return pa.concat_arrays([first, second]).take(place)


def _may_differ(kind: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(kind) or pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def _plain(kind: pa.DataType) -> pa.DataType:
    """What a type is read as before it is converted, unless the first rows show another form."""
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or _may_differ(kind):
        return pa.string()
    return kind


def _form(value: Any) -> pa.DataType:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return pa.string()
    return pa.int64() if isinstance(value, int) else pa.float64()


def _loaded(value: str | bytes, table: str) -> dict[str, Any]:
    try:
        loaded = json.loads(value)
    except ValueError as error:
        raise InvalidRows(f"A value of table '{table}' is no JSON: {error}.") from error
    if not isinstance(loaded, dict):
        raise InvalidRows(
            f"A value of table '{table}' is JSON, but not Debezium's envelope: {str(value)[:200]}"
        )
    return loaded


def _type_names(schema: Any) -> dict[str, str]:
    """Connect's names of the types of a row's columns, from the schema part of an envelope."""
    for image in _fields(schema):
        if image.get("field") in {"before", "after"}:
            return {
                str(each["field"]): str(each["name"])
                for each in _fields(image)
                if each.get("field") and each.get("name")
            }
    return {}


def _fields(schema: Any) -> list[dict[str, Any]]:
    fields = _object(schema).get("fields")
    return [_object(each) for each in fields] if isinstance(fields, list) else []


def _object(loaded: Any) -> dict[str, Any]:
    """What is no object here is refused where all of it is read."""
    return loaded if isinstance(loaded, dict) else {}


def _unscaled(text: str | None, scale: int) -> Decimal | None:
    if text is None:
        return None
    number = int.from_bytes(b64decode(text, validate=True), "big", signed=True)
    return Decimal(number).scaleb(-scale)
