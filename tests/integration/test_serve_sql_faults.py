"""Queries that want too much, processes that die, clients that leave: the host goes on."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

import psutil
import pytest

from duolog.bridge.sql.rules import SqlRules
from duolog.log.model import Format, Record, TopicSettings
from duolog.log.owner import read_secret
from tests.integration.serve_host import DEADLINE_SECONDS, Reply, ServedLog, served, stop, until
from tests.integration.sql_asking import ENDLESS, SQL, ask_sql, query_processes, rows_of

MEMORY_BYTES = 512 << 20
TWENTY = "x" * 20


def long_text() -> str:
    """A text of 20 ** 7 letters, which is made in memory that DataFusion does not count."""
    text = f"'{TWENTY}'"
    for _ in range(6):
        text = f"replace({text}, 'x', '{TWENTY}')"
    return f"SELECT length({text}) AS n"


@contextmanager
def serving(folder: Path, **rules: Any) -> Iterator[ServedLog]:
    wanted = {"timeout_seconds": 60.0, "memory_bytes": MEMORY_BYTES, **rules}
    with served(folder / "log", sql_rules=SqlRules(**wanted)) as host:
        host.log.create_topic("t", TopicSettings(value_format=Format.RAW))
        host.log.publish("t", [Record(b"%d" % number) for number in range(2000)])
        yield host


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool


def under_way(
    host: ServedLog, threads: ThreadPoolExecutor, text: str = ENDLESS
) -> tuple[Future[Reply], psutil.Process]:
    """A query that is running, and in which process."""
    rows_of(host, "SELECT 1")
    (process,) = query_processes()
    before = process.cpu_times().user
    asked = threads.submit(ask_sql, host, text)
    until(lambda: process.cpu_times().user > before + 0.05)
    return asked, process


def test_a_query_that_takes_too_much_memory_ends_alone(
    tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    with serving(tmp_path) as host:
        bomb = threads.submit(ask_sql, host, long_text())
        answered = 0
        while not bomb.done():
            assert host.publish("t", "x").status == 200
            assert host.consume(topic="t", start="Earliest", limit=10).status == 200
            assert rows_of(host, "SELECT count(*) > 1 AS n FROM t") == [[True]]
            answered += 1
        assert answered
        reply = bomb.result()
        assert (reply.status, reply.code) == (422, "QueryTooLarge"), reply.body
        assert host.metric('duolog_sql_queries_total{ended="QueryTooLarge"}') == 1
        assert "memory allocation of" in host.said.getvalue()


def test_what_datafusion_counts_ends_the_query_and_not_the_process(tmp_path: Path) -> None:
    with serving(tmp_path) as host:
        sorts = "SELECT a.value || b.value || c.value AS v FROM t a, t b, t c ORDER BY v"
        reply = ask_sql(host, sorts)
        assert (reply.status, reply.code) == (422, "QueryTooLarge"), reply.body
        assert "85 MiB" in reply.json["error"]
        assert rows_of(host, "SELECT 1") == [[1]]
        assert "sql.process_said" not in host.said.getvalue()


def test_a_query_that_takes_too_long_is_ended_in_time(
    tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    with serving(tmp_path, timeout_seconds=0.5) as host:
        slow = threads.submit(ask_sql, host, ENDLESS)
        while not slow.done():
            assert host.ask("/readyz").status == 200
        reply = slow.result()
        assert (reply.status, reply.code) == (422, "QueryTimedOut")
        assert "0.5 s" in reply.json["error"]
        assert query_processes() == []
        assert rows_of(host, "SELECT 1") == [[1]]


def test_a_process_that_does_not_hear_its_deadline_is_killed(
    tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    with serving(tmp_path, timeout_seconds=1.0) as host:
        rows_of(host, "SELECT 1")
        (process,) = query_processes()
        process.suspend()
        reply = threads.submit(ask_sql, host, "SELECT 1").result()
        assert (reply.status, reply.code) == (422, "QueryTimedOut")
        assert not process.is_running()


@pytest.mark.parametrize(
    "query", ["SELECT '\0'", 'SELECT 1 AS "a\0b"', "SELECT named_struct('\0', 1) AS x"]
)
def test_columns_that_cannot_be_sent_are_the_querys_fault(tmp_path: Path, query: str) -> None:
    with served(tmp_path / "log") as host:
        refused = host.ask("/v1/api/sql", {"sql": query})
        assert (refused.status, refused.code) == (422, "InvalidSql")
        assert "with AS" in refused.json["error"]
        fine = host.ask("/v1/api/sql", {"sql": "SELECT '\0' AS nothing"})
        assert fine.json["rows"] == [["\0"]]


def test_a_killed_process_loses_its_query_and_nothing_else(
    tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    with serving(tmp_path) as host:
        asked, process = under_way(host, threads)
        process.kill()
        reply = asked.result()
        assert (reply.status, reply.code) == (503, "QueryProcessDied")
        assert "SIGKILL" in reply.json["error"]
        assert reply.headers["retry-after"] == "1"
        assert rows_of(host, "SELECT 1") == [[1]]


def test_a_process_that_died_while_it_waited_is_replaced(tmp_path: Path) -> None:
    with serving(tmp_path) as host:
        rows_of(host, "SELECT 1")
        (process,) = query_processes()
        process.kill()
        ended = os.WEXITED | os.WNOHANG | os.WNOWAIT  # and left for its host to find
        until(lambda: os.waitid(os.P_PID, process.pid, ended) is not None)
        assert rows_of(host, "SELECT 1") == [[1]]
        assert not process.is_running()


def test_one_process_answers_one_query_after_the_other(tmp_path: Path) -> None:
    with serving(tmp_path) as host:
        pids = set()
        for number in range(5):
            assert rows_of(host, f"SELECT {number} AS n, count(*) AS c FROM t") == [[number, 2000]]
            assert ask_sql(host, "SELECT nothing FROM t").code == "InvalidSql"
            pids |= {process.pid for process in query_processes()}
        assert len(pids) == 1
        assert host.metric("duolog_sql_processes") == 1


def test_only_so_many_queries_at_a_time(tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    with serving(tmp_path, max_processes=1) as host:
        asked, process = under_way(host, threads)
        refused = ask_sql(host, "SELECT 1")
        assert (refused.status, refused.code) == (503, "TooBusy")
        assert refused.headers["retry-after"] == "1"
        assert "places for queries" in refused.json["error"]
        assert ask_sql(host, "CONSUME FROM t LIMIT 1").status == 200
        process.kill()
        assert asked.result().status == 503
        assert rows_of(host, "SELECT 1") == [[1]]


def test_who_comes_a_moment_too_early_waits(tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    with serving(tmp_path, max_processes=1) as host:
        rows_of(host, "SELECT 1")
        asked = [threads.submit(rows_of, host, f"SELECT {number}") for number in range(4)]
        assert [each.result() for each in asked] == [[[number]] for number in range(4)]
        assert len(query_processes()) == 1


def test_a_query_ends_when_its_client_leaves(tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    with serving(tmp_path) as host:
        rows_of(host, "SELECT 1")
        (process,) = query_processes()
        connection = http.client.HTTPConnection("127.0.0.1", host.port, timeout=DEADLINE_SECONDS)
        connection.request(
            "POST", SQL, json.dumps({"sql": ENDLESS}), {"Content-Type": "application/json"}
        )
        before = process.cpu_times().user
        until(lambda: process.cpu_times().user > before + 0.05)
        connection.close()
        until(lambda: not process.is_running())
        until(lambda: host.metric('duolog_sql_queries_total{ended="given up"}') == 1)
        assert rows_of(host, "SELECT 1") == [[1]]


def test_a_query_goes_on_while_groups_move_and_topics_change(
    tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    with serving(tmp_path, timeout_seconds=2.0) as host:
        asked, _ = under_way(host, threads)
        host.log.ack("g", "t", 5)
        host.log.publish("t", Record(b"more"))
        host.log.drop_topic("t")
        assert asked.result().code == "QueryTimedOut"


def test_a_host_that_stops_ends_its_queries(tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    with serving(tmp_path) as host:
        asked, process = under_way(host, threads)
        stop(host)
        reply = asked.result()
        assert (reply.status, reply.code) == (503, "LogClosed")
        assert "Ask again" in reply.json["error"]
        assert "retry-after" in reply.headers
        assert not process.is_running()
    assert query_processes() == []


def test_a_process_ends_when_nobody_asks(tmp_path: Path) -> None:
    with serving(tmp_path, idle_seconds=0.0) as host:
        assert query_processes() == []
        assert rows_of(host, "SELECT 1") == [[1]]
        until(lambda: query_processes() == [])
        until(lambda: host.metric("duolog_sql_processes") == 0)
        assert rows_of(host, "SELECT 1") == [[1]]


def test_processes_know_no_secret_and_end_with_the_host(tmp_path: Path) -> None:
    token = "duolog_a-token-of-the-hosts-own"
    host = subprocess.Popen(
        [
            *(sys.executable, "-m", "duolog.cli", "serve"),
            *("--log", "log", "--listen", "127.0.0.1:0", "--json"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env={
            **os.environ,
            "DUOLOG_TOKEN": token,
            "DUOLOG_SQL": '{"memory_bytes": "600 MiB", "timeout_seconds": 100}',
        },
    )
    with host:
        try:
            line = cast("IO[bytes]", host.stdout).readline()
            url = json.loads(line)["url"]
            threading.Thread(target=_ask_endlessly, args=(url,)).start()
            until(lambda: len(query_processes(host.pid)) == 1)
            (process,) = query_processes(host.pid)
            until(lambda: process.cpu_times().user > 0.5)
            secret = read_secret(tmp_path / "log")
            assert secret is not None
            shown = f"{process.cmdline()} {process.environ()}"
            assert secret not in shown
            assert token not in shown
            assert "log" not in process.cmdline()
            assert process.cmdline()[-1] == str(600 << 20)
            opened = [each.path for each in process.open_files()]
            assert [path for path in opened if path.startswith(str(tmp_path))] == []
        finally:
            host.kill()
        assert host.wait(DEADLINE_SECONDS) == -signal.SIGKILL
        until(lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE)


def _ask_endlessly(url: str) -> None:
    request = urllib.request.Request(
        f"{url}{SQL}",
        json.dumps({"sql": ENDLESS}).encode(),
        {"Content-Type": "application/json"},
    )
    with pytest.raises((OSError, http.client.HTTPException)):
        urllib.request.urlopen(request, timeout=DEADLINE_SECONDS)
