"""What it costs to read Avro bodies into columns."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, ClassVar

import fastavro
import numpy as np
import pyarrow as pa

from bench.children import child
from bench.figures import Figure, Report, at_least_of_reference, at_most_of_reference
from bench.rounds import figure, seconds_of, take_turns
from bench.scratch import Scratch
from duolog.avro.decode.decoder import decoder_of
from duolog.avro.parse import parse_schema

_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class AvroDecodeBenchmark:
    """The same bodies read by columns, and by fastavro one by one, on one core."""

    name: ClassVar[str] = "avro-decode"
    by_itself: ClassVar[bool] = False
    disk_bytes: ClassVar[int] = 0

    rows: int = 65_536
    rounds: int = 7
    memory_batches: int = 16  # of as many rows, read as one

    def run(self, scratch: Scratch) -> Report:
        del scratch
        threads = pa.cpu_count()
        pa.set_cpu_count(1)
        try:
            figures = tuple(self._speed(name) for name in SCHEMAS)
        finally:
            pa.set_cpu_count(threads)
        with child(decode_measured, self.rows, self.memory_batches) as decoder:
            batch_bytes = decoder.hear()
            idle = decoder.rss_bytes()
            decoder.tell("go")
            peak = decoder.peak_rss_bytes()
            decoder.hear()
        memory = Figure(
            "peak memory above what it began with, to the columns read",
            (peak - idle) / _MIB,
            "MiB",
            batch_bytes / _MIB,
            at_most_of_reference(3),
        )
        return Report(
            self.name,
            f"{self.rows:,} bodies of one schema at a time: five typed columns; the same, each "
            "null in a fifth of the rows; and a record with a list of records and a map.",
            "fastavro's schemaless_reader, a body at a time, into Python dictionaries.",
            (*figures, memory),
        )

    def _speed(self, name: str) -> Figure:
        schema = SCHEMAS[name]
        bodies = bodies_of(schema, self.rows)
        decoder = decoder_of(parse_schema(json.dumps(schema)))
        parsed, texts = fastavro.parse_schema(schema), bodies.to_pylist()
        samples = take_turns(
            self.rounds,
            {
                "duolog": lambda: self.rows / seconds_of(lambda: decoder.decode(bodies)),
                "fastavro": lambda: self.rows / seconds_of(_reading(parsed, texts)),
            },
        )
        target = at_least_of_reference(5) if name == "five columns" else None
        return figure(
            f"{name}, to fastavro", "rows/s", samples["duolog"], samples["fastavro"], target
        )


def _reading(schema: Any, texts: list[bytes]) -> Callable[[], object]:
    return lambda: [fastavro.schemaless_reader(io.BytesIO(text), schema, None) for text in texts]


def decode_measured(pipe: Connection, rows: int, batches: int) -> None:
    """In the child: read something small, say how large the columns will be, read when told to."""
    schema = SCHEMAS["five columns"]
    part = bodies_of(schema, rows)
    decoder = decoder_of(parse_schema(json.dumps(schema)))
    batch_bytes = decoder.decode(part).nbytes * batches
    bodies = pa.concat_arrays([part] * batches)
    pipe.send(batch_bytes)
    pipe.recv()
    values = decoder.decode(bodies)
    pipe.send(len(values))


def _record(name: str, /, **kinds: Any) -> dict[str, Any]:
    fields = [{"name": field, "type": kind} for field, kind in kinds.items()]
    return {"type": "record", "name": name, "fields": fields}


_COLUMNS = {"id": "long", "qty": "int", "sku": "string", "price": "double", "paid": "boolean"}
_ITEM = _record("Item", sku="string", qty="int", note=["null", "string"])

SCHEMAS: dict[str, dict[str, Any]] = {
    "five columns": _record("Order", **_COLUMNS),
    "nullable": _record("Order", **{name: ["null", kind] for name, kind in _COLUMNS.items()}),
    "nested": _record(
        "Order",
        id="long",
        customer=_record("Customer", name="string", city=["null", "string"]),
        items={"type": "array", "items": _ITEM},
        tags={"type": "map", "values": "long"},
    ),
}


def bodies_of(schema: dict[str, Any], count: int) -> pa.BinaryArray:
    """Bodies of the schema, written by fastavro."""
    chosen = np.random.default_rng(0)
    parsed = fastavro.parse_schema(schema)
    bodies = []
    for number, pick, part in zip(
        range(count), chosen.random(count).tolist(), chosen.random((count, 5)).tolist(), strict=True
    ):
        written = io.BytesIO()
        fastavro.schemaless_writer(written, parsed, _value(schema, number, pick, part))
        bodies.append(written.getvalue())
    return pa.array(bodies, pa.binary())


def _value(schema: dict[str, Any], number: int, pick: float, part: list[float]) -> dict[str, Any]:
    sku = f"sku-{number % 9973:05}"
    if schema is SCHEMAS["nested"]:
        item = {"sku": sku, "qty": int(100 * pick), "note": None if pick < 0.5 else "as a gift"}
        return {
            "id": 1_700_000_000_000 + number,
            "customer": {"name": f"customer {number % 997}", "city": "Zug" if pick < 0.3 else None},
            "items": [item] * int(6 * pick),
            "tags": {f"tag-{index}": number for index in range(int(4 * part[0]))},
        }
    values = {
        "id": 1_700_000_000_000 + number,
        "qty": int(100 * pick),
        "sku": sku,
        "price": pick * 1000,
        "paid": pick < 0.5,
    }
    if schema is SCHEMAS["five columns"]:
        return values
    return {
        name: None if share < 0.2 else value
        for (name, value), share in zip(values.items(), part, strict=True)
    }
