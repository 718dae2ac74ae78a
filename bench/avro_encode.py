"""How fast rows become Avro, on one core, and how much memory that takes."""

from __future__ import annotations

import io
import json
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.children import Child, asked, child
from bench.figures import Figure, Report, at_least_of_reference, at_most_of_reference
from bench.rounds import Samples, figure, seconds_of, take_turns
from bench.scratch import Scratch
from bench.spark_to_avro import spark_avro_jar, to_avro_rates
from duolog.avro.encode.encoder import BodyEncoder, encoder_of
from duolog.avro.from_arrow import record_of
from duolog.avro.text import schema_text

_MIB = 1 << 20
_NAMES = {"plain": "5 columns", "nullable": "5 nullable columns", "nested": "nested columns"}

# The same rows as SQL over a number `id`; every tenth value of a nullable column is null.
_PLAIN = {
    "id": "id + 10000000",
    "customer": "concat('customer-', 10000000 + id)",
    "price": "id / 8d",
    "ordered": "timestamp_micros(1700000000000000 + id * 977)",
    "quantity": "cast(id % 100000 as int)",
}
_SQL = {
    "plain": [f"{value} as {name}" for name, value in _PLAIN.items()],
    "nullable": [
        f"case when (id + {place}) % 10 != 0 then {value} end as {name}"
        for place, (name, value) in enumerate(_PLAIN.items())
    ],
    "nested": [
        "id + 10000000 as id",
        "struct(concat('city-', id % 977) as city, id / 8d as lat, id / 16d as lon) as place",
        "case id % 3"
        " when 0 then array()"
        " when 1 then array(struct(concat('sku-', id) as sku, cast(id % 100 as int) as quantity))"
        " else array(struct(concat('sku-', id) as sku, cast(id % 100 as int) as quantity),"
        " struct('sku-0' as sku, 1 as quantity)) end as items",
        "map('color', 'red', 'size', concat('', id % 50)) as tags",
    ],
}


@dataclass(frozen=True, slots=True)
class AvroEncodeBenchmark:
    """Bodies of rows by duolog, by fastavro and by Spark's to_avro, each on one core."""

    name: ClassVar[str] = "avro-encode"
    by_itself: ClassVar[bool] = False
    disk_bytes: ClassVar[int] = 0

    rows: int = 65_536  # what a task is handed at a time
    batches: int = 16  # a sample
    fastavro_rows: int = 20_000
    spark_rows: int = 8_000_000
    rounds: int = 5
    with_spark: bool = True

    def run(self, scratch: Scratch) -> Report:
        tables = tables_of(self.rows)
        if not self.with_spark:
            samples = self._samples(tables, {})
        else:
            with self._spark(scratch) as spark:
                asked = {f"spark {name}": asked(spark, name) for name in tables}
                samples = self._samples(tables, asked)
        figures: list[Figure] = []
        for name, called in _NAMES.items():
            for other, bound in (("fastavro", 8), ("spark", 2.5)):
                if f"{other} {name}" in samples:
                    reference = "Spark's to_avro" if other == "spark" else other
                    figures.append(
                        figure(
                            f"{called}, to {reference}",
                            "/s",
                            samples[f"duolog {name}"],
                            samples[f"{other} {name}"],
                            at_least_of_reference(bound),
                        )
                    )
        for name, called in _NAMES.items():
            encoder, _ = _encoder(tables[name])
            taken, batch = peak_bytes(encoder, tables[name]), tables[name].nbytes
            limit = at_most_of_reference(3)
            figures.append(
                Figure(f"memory, {called}, to the batch", taken / _MIB, "MiB", batch / _MIB, limit)
            )
        return Report(
            self.name,
            f"{self.rows:,} rows at a time, on one core. Columns: long, string, double, "
            "timestamp, int; the same with every tenth value null; and a long, a struct, a list of "
            "structs and a map.",
            "fastavro.schemaless_writer in a loop over Python rows made before; Spark's "
            "to_avro(struct(*)) with local[1] into the noop sink, with what it takes to make the "
            "rows. Memory: all that is taken at a time beyond the batch, bodies included.",
            tuple(figures),
        )

    def _samples(
        self, tables: Mapping[str, pa.StructArray], others: Mapping[str, Callable[[], float]]
    ) -> Samples:
        contenders = dict(others)
        for name, rows in tables.items():
            contenders[f"duolog {name}"] = _duolog(rows, self.batches)
            contenders[f"fastavro {name}"] = _fastavro(rows.slice(0, self.fastavro_rows))
        threads = pa.cpu_count()
        pa.set_cpu_count(1)
        try:
            return take_turns(self.rounds, contenders)
        finally:
            pa.set_cpu_count(threads)

    @contextmanager
    def _spark(self, scratch: Scratch) -> Iterator[Child]:
        jar = spark_avro_jar()
        with (
            scratch.folder("spark") as folder,
            child(to_avro_rates, folder, jar, _SQL, self.spark_rows) as spark,
        ):
            spark.hear()
            yield spark


def _encoder(rows: pa.StructArray) -> tuple[BodyEncoder, Any]:
    record = record_of(rows.type, "shop.orders")
    parsed = fastavro.parse_schema(json.loads(schema_text(record)))
    return encoder_of(rows.type, record), parsed


def _duolog(rows: pa.StructArray, batches: int) -> Callable[[], float]:
    encoder, _ = _encoder(rows)

    def work() -> None:
        for _ in range(batches):
            encoder.encode(rows)

    return lambda: batches * len(rows) / seconds_of(work)


def _fastavro(rows: pa.StructArray) -> Callable[[], float]:
    _, schema = _encoder(rows)
    as_python = python_rows(rows)

    def work() -> None:
        stream = io.BytesIO()
        for row in as_python:
            stream.seek(0)
            stream.truncate()
            fastavro.schemaless_writer(stream, schema, row)
            stream.getvalue()

    return lambda: len(rows) / seconds_of(work)


def peak_bytes(encoder: BodyEncoder, rows: pa.StructArray) -> int:
    """The most memory that encoding takes at a time, by numpy's and Arrow's own counts.

    In a thread of its own, for which nothing has been kept from earlier rows.
    """
    usual = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        with ThreadPoolExecutor(1) as thread:
            thread.submit(encoder.encode, rows).result()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(usual)
    return int(peak - before + pool.max_memory())


def python_rows(rows: pa.StructArray) -> list[dict[str, Any]]:
    """As fastavro writes them fastest: timestamps as numbers, maps as dictionaries."""
    columns = []
    for place, column in enumerate(rows.type):
        values = rows.field(place)
        if pa.types.is_timestamp(column.type):
            values = values.cast(pa.int64())
        listed = values.to_pylist()
        columns.append(map(dict, listed) if pa.types.is_map(column.type) else listed)
    names = [column.name for column in rows.type]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def tables_of(count: int) -> dict[str, pa.StructArray]:
    """The rows of the benchmark, by kind."""
    numbers = np.arange(count)
    columns = {
        "id": pa.array(numbers + 10_000_000),
        "customer": pa.array([f"customer-{10_000_000 + number}" for number in range(count)]),
        "price": pa.array(numbers / 8),
        "ordered": pa.array(1_700_000_000_000_000 + numbers * 977, pa.timestamp("us", "UTC")),
        "quantity": pa.array((numbers % 100_000).astype(np.int32)),
    }
    plain = [pa.field(name, values.type, nullable=False) for name, values in columns.items()]
    missing = pa.scalar(None)
    holes = [
        pc.if_else(pa.array((numbers + place) % 10 == 0), missing.cast(values.type), values)
        for place, values in enumerate(columns.values())
    ]
    return {
        "plain": pa.StructArray.from_arrays(list(columns.values()), fields=plain),
        "nullable": pa.StructArray.from_arrays(holes, list(columns)),
        "nested": _nested(count),
    }


def _nested(count: int) -> pa.StructArray:
    item = pa.struct([pa.field("sku", pa.string(), False), pa.field("quantity", pa.int32(), False)])
    place = pa.struct(
        [
            pa.field("city", pa.string(), False),
            pa.field("lat", pa.float64(), False),
            pa.field("lon", pa.float64(), False),
        ]
    )
    kind = pa.struct(
        [
            pa.field("id", pa.int64(), False),
            pa.field("place", place, False),
            pa.field("items", pa.list_(pa.field("item", item, False)), False),
            pa.field("tags", pa.map_(pa.string(), pa.field("value", pa.string(), False)), False),
        ]
    )
    rows = [
        {
            "id": number + 10_000_000,
            "place": {"city": f"city-{number % 977}", "lat": number / 8, "lon": number / 16},
            "items": [
                {"sku": f"sku-{number}", "quantity": number % 100},
                {"sku": "sku-0", "quantity": 1},
            ][: number % 3],
            "tags": [("color", "red"), ("size", str(number % 50))],
        }
        for number in range(count)
    ]
    return pa.array(rows, kind)
