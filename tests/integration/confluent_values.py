"""Values of every type, as Confluent's serializers take them and as Arrow has them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa


@dataclass(frozen=True)
class Case:
    """An Avro type, the Arrow column for it, and values as fastavro and as Arrow give them."""

    avro: Any
    arrow: Any
    values: tuple[Any, ...]
    in_arrow: tuple[Any, ...] | None = None
    metadata: dict[str, str] | None = None
    name: str = ""

    @property
    def field(self) -> Any:
        is_nullable = isinstance(self.avro, list) and "null" in self.avro
        return pa.field("v", self.arrow, is_nullable, self.metadata)


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


NOON = datetime(2024, 2, 29, 12, 0, 0, 123000, UTC)
EARLY = datetime(1969, 12, 31, 23, 59, 59, 999000, UTC)
SOME_UUID = UUID("89791762-2336-4186-9674-299b90a802e2")
POINT = {
    "type": "record",
    "name": "Point",
    "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": ["null", "double"]}],
}
POINT_TYPE = pa.struct([pa.field("x", pa.int32(), nullable=False), pa.field("y", pa.float64())])

CASES = {
    "boolean": Case("boolean", pa.bool_(), (True, False)),
    "int": Case("int", pa.int32(), (0, -1, 2**31 - 1, -(2**31))),
    "long": Case("long", pa.int64(), (0, 2**63 - 1, -(2**63), 300)),
    "float": Case("float", pa.float32(), (0.5, -1.25, float("inf"))),
    "double": Case("double", pa.float64(), (0.1, -1e300, float("-inf"))),
    "string": Case("string", pa.string(), ("", "héllo", "\U0001f600" * 100)),
    "bytes": Case("bytes", pa.binary(), (b"", b"\x00\xff", bytes(range(256)))),
    "fixed": Case(
        {"type": "fixed", "name": "F", "size": 3}, pa.binary(3), (b"abc", b"\x00\x01\x02")
    ),
    "enum": Case(
        {"type": "enum", "name": "E", "symbols": ["RED", "BLUE"]},
        pa.dictionary(pa.int32(), pa.string()),
        ("BLUE", "RED", "BLUE"),
        metadata={"avro.enum": '["RED", "BLUE"]'},
    ),
    "date": Case(logical("int", "date"), pa.date32(), (date(1969, 7, 20), date(2024, 2, 29))),
    "time-millis": Case(
        logical("int", "time-millis"), pa.time32("ms"), (time(0), time(23, 59, 59, 999000))
    ),
    "time-micros": Case(
        logical("long", "time-micros"), pa.time64("us"), (time(0), time(23, 59, 59, 999999))
    ),
    "timestamp-millis": Case(
        logical("long", "timestamp-millis"), pa.timestamp("ms", "UTC"), (NOON, EARLY)
    ),
    "timestamp-micros": Case(
        logical("long", "timestamp-micros"), pa.timestamp("us", "UTC"), (NOON, EARLY)
    ),
    "local-timestamp-micros": Case(
        logical("long", "local-timestamp-micros"),
        pa.timestamp("us"),
        (NOON.replace(tzinfo=None), EARLY.replace(tzinfo=None)),
    ),
    "uuid": Case(
        logical("string", "uuid"),
        pa.string(),
        (SOME_UUID,),
        (str(SOME_UUID),),
        metadata={"avro.logical": "uuid"},
    ),
    "decimal": Case(
        logical("bytes", "decimal", precision=9, scale=2),
        pa.decimal128(9, 2),
        (Decimal("1.23"), Decimal("-9999999.99"), Decimal("0.00")),
    ),
    "fixed decimal": Case(
        logical("fixed", "decimal", precision=9, scale=2) | {"name": "D", "size": 8},
        pa.decimal128(9, 2),
        (Decimal("1.23"), Decimal("-0.01")),
    ),
    "nullable": Case(["null", "string"], pa.string(), (None, "x", "")),
    "nullable, null last": Case(["long", "null"], pa.int64(), (1, None)),
    "array": Case(
        {"type": "array", "items": ["null", "int"]},
        pa.list_(pa.int32()),
        ([], [1, None, -2], list(range(1000))),
    ),
    "map": Case(
        {"type": "map", "values": "string"},
        pa.map_(pa.string(), pa.field("value", pa.string(), nullable=False)),
        ({}, {"a": "x", "é": ""}),
        ([], [("a", "x"), ("é", "")]),
    ),
    "record": Case(POINT, POINT_TYPE, ({"x": 1, "y": None}, {"x": -1, "y": 2.5})),
    "nullable record in an array": Case(
        {"type": "array", "items": ["null", POINT]},
        pa.list_(POINT_TYPE),
        ([None, {"x": 1, "y": 0.0}], []),
    ),
    "union of several": Case(
        ["null", "string", "long"],
        pa.struct([("member0", pa.string()), ("member1", pa.int64())]),
        ("a", None, 7),
        ({"member0": "a", "member1": None}, None, {"member0": None, "member1": 7}),
    ),
}
