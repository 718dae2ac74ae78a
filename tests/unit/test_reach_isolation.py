"""A driver and a task that have only pyarrow, numpy and Duolog's own pure Python reach a log."""

from __future__ import annotations

from pathlib import Path

import pytest

from duolog.log.model import Format, Op, Route, TopicSettings
from tests.support.host_server import TOKEN, Host
from tests.support.isolation import run_isolated

PROGRAM = """
import pickle
import sys
import pyarrow as pa
from duolog.errors import RocksDBNotFound
from duolog.log.model import Earliest, Mode, Op, Record, Writer
from duolog.log.part import PartBuilder
from duolog.log.routing.changes import Changes
from duolog.log.routing.route import route_prepared
from duolog.reach import reach, registry_for

where = {"path": sys.argv[2]}
if sys.argv[1] == "url":
    where = {"url": sys.argv[2], "token": sys.argv[3]}
rows = pa.RecordBatch.from_pydict({"id": [1, 2], "note": ["a", None]})
with reach(**where, avro={"auto.register.schemas": "true"}) as log:
    writer = Writer(Mode.STREAM, sys.argv[1], "orders")
    prepared = log.prepare_rows("shop.orders", rows.schema, ["id"])
    place = pickle.loads(pickle.dumps(log.staging(writer, 0)))
    builder = PartBuilder(place, max_record_bytes=log.max_record_bytes)
    changes = Changes.from_rows("shop.orders", Op.INSERT, rows, ["id"], 1)
    for routed in route_prepared(changes, prepared).records:
        builder.add(log.topic(routed.topic_id), routed.partition, routed.records)
    appended = log.append(writer, 0, [builder.finish()])
    assert sum(r.count for r in appended.ranges) == 2, appended
    log.publish_rows("shop.orders", Op.INSERT, [{"id": 3, "note": "b"}], ["id"])
    log.publish("orders", Record(b"plain"))
    assert registry_for(log).latest("orders-value").version == 1
    assert log.resolve("orders", 0, Earliest()) == 0
    log.ack("g", "orders", 0)
    assert [record.offset for record in log.fetch("orders", 0, 0)] == [0, 1, 2, 3]
    assert log.offsets("orders")[0].next_offset == 4
try:
    reach(sys.argv[4], create=True)
except RocksDBNotFound as error:
    print(error)
"""


@pytest.mark.parametrize("how", ["path", "url"])
def test_a_log_is_reached_with_only_pyarrow_and_numpy(how: str, tmp_path: Path) -> None:
    with Host(tmp_path / "log") as host:
        host.log.create_topic("orders", TopicSettings(value_format=Format.AVRO))
        host.log.add_route("orders", Route("shop.orders", frozenset({Op.INSERT})))
        where = str(host.log.folder) if how == "path" else host.url
        said = run_isolated(PROGRAM, how, where, TOKEN, tmp_path / "another")
        assert "rocksdict" in said
        assert host.log.offsets("orders")[0].next_offset == 4
        assert not (tmp_path / "another" / "db").exists()
