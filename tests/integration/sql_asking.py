"""How tests ask a host in SQL, and see the processes that its queries run in."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import psutil
import pyarrow as pa

from tests.integration.serve_host import Reply, ServedLog

SQL = "/v1/api/sql"
ARROW = {"Accept": "application/vnd.apache.arrow.stream"}

ENDLESS = "WITH RECURSIVE n AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM n) SELECT count(*) FROM n"
"""A query that only its deadline ends."""


def ask_sql(host: ServedLog, text: Any, **options: Any) -> Reply:
    return host.ask(SQL, {"sql": text}, **options)


def rows_of(host: ServedLog, text: str, **options: Any) -> list[list[Any]]:
    reply = ask_sql(host, text, **options)
    assert reply.status == 200, reply.body
    rows: list[list[Any]] = reply.json["rows"]
    return rows


def arrow_of(host: ServedLog, text: str) -> pa.Table:
    reply = ask_sql(host, text, headers=ARROW)
    assert reply.status == 200, reply.body
    assert reply.headers["content-type"] == ARROW["Accept"]
    return pa.ipc.open_stream(reply.body).read_all()


def query_processes(host_pid: int | None = None) -> Sequence[psutil.Process]:
    """Those that run queries for a host; for one in this process, without a number."""
    found = psutil.Process(host_pid or os.getpid()).children()
    return [each for each in found if _is_one(each)]


def _is_one(process: psutil.Process) -> bool:
    try:
        return any("query_process" in word for word in process.cmdline())
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return False
