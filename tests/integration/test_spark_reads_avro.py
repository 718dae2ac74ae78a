"""Spark's own from_avro reads the bodies that topics hold, and we read what its to_avro writes."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import duolog
from duolog.avro.decode.decoder import decoder_of
from duolog.avro.embedded import registry_of
from duolog.avro.from_arrow import record_of
from duolog.avro.text import schema_text
from duolog.log.model import Envelope, Format, Op, Route, TopicSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOON = dt.datetime(2026, 1, 2, 12, 0, 0, 123456)  # noqa: DTZ001 - a time without a zone
COLUMNS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("small", pa.int32()),
        pa.field("yes", pa.bool_()),
        pa.field("single", pa.float32()),
        pa.field("ratio", pa.float64()),
        pa.field("name", pa.string()),
        pa.field("content", pa.binary()),
        pa.field("price", pa.decimal128(20, 3)),
        pa.field("day", pa.date32()),
        pa.field("at", pa.timestamp("us", "UTC")),
        pa.field("local", pa.timestamp("us")),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("counts", pa.map_(pa.string(), pa.int64())),
        pa.field("place", pa.struct([("city", pa.string()), ("zip", pa.int32())])),
    ]
)
ROWS: list[dict[str, Any]] = [
    {
        "id": 1,
        "small": -7,
        "yes": True,
        "single": 0.5,
        "ratio": -1.25,
        "name": "tea é",
        "content": b"\x00\xff",
        "price": Decimal("-12345678901234567.891"),
        "day": dt.date(1969, 12, 31),
        "at": NOON.replace(tzinfo=dt.UTC),
        "local": NOON,
        "tags": ["a", None, ""],
        "counts": [("x", 1), ("y", None)],
        "place": {"city": "Oslo", "zip": None},
    },
    dict.fromkeys(COLUMNS.names) | {"id": -(2**62)},
]


def test_spark_reads_the_values_of_a_topic(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql import functions as f
    from pyspark.sql.avro.functions import from_avro

    settings = TopicSettings(value_format=Format.AVRO, envelope=Envelope.DEBEZIUM)
    with duolog.open_log(tmp_path / "log") as log:
        log.create_topic("orders", settings)
        log.add_route("orders", Route("shop.orders", frozenset({Op.INSERT})))
        rows = pa.Table.from_pylist(ROWS, COLUMNS)
        log.publish_rows("shop.orders", Op.INSERT, rows, ["id"], ts_ms=5)
        values = log.fetch("orders", 0, 0).table().column("value").to_pylist()
        text = registry_of(log).latest("orders-value").schema.text
    frame = spark.createDataFrame([(bytearray(value),) for value in values], "value binary")
    body = f.expr("substring(value, 6)")  # behind the zero byte and the id
    read = frame.select(from_avro(body, text, {"mode": "FAILFAST"}).alias("v")).select("v.*")
    found = read.collect()
    assert [(row.before, row.op, row.ts_ms) for row in found] == [(None, "c", 5)] * 2
    assert [row.source.table for row in found] == ["shop.orders"] * 2
    after = [row.after.asDict(recursive=True) for row in found]
    first = after[0]
    first["content"] = bytes(first["content"])
    first["at"] = spark_moment(first["at"])
    expected = {**ROWS[0], "counts": dict(ROWS[0]["counts"])}
    expected["at"] = NOON
    assert first == expected
    assert after[1] == ROWS[1]


def spark_moment(local: dt.datetime) -> dt.datetime:
    """Spark hands moments over in the zone of this process."""
    return local.astimezone(dt.UTC).replace(tzinfo=None)


def test_what_spark_writes_is_read_to_the_same_values(spark: SparkSession) -> None:
    from pyspark.sql import functions as f
    from pyspark.sql.avro.functions import to_avro

    record = record_of(COLUMNS, "shop.orders")
    frame = spark.createDataFrame(pa.Table.from_pylist(ROWS, COLUMNS))
    frame = frame.withColumn("local", f.col("local").cast("timestamp_ntz"))
    written = frame.select(to_avro(f.struct("*"), schema_text(record)).alias("body"))
    bodies = pa.array([bytes(row.body) for row in written.collect()], pa.binary())
    assert decoder_of(record).decode(bodies).to_pylist() == ROWS
