"""Routing and encoding in an environment that has nothing but pyarrow and numpy."""

from __future__ import annotations

import subprocess
import sys
import textwrap

PROGRAM = """
import sys

ALLOWED = {"duolog", "numpy", "pyarrow"} | set(sys.stdlib_module_names)


class OnlyTheFew:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in ALLOWED and not top.startswith(("__editable__", "_sysconfigdata")):
            raise ModuleNotFoundError(f"{name} is not there in this environment", name=name)


sys.meta_path.insert(0, OnlyTheFew())
for name in ("rocksdict", "sqlglot", "pydantic", "typer", "rich"):
    assert name not in sys.modules
    try:
        __import__(name)
    except ModuleNotFoundError:
        continue
    raise AssertionError(f"{name} can be imported, so this shows nothing")

import pickle
import pyarrow as pa
from duolog.log.model import Filter, Op, Route, Topic, TopicSettings, Envelope
from duolog.log.routing.changes import Changes
from duolog.log.routing.filter.tree import Column, Comparison, Constant
from duolog.log.routing.plan import RoutingPlan
from duolog.log.routing.prepare import prepare
from duolog.log.routing.route import route_prepared

condition = Filter("qty > 1", Comparison(">", Column("row", ("qty",)), Constant(1)))
orders = Route("orders", frozenset({Op.INSERT, Op.UPDATE, Op.DELETE}), condition)
topic = Topic(1, "t", TopicSettings(envelope=Envelope.DEBEZIUM), (orders,), 0, 0)
rows = pa.RecordBatch.from_pydict({"id": [1, 2], "qty": [1, 2], "note": ["a", None]})
prepared = pickle.loads(
    pickle.dumps(prepare(RoutingPlan.of([topic]), "orders", rows.schema, ("id",)))
)
(part,) = route_prepared(Changes.from_rows("orders", Op.INSERT, rows, ["id"], 1), prepared).records
print(part.records.column("key").to_pylist(), part.records.column("value")[0].as_py().decode())
"""


def test_routing_and_encoding_need_only_pyarrow_and_numpy() -> None:
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout == (
        """[b'{"id":2}'] {"before":null,"after":{"id":2,"qty":2,"note":null},"""
        '"source":{"connector":"duolog","table":"orders"},"op":"c","ts_ms":1}\n'
    )
