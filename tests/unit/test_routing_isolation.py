"""Routing and encoding in an environment that has nothing but pyarrow and numpy."""

from __future__ import annotations

from tests.support.isolation import run_isolated

PROGRAM = """
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
    assert run_isolated(PROGRAM) == (
        """[b'{"id":2}'] {"before":null,"after":{"id":2,"qty":2,"note":null},"""
        '"source":{"connector":"duolog","table":"orders"},"op":"c","ts_ms":1}\n'
    )
