"""What it costs to make records of change rows: match, filter, JSON, keys and partitions."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.figures import Report
from bench.rounds import figure, seconds_of, take_turns
from bench.scratch import Scratch
from duolog.log.model import Op, Route, Topic, TopicSettings
from duolog.log.routing.changes import Changes
from duolog.log.routing.filter.parse import parse_filter
from duolog.log.routing.murmur2_scalar import partition_of_key
from duolog.log.routing.plan import RoutingPlan
from duolog.log.routing.prepare import prepare
from duolog.log.routing.route import route_prepared

_TABLE = "shop.orders"
_CONDITION = "qty > 20 AND (status = 'paid' OR price >= 500)"
_PARTITIONS = 4
_WORDS = ("new", "paid", "sent", "returned")


@dataclass(frozen=True, slots=True)
class RoutingBenchmark:
    """One route with a filter over rows of ten columns, on one core."""

    name: ClassVar[str] = "routing"
    by_itself: ClassVar[bool] = False
    disk_bytes: ClassVar[int] = 0

    rows: int = 65_536  # what a task is handed at a time
    rounds: int = 7

    def run(self, scratch: Scratch) -> Report:
        del scratch
        rows = change_rows(self.rows)
        changes = Changes.from_rows(_TABLE, Op.INSERT, rows, ("id",), 0)
        filter_ = parse_filter(_CONDITION, rows.schema)
        topic = Topic(
            1,
            "orders",
            TopicSettings(partitions=_PARTITIONS),
            (Route(_TABLE, frozenset({Op.INSERT}), filter_),),
            0,
            0,
        )
        table = prepare(RoutingPlan.of([topic]), _TABLE, rows.schema, ("id",))
        as_python = rows.to_pylist()
        contenders: dict[str, Callable[[], object]] = {
            "duolog": lambda: route_prepared(changes, table),
            "python": lambda: python_loop(as_python),
            "ipc": lambda: passing(rows).serialize(),
            "text": lambda: joined_text(passing(rows)),
        }
        threads = pa.cpu_count()
        pa.set_cpu_count(1)
        try:
            samples = take_turns(
                self.rounds,
                {name: _per_second(work, self.rows) for name, work in contenders.items()},
            )
        finally:
            pa.set_cpu_count(threads)
        passed = len(python_loop(as_python))
        return Report(
            self.name,
            f"{self.rows:,} rows of 10 columns at a time, filter `{_CONDITION}` "
            f"({passed / self.rows:.0%} pass), full payload and key as JSON, {_PARTITIONS} "
            "partitions.",
            "a Python loop: the condition, json.dumps of key and row, the key's partition; "
            "and pyarrow alone: the filter, then the rows that pass as Arrow IPC, or as text, each "
            "column cast and all joined to one string a row.",
            (
                figure("rows, to a Python loop", "/s", samples["duolog"], samples["python"]),
                figure("rows, to pyarrow's text", "/s", samples["duolog"], samples["text"]),
                figure("rows, to pyarrow's IPC", "/s", samples["duolog"], samples["ipc"]),
            ),
        )


def _per_second(work: Callable[[], object], rows: int) -> Callable[[], float]:
    return lambda: rows / seconds_of(work)


def change_rows(count: int) -> Any:
    """Rows of ten columns of the usual types."""
    chosen = np.random.default_rng(0)
    numbers = np.arange(count)
    return pa.RecordBatch.from_pydict(
        {
            "id": pa.array(numbers),
            "customer": pa.array(chosen.integers(0, 1 << 40, count)),
            "status": pa.array(_WORDS).take(pa.array(chosen.integers(0, len(_WORDS), count))),
            "qty": pa.array(chosen.integers(1, 100, count, np.int32)),
            "price": pa.array(np.round(chosen.random(count) * 1000, 2)),
            "paid": pa.array(chosen.random(count) < 0.5),
            "sku": pa.array([f"sku-{number % 9973:05}" for number in range(count)]),
            "note": pa.array([None if n % 3 else f"note of order {n}" for n in range(count)]),
            "ordered": pa.array(1_700_000_000_000_000 + numbers, pa.timestamp("us")),
            "day": pa.array((19_000 + numbers % 365).astype(np.int32), pa.date32()),
        }
    )


def python_loop(rows: list[dict[str, Any]]) -> list[tuple[int, bytes, bytes]]:
    """The same as plain Python: condition, JSON and partition, a row at a time."""
    records = []
    for row in rows:
        if row["qty"] > 20 and (row["status"] == "paid" or row["price"] >= 500):
            key = json.dumps({"id": row["id"]}, separators=(",", ":")).encode()
            named = {"_table": _TABLE, **row}
            value = json.dumps(named, separators=(",", ":"), default=_iso).encode()
            records.append((partition_of_key(key, _PARTITIONS), key, value))
    return records


def _iso(moment: Any) -> str:
    return str(moment.isoformat())


def passing(rows: Any) -> Any:
    """The rows that pass the condition, by pyarrow's own functions."""
    passed = pc.and_(
        pc.greater(rows.column("qty"), 20),
        pc.or_(
            pc.equal(rows.column("status"), "paid"),
            pc.greater_equal(rows.column("price"), 500),
        ),
    )
    return rows.filter(passed)


def joined_text(rows: Any) -> Any:
    """The least that makes text of rows: no names, quotes or escapes as JSON has them."""
    texts = [pc.fill_null(pc.cast(column, pa.string()), "null") for column in rows.columns]
    return pc.binary_join_element_wise(*texts, ",")
