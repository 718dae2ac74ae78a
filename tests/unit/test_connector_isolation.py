"""What runs in a Spark task, in an environment that has nothing but pyarrow and numpy."""

from __future__ import annotations

import pickle
import subprocess
import sys
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

PROGRAM = """
import sys

ALLOWED = {"duolog", "numpy", "pyarrow"} | set(sys.stdlib_module_names)


class OnlyTheFew:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in ALLOWED and not top.startswith(("__editable__", "_sysconfigdata")):
            raise ModuleNotFoundError(f"{name} is not there in this environment", name=name)


sys.meta_path.insert(0, OnlyTheFew())
for name in ("pyspark", "rocksdict", "sqlglot", "pydantic", "fastavro", "httpx", "pandas"):
    assert name not in sys.modules
    try:
        __import__(name)
    except ModuleNotFoundError:
        continue
    raise AssertionError(f"{name} can be imported, so this shows nothing")

import pickle
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
    run = _run(program, plan, answer)
    assert run.returncode == 0, run.stderr
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
    program = PROGRAM.replace('ALLOWED = {"duolog"', 'ALLOWED = {"pyspark", "py4j", "duolog"')
    program = program.replace('("pyspark", "rocksdict"', '("rocksdict"')
    program = program.replace(
        "stage = pickle.load(plan)", "stage = pickle.load(plan).planned.stage"
    )
    run = _run(program, writer, answer)
    assert run.returncode == 0, run.stderr
    told = pickle.loads(answer.read_bytes())
    assert sum(r.count for r in commit(planned, 0, [told]).ranges) == 3


def _run(program: str, plan: Path, answer: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, str(plan), str(answer)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
