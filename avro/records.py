"""The Avro records that a route's keys and values are written as.

For the table `shop.orders`:

    key                 shop.orders.Key
    value, flat         shop.orders         images of a diff: shop.orders.Value
    value, debezium     shop.orders.Envelope, its images shop.orders.Value, its source
                        duolog.Source

The names are those that Debezium's users know; what the table's name holds beyond Avro's letters
is written as in names.py.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from duolog.avro.from_arrow import record_of
from duolog.avro.names import full_name, type_name
from duolog.avro.schema import NULL, Record, Reference, Schema, Union
from duolog.avro.shape import IMAGES
from duolog.log.model import Envelope
from duolog.log.routing.codec import Part, Subject

SOURCE_RECORD = "duolog.Source"


def record_for(columns: pa.Schema, subject: Subject, *, has_images: bool) -> Record:
    """The record of these columns, as `shape.py` made them."""
    table = _type_of(subject.table)
    if subject.part is not Part.VALUE:
        return record_of(columns, f"{table}.Key")
    if not has_images:
        return record_of(columns, table)
    debezium = subject.envelope is Envelope.DEBEZIUM
    record = record_of(columns, f"{table}.Envelope" if debezium else table)
    fields = []
    for field in record.fields:
        if field.name in IMAGES:
            image = record_of(columns.field(field.name).type, f"{table}.Value")
            kept: Schema = image if field.name == IMAGES[0] else Reference(image.name)
            fields.append(replace(field, type=Union((NULL, kept)), default="null"))
        elif debezium and field.name == "source":
            source = record_of(columns.field("source").type, SOURCE_RECORD)
            fields.append(replace(field, type=source))
        else:
            fields.append(field)
    return replace(record, fields=tuple(fields))


def _type_of(table: str) -> str:
    """A table's name as the full name of a type; dots that part nothing are letters like others."""
    return full_name(table) if all(table.split(".")) else type_name(table)
