"""Bytes as they are: the key is the only key column, the value is the column `value`.

Other columns serve filters and partitioning and are not written. A value that is null, or whose
old row is not known, gives a record without value: a flat delete without payload.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from duolog.errors import InvalidRows, InvalidSetting
from duolog.log.routing.codec import Part, Subject
from duolog.log.routing.kinds import is_binary, is_string
from duolog.log.routing.optional import is_optional, unwrapped

VALUE_COLUMN = "value"


@dataclass(frozen=True, slots=True)
class RawEncoder:
    """Takes one column's bytes."""

    index: int
    optional: bool

    def encode(self, rows: pa.StructArray) -> pa.BinaryArray:
        column = rows.flatten()[self.index]  # null where the row is
        if self.optional:
            column = column.flatten()[0]
        return column.cast(pa.binary())


@dataclass(frozen=True, slots=True)
class RawCodec:
    """The format `raw`."""

    def prepare(self, schema: pa.Schema, subject: Subject) -> RawEncoder:
        if subject.part is Part.VALUE:
            name = _value_column(schema, subject)
        else:
            name = _only_column(schema, subject)
        field = schema.field(name)
        kind = unwrapped(field).type if is_optional(field) else field.type
        if not (is_string(kind) or is_binary(kind)):
            raise InvalidRows(
                f"Column '{name}' is of type {kind} and cannot be the raw {subject}. Make it a "
                "string or binary column, or use the format json."
            )
        return RawEncoder(schema.get_field_index(name), is_optional(field))


def _value_column(schema: pa.Schema, subject: Subject) -> str:
    if VALUE_COLUMN not in schema.names:
        raise InvalidSetting(
            f"The raw {subject} is a column '{VALUE_COLUMN}' of bytes or text, in the envelope "
            f"flat and with payload full; here is only {', '.join(schema.names)}. Name the column "
            "so, or use the value format json."
        )
    return VALUE_COLUMN


def _only_column(schema: pa.Schema, subject: Subject) -> str:
    if len(schema) != 1:
        raise InvalidSetting(
            f"The raw {subject} takes one column of bytes or text, not {', '.join(schema.names)}. "
            "Use the key format json."
        )
    return str(schema.names[0])
