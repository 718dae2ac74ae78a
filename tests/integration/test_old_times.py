"""A log that claims times which no clock has: what shows it does not break."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

import duolog
from duolog.cli.program import app
from duolog.log.from_backup import restore_backup
from duolog.log.heads import pack_head
from duolog.log.keys import partition_key
from duolog.log.model import Head, Record, Retention, TopicPartition
from duolog.log.options import LogOptions
from duolog.log.store import WriteBatch
from duolog.log.timestamps import LATEST_TIME_MS
from duolog.sql import run
from tests.integration.serve_host import served

SELECT = "SELECT last_ts, records FROM system.partitions"


@pytest.fixture(params=[LATEST_TIME_MS, 2**63 - 1, 2**63, 2**64 - 1])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A log whose partition claims this as its highest time."""
    folder = tmp_path / "log"
    with duolog.open_log(folder) as log:
        topic = log.create_topic("orders")
        log.publish("orders", Record(b"v"))
        store = log._state.store
        batch = WriteBatch()
        (offsets,) = log.offsets("orders")
        head = Head(0, 1, offsets.bytes, request.param)
        batch.put("heads", partition_key(TopicPartition(topic.id, 0)), pack_head(head))
        store.commit(batch)
    return folder


def test_select_shows_the_partition(folder: Path) -> None:
    with duolog.open_log(folder) as log:
        for sql in (SELECT, "SELECT CAST(last_ts AS BIGINT) AS at FROM system.partitions"):
            assert run(log, sql).table().num_rows == 1
        assert run(log, SELECT).table().column("records").to_pylist() == [1]


def test_select_over_http_shows_the_partition(folder: Path) -> None:
    with served(folder) as host:
        reply = host.ask("/v1/api/sql", {"sql": SELECT})
        assert reply.status == 200, reply.body
        assert reply.json["rows"][0][1] == 1


@pytest.mark.parametrize(
    "command",
    [["sql", SELECT], ["topic", "describe", "orders"], ["doctor"]],
)
def test_the_command_line_shows_the_partition(folder: Path, command: list[str]) -> None:
    result = CliRunner().invoke(app, command, env={"DUOLOG_LOG": str(folder)})
    assert not isinstance(result.exception, ArithmeticError | ValueError), result.exception
    assert "Traceback" not in result.output


def test_it_is_written_and_cleared_as_any_other(folder: Path) -> None:
    with duolog.open_log(folder) as log:
        log.publish("orders", Record(b"more"))
        assert [record.value for record in log.fetch("orders", 0, 0)] == [b"v", b"more"]
        log.clear_topic("orders")
        log.publish("orders", Record(b"new", ts_ms=5))
        assert log.offsets("orders")[0].last_ts_ms == 5


def test_a_backup_of_an_old_log_is_restored_with_its_times(tmp_path: Path) -> None:
    ahead_ms = int(time.time() * 1_000_000)
    options = LogOptions(max_timestamp_ahead_seconds=1e15)
    with duolog.open_log(tmp_path / "log", options=options) as log:
        log.create_topic("orders")
        log.publish("orders", Record(b"ahead", ts_ms=ahead_ms))
    with duolog.open_log(tmp_path / "log") as log:
        log.publish("orders", Record(b"old", ts_ms=5))
        log.backup(tmp_path / "backup")
    begin = lambda _words, _total: lambda _: None  # noqa: E731
    restore_backup(tmp_path / "backup", tmp_path / "restored", LogOptions(), begin)
    with duolog.open_log(tmp_path / "restored") as log:
        found = [(record.value, record.ts_ms) for record in log.fetch("orders", 0, 0)]
        assert found == [(b"ahead", ahead_ms), (b"old", 5)]
        log.set_retention("orders", Retention(seconds=60))
        log.enforce_retention()
        assert log.offsets("orders")[0].start == 2
