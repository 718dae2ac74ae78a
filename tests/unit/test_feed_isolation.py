"""Feeds in an environment that has nothing but pyarrow and numpy, as tasks may have."""

from __future__ import annotations

from tests.support.isolation import run_isolated

PROGRAM = """
import pickle
import pyarrow as pa
from duolog.connector.feeds import feed_for

own = {"_change_type": pa.string(), "_change_ordinal": pa.int32()}
own["_commit_snapshot_id"] = pa.int64()
schema = pa.schema({"id": pa.int64(), **own})
made = feed_for(schema, table="t", key_columns=["id"])
feed = pickle.loads(pickle.dumps(made))
rows = [[1, 1, 2], ["UPDATE_BEFORE", "UPDATE_AFTER", "UPDATE_AFTER"], [0, 0, 0], [9, 9, 9]]
batch = pa.RecordBatch.from_arrays(
    [pa.array(column, kind) for column, kind in zip(rows, schema.types)], schema=schema
)
reader = feed.reader()
done = [*reader.changes_of(batch), *reader.finish(), *feed.settle([reader.left_over()])]
print([(order, changes.op.to_pylist()) for order, changes in done])

image = pa.schema({"id": pa.int64()})
value = pa.schema({"value": pa.string()})
feed = feed_for(value, table="t", key_columns=["id"], changes="debezium", row_schema=image)
batch = pa.RecordBatch.from_arrays([['{"op":"c","after":{"id":1}}']], schema=value)
print([changes.op.to_pylist() for _, changes in feed.reader().changes_of(batch)])
"""


def test_feeds_need_only_pyarrow_and_numpy() -> None:
    assert run_isolated(PROGRAM) == "[(1, [2]), (1, [1])]\n[[1]]\n"
