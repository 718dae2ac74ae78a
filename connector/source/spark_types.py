"""Arrow values as types that Spark has. Runs in Spark tasks; the types are found on the driver.

| Arrow                                       | Spark                                            |
|---------------------------------------------|--------------------------------------------------|
| bool, int32, int64, float32, float64        | BOOLEAN, INT, BIGINT, FLOAT, DOUBLE              |
| string, dictionary of strings, null         | STRING                                           |
| binary, fixed_size_binary                   | BINARY                                           |
| decimal128, date32                          | DECIMAL(p, s), DATE                              |
| time32[ms], time64[us]                      | INT milliseconds, BIGINT microseconds            |
| timestamp in UTC, without a zone            | TIMESTAMP, TIMESTAMP_NTZ; nanoseconds are cut    |
| list, map, struct                           | ARRAY, MAP, STRUCT                               |

Times of day and nanoseconds are as Spark's own `from_avro` gives them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from duolog.errors import InvalidSchema

_PLAIN: Final = {
    pa.bool_(): "BOOLEAN",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "STRING",
    pa.binary(): "BINARY",
    pa.date32(): "DATE",
}


@dataclass(frozen=True, slots=True)
class SparkType:
    """A type as SQL writes it, and in Arrow."""

    sql: str
    arrow: pa.DataType


def spark_type(kind: pa.DataType, path: str = "value") -> SparkType:
    """What an Arrow type is in Spark. InvalidSchema, with the path, for what it has no type for."""
    if kind in _PLAIN:
        return SparkType(_PLAIN[kind], kind)
    if pa.types.is_null(kind) or pa.types.is_dictionary(kind):
        return SparkType("STRING", pa.string())
    if pa.types.is_fixed_size_binary(kind):
        return SparkType("BINARY", pa.binary())
    if pa.types.is_decimal128(kind):
        return SparkType(f"DECIMAL({kind.precision}, {kind.scale})", kind)
    if pa.types.is_time(kind):
        is_milliseconds = kind == pa.time32("ms")
        return SparkType(*(("INT", pa.int32()) if is_milliseconds else ("BIGINT", pa.int64())))
    if pa.types.is_timestamp(kind):
        return SparkType("TIMESTAMP" if kind.tz else "TIMESTAMP_NTZ", pa.timestamp("us", kind.tz))
    if pa.types.is_list(kind):
        items = spark_type(kind.value_type, f"{path}[]")
        return SparkType(f"ARRAY<{items.sql}>", pa.list_(kind.value_field.with_type(items.arrow)))
    if pa.types.is_map(kind):
        values = spark_type(kind.item_type, f"{path}[]")
        arrow = pa.map_(pa.string(), kind.item_field.with_type(values.arrow))
        return SparkType(f"MAP<STRING, {values.sql}>", arrow)
    if pa.types.is_struct(kind):
        members = [(field, spark_type(field.type, f"{path}.{field.name}")) for field in kind]
        inner = ", ".join(f"{_quoted(field.name)}: {member.sql}" for field, member in members)
        arrow = pa.struct([pa.field(field.name, member.arrow) for field, member in members])
        return SparkType(f"STRUCT<{inner}>", arrow)
    raise InvalidSchema(
        f"Spark has no type for '{path}', which is {kind}. Read it without option decode, or "
        "change the schema."
    )


def as_spark(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """The values in the Arrow type of a SparkType."""
    return values if values.type == kind else values.cast(kind, safe=False)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
