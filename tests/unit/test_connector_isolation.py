"""What runs in a Spark task, in an environment that has nothing but pyarrow and numpy."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.serializers import CloudPickleSerializer

import duolog
from duolog.connector.data_source import StreamWriter
from duolog.connector.options import SinkOptions
from duolog.connector.sink import commit, plan_stream
from duolog.connector.stage import Staged
from duolog.log.model import Format, Op, Route, TopicSettings
from tests.support.isolation import run_isolated

PROGRAM = """
import pickle
import sys
import pyarrow as pa

with open(sys.argv[1], "rb") as plan:
    stage = pickle.load(plan)
rows = pa.RecordBatch.from_pydict({"key": ["a", "b", None], "value": ["1", None, "3"]})
told = stage.stage([rows], epoch=0, turn=0)
with open(sys.argv[2], "wb") as answer:
    pickle.dump(told, answer)
"""
ROWS = pa.schema([("key", pa.string()), ("value", pa.string())])
CASES: dict[str, dict[str, object]] = {
    "topic": {"topic": "plain"},
    "topics of the rows": {},
    "table in JSON": {"table": "shop.json"},
    "table in Avro": {"table": "shop.avro"},
}


@pytest.mark.parametrize("case", CASES)
def test_a_plan_runs_with_only_pyarrow_and_numpy(case: str, tmp_path: Path) -> None:
    path = str(tmp_path / "log")
    inserts = frozenset({Op.INSERT})
    with duolog.open_log(path) as log:
        log.create_topic("plain", TopicSettings(partitions=3))
        log.create_topic("as-json")
        log.add_route("as-json", Route("shop.json", inserts))
        log.create_topic("as-avro", TopicSettings(value_format=Format.AVRO))
        log.add_route("as-avro", Route("shop.avro", inserts))
    options = SinkOptions.of({"path": path, "queryName": "q", **CASES[case]})
    columns = ROWS if CASES[case] else ROWS.append(pa.field("topic", pa.string()))
    planned = plan_stream(options, columns)
    plan, answer = tmp_path / "plan", tmp_path / "answer"
    serializer: Any = CloudPickleSerializer()
    plan.write_bytes(serializer.dumps(planned.stage))
    program = PROGRAM
    if not CASES[case]:
        program = program.replace('"3"]}', '"3"], "topic": ["plain", "plain", "as-json"]}')
    run_isolated(program, plan, answer)
    told = pickle.loads(answer.read_bytes())
    assert isinstance(told, Staged)
    assert told.refusal is None
    appended = commit(planned, 0, [told])
    assert sum(range_.count for range_ in appended.ranges) == 3


def test_the_data_sources_writer_needs_no_more_than_pyspark(tmp_path: Path) -> None:
    """Spark takes it along to the tasks."""
    path = str(tmp_path / "log")
    with duolog.open_log(path) as log:
        log.create_topic("plain")
    planned = plan_stream(SinkOptions.of({"path": path, "topic": "plain", "queryName": "q"}), ROWS)
    serializer: Any = CloudPickleSerializer()
    writer, answer = tmp_path / "writer", tmp_path / "answer"
    writer.write_bytes(serializer.dumps(StreamWriter(planned)))
    program = PROGRAM.replace(
        "stage = pickle.load(plan)", "stage = pickle.load(plan).planned.stage"
    )
    run_isolated(program, writer, answer, also=("py4j", "pyspark"))
    told = pickle.loads(answer.read_bytes())
    assert sum(r.count for r in commit(planned, 0, [told]).ranges) == 3
