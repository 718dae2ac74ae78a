"""What only the driver needs to know does not travel to tasks."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa

import duolog
from duolog.connector.data_source import BatchWriter, StreamWriter
from duolog.connector.options import SinkOptions
from duolog.connector.sink import plan_batch, plan_stream

PASSWORD = "hunter2-and-more"


def test_a_registrys_password_stays_on_the_driver(tmp_path: Path) -> None:
    with duolog.open_log(tmp_path / "log") as log:
        log.create_topic("orders")
    options = SinkOptions.of(
        {
            "path": str(tmp_path / "log"),
            "topic": "orders",
            "queryName": "q",
            "schema.registry.url": "http://127.0.0.1:9",
            "basic.auth.user.info": f"me:{PASSWORD}",
        }
    )
    assert options.registry["basic.auth.user.info"].endswith(PASSWORD)
    assert PASSWORD not in repr(options)
    columns = pa.schema([("key", pa.string()), ("value", pa.string())])
    writers = [
        BatchWriter(*plan_batch(options, columns)),
        StreamWriter(plan_stream(options, columns)),
    ]
    for writer in writers:
        assert PASSWORD.encode() not in pickle.dumps(writer)
