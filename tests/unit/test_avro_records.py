"""The records that keys and values are written as, by name and by what they share."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from duolog.avro.parse import parse_schema
from duolog.avro.records import record_for
from duolog.avro.text import schema_text
from duolog.log.model import Envelope, PayloadMode
from duolog.log.routing.codec import Part, Subject

COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("qty", pa.int32())])
SOURCE = pa.struct([pa.field(name, pa.string(), nullable=False) for name in ("connector", "table")])
ENVELOPE = pa.schema(
    [
        pa.field("before", pa.struct(list(COLUMNS))),
        pa.field("after", pa.struct(list(COLUMNS))),
        pa.field("source", SOURCE, nullable=False),
        pa.field("op", pa.string(), nullable=False),
        pa.field("ts_ms", pa.int64(), nullable=False),
    ]
)


def value(table: str = "shop.orders", envelope: Envelope = Envelope.FLAT) -> Subject:
    return Subject("orders", table, Part.VALUE, PayloadMode.FULL, envelope)


def test_a_flat_value_is_named_as_its_table_and_a_key_after_it() -> None:
    key = Subject("orders", "shop.orders", Part.KEY)
    assert record_for(COLUMNS, value(), has_images=False).name == "shop.orders"
    assert record_for(COLUMNS, key, has_images=False).name == "shop.orders.Key"


@pytest.mark.parametrize(
    ("table", "name"),
    [
        ("orders", "orders"),
        ("my shop.new orders", "my_x0020_shop.new_x0020_orders"),
        ("shop..orders", "shop_x002E__x002E_orders"),
        ("1", "_x0031_"),
        ("db.string", "db._x0073_tring"),
    ],
)
def test_any_table_has_a_name_that_avro_allows(table: str, name: str) -> None:
    record = record_for(COLUMNS, value(table), has_images=False)
    assert record.name == name
    assert parse_schema(schema_text(record)) == record


def test_debeziums_envelope_has_its_records_and_both_images_are_one_type() -> None:
    record = record_for(ENVELOPE, value(envelope=Envelope.DEBEZIUM), has_images=True)
    assert json.loads(schema_text(record)) == {
        "type": "record",
        "name": "Envelope",
        "namespace": "shop.orders",
        "fields": [
            {
                "name": "before",
                "type": [
                    "null",
                    {
                        "type": "record",
                        "name": "Value",
                        "fields": [
                            {"name": "id", "type": "long"},
                            {"name": "qty", "type": ["null", "int"], "default": None},
                        ],
                    },
                ],
                "default": None,
            },
            {"name": "after", "type": ["null", "Value"], "default": None},
            {
                "name": "source",
                "type": {
                    "type": "record",
                    "name": "Source",
                    "namespace": "duolog",
                    "fields": [
                        {"name": "connector", "type": "string"},
                        {"name": "table", "type": "string"},
                    ],
                },
            },
            {"name": "op", "type": "string"},
            {"name": "ts_ms", "type": "long"},
        ],
    }
    assert parse_schema(schema_text(record)) == record
