"""Records that are put back: whatever a log may have held, and nothing that it could not read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from duolog import open_log
from duolog.errors import InvalidRecord
from duolog.log import EmbeddedLog
from duolog.log.batch import RECORD_SCHEMA
from duolog.log.model import Record, Retention
from duolog.log.timestamps import LATEST_TIME_MS
from tests.support.records import record_batch


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    with open_log(tmp_path / "log") as log:
        log.create_topic("orders")
        yield log


def with_header(name: bytes) -> Any:
    """A record whose header's name is these bytes, valid or not."""
    ends = pa.py_buffer(bytes(4) + len(name).to_bytes(4, "little"))
    names = pa.Array.from_buffers(pa.string(), 1, [None, ends, pa.py_buffer(name)])
    kind = RECORD_SCHEMA.field("headers").type
    entries = pa.StructArray.from_arrays(
        [names, pa.array([b"v"], pa.binary())], fields=[kind.value_type[0], kind.value_type[1]]
    )
    headers = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), entries, type=kind)
    columns = record_batch([b"v"]).columns
    columns[RECORD_SCHEMA.get_field_index("headers")] = headers
    return pa.RecordBatch.from_arrays(columns, schema=RECORD_SCHEMA)


@pytest.mark.parametrize("ts_ms", [0, 1_700_000_000_000_000, LATEST_TIME_MS])
def test_a_time_that_was_taken_once_is_put_back(log: EmbeddedLog, ts_ms: int) -> None:
    refill = log.refill("orders", 0, 7)
    refill.add(record_batch([b"a", b"b"], ts_ms=ts_ms))
    refill.add(record_batch([]))
    refill.sync()
    assert [(r.offset, r.ts_ms, r.value) for r in log.fetch("orders", 0, 7)] == [
        (7, ts_ms, b"a"),
        (8, ts_ms, b"b"),
    ]
    log.publish("orders", Record(b"c", ts_ms=1))
    log.set_retention("orders", Retention(seconds=1))
    log.enforce_retention()
    assert log.offsets("orders")[0].start == 10


@pytest.mark.parametrize(
    "records",
    [
        record_batch([b"v"], ts_ms=-1),
        record_batch([b"v"], ts_ms=LATEST_TIME_MS + 1),
        with_header(b"\xed\xa0\x80"),
        with_header(b"\xff"),
    ],
)
def test_what_could_not_be_read_again_is_refused(log: EmbeddedLog, records: Any) -> None:
    refill = log.refill("orders", 0, 0)
    with pytest.raises(InvalidRecord):
        refill.add(records)
    assert log.offsets("orders")[0].next_offset == 0
    refill.add(with_header("naïve".encode()))
    assert [record.headers for record in log.fetch("orders", 0, 0)] == [(("naïve", b"v"),)]
