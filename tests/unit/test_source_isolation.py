"""A task of a read, where there is nothing but PySpark, pyarrow, numpy and rocksdict."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

from pyspark.serializers import CloudPickleSerializer
from pyspark.sql.types import StringType, StructField, StructType

import duolog
from duolog.avro.embedded import registry_of
from duolog.avro.registry.port import SchemaText
from duolog.connector.data_source import DuologSource
from duolog.connector.source.columns import Columns
from duolog.log.model import Record
from tests.support.isolation import run_isolated

PROGRAM = """
import pickle
import sys

with open(sys.argv[1], "rb") as plan:
    source, reader, tasks = pickle.load(plan)
rows = [row for task in tasks for batch in reader.read(task) for row in batch.to_pylist()]
with open(sys.argv[2], "wb") as answer:
    pickle.dump([(row["offset"], row["value"]) for row in rows], answer)
"""


def test_a_task_reads_and_decodes_with_only_the_few(tmp_path: Path) -> None:
    with duolog.open_log(tmp_path / "log") as log:
        log.create_topic("orders")
        schema = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}]}
        registry_of(log).register("orders-value", SchemaText(json.dumps(schema)))
        log.publish("orders", [Record(b"\0\0\0\0\1\x02"), Record(None)])
    options = {"path": str(tmp_path / "log"), "subscribe": "orders", "decode": "true"}
    assert travelled(options, tmp_path) == [(0, {"id": 1}), (1, None)]


def test_a_registrys_password_does_not_travel(tmp_path: Path) -> None:
    """Spark sends the source along with the reader."""
    with duolog.open_log(tmp_path / "log") as log:
        log.create_topic("orders")
        log.publish("orders", Record(b"v"))
    options = {
        "path": str(tmp_path / "log"),
        "subscribe": "orders",
        "schema.registry.url": "https://registry.example",
        "basic.auth.user.info": "me:secret",
    }
    assert travelled(options, tmp_path) == [(0, b"v")]
    assert b"me:secret" not in (tmp_path / "plan").read_bytes()


def travelled(options: dict[str, str], folder: Path) -> list[Any]:
    """What the tasks of a batch read give, in a process of their own."""
    source = DuologSource(options)
    source.schema()
    reader = source.reader(
        StructType([StructField(name, StringType()) for name in Columns().names])
    )
    serializer: Any = CloudPickleSerializer()
    plan, answer = folder / "plan", folder / "answer"
    plan.write_bytes(serializer.dumps((source, reader, reader.partitions())))
    run_isolated(PROGRAM, plan, answer, also=("py4j", "pyspark", "rocksdict"))
    found: list[Any] = pickle.loads(answer.read_bytes())
    return found
