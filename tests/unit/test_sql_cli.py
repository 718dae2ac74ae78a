"""`duolog sql`: what it prints, what it takes, how it ends."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner, Result

from duolog import open_log
from duolog.cli.program import app
from duolog.cli.sql_cells import shown
from duolog.log.model import Format, Op, Record, TopicSettings
from duolog.sql.cells import plain, rows_of
from tests.support.records import BATCH, part_of

Duolog = Callable[..., Result]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    folder = tmp_path / "log"
    with open_log(folder) as opened:
        opened.create_topic("t")
        values = (b'{"n":1,"name":"ann"}', b'{"n":2,"name":"b\xc3\xb6b"}', b'{"n":3,"name":null}')
        opened.publish("t", [Record(value, key=b"k", ts_ms=1500) for value in values])
    return folder


@pytest.fixture
def duolog(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Duolog:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DUOLOG_LOG", str(log))
    return lambda *arguments, **options: CliRunner().invoke(app, ("sql", *arguments), **options)


def _json(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_json_lines(duolog: Duolog) -> None:
    assert _json(duolog("--json", "SELECT offset, ts, name FROM t WHERE n > 1")) == [
        {"offset": 1, "ts": "1970-01-01T00:00:01.500Z", "name": "böb"},
        {"offset": 2, "ts": "1970-01-01T00:00:01.500Z", "name": None},
    ]


def test_a_table_when_it_fits(duolog: Duolog) -> None:
    lines = duolog("SELECT n, name FROM t").stdout.splitlines()
    assert [line.rstrip() for line in lines] == [
        "n   name",
        "────────",
        "1   ann",
        "2   böb",
        "3   NULL",
    ]


def test_one_below_the_other_when_it_does_not(duolog: Duolog) -> None:
    shown_rows = duolog("SELECT * FROM t LIMIT 2").stdout
    assert max(map(len, shown_rows.splitlines())) <= 80
    first, second = shown_rows.split("\n\n")
    assert [line.split() for line in first.splitlines()[:3]] == [
        ["partition", "0"],
        ["offset", "0"],
        ["ts", "1970-01-01", "00:00:01.500Z"],
    ]
    assert "böb" in second


def test_several_statements(duolog: Duolog) -> None:
    found = _json(
        duolog(
            "--json",
            "CREATE TOPIC u; CONSUME FROM t GROUP 'g' LIMIT 2 AUTO ACK; ACK t GROUP 'g' UPTO "
            "OFFSET 2; SELECT topic FROM system.topics; DROP TOPIC u",
        )
    )
    assert [row.get("offset", row.get("topic")) for row in found] == [
        *("u", 0, 1, "t", "t", "u", "u")
    ]


def test_from_stdin_and_from_a_file(duolog: Duolog, tmp_path: Path) -> None:
    expected = [{"n": 6}]
    text = "SELECT sum(n) AS n\n-- all of them\nFROM t;\n"
    assert _json(duolog("--json", input=text)) == expected
    assert _json(duolog("--json", "-", input=text)) == expected
    (tmp_path / "query.sql").write_text(text)
    assert _json(duolog("--json", "--file", "query.sql")) == expected


def test_the_first_topic_makes_the_log(duolog: Duolog, tmp_path: Path) -> None:
    new = str(tmp_path / "new")
    assert duolog("--log", new, "SELECT 1").exit_code == 1
    assert not (tmp_path / "new").exists()
    assert _json(duolog("--log", new, "--json", "CREATE TOPIC a"))[0]["topic"] == "a"


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("CREATE TOPIC x; SELCT 1", "InvalidSql"),
        ("SELECT nam FROM t", "InvalidSql"),
        ("SELECT * FROM u", "UnknownTopic"),
        ("SELECT 1 / 0", "QueryFailed"),
        ("ACK t GROUP g UPTO OFFSET 9", "AckBeyondHead"),
        ("CREATE TOPIC t", "NameTaken"),
        ("CREATE TOPIC t WITH (retention_seconds = -1)", "InvalidSetting"),
        ("CREATE TOPIC 'a b'", "InvalidName"),
    ],
)
def test_what_fails_is_named(duolog: Duolog, sql: str, code: str) -> None:
    result = duolog("--json", sql)
    assert (result.exit_code, json.loads(result.stderr)["code"]) == (1, code)


def test_nothing_is_done_before_all_is_understood(duolog: Duolog) -> None:
    duolog("CREATE TOPIC x; SELCT 1")
    assert _json(duolog("--json", "SELECT topic FROM system.topics")) == [{"topic": "t"}]


def test_a_mistake_is_pointed_at(duolog: Duolog) -> None:
    assert duolog("SELECT n FROM t;\nSELECT nam FROM t").stderr.endswith(
        "\n  SELECT nam FROM t\n         ^\n"
    )


@pytest.mark.parametrize(
    "arguments",
    [("SELECT 1", "--file", "x"), ("--file", "missing.sql"), ("--file", ".")],
)
def test_wrong_usage(duolog: Duolog, arguments: tuple[str, ...]) -> None:
    assert duolog(*arguments).exit_code == 2


def test_a_file_that_is_no_text(duolog: Duolog, tmp_path: Path) -> None:
    (tmp_path / "x.sql").write_bytes(b"SELECT '\xff'")
    result = duolog("--file", "x.sql")
    assert (result.exit_code, "is not UTF-8" in result.stderr) == (2, True)


def test_a_time_limit(duolog: Duolog) -> None:
    endless = "WITH RECURSIVE n AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM n) SELECT * FROM n"
    result = duolog("--timeout", "0.2", f"SELECT count(*) FROM ({endless})")
    assert (result.exit_code, "longer than the 0.2 s" in result.stderr) == (1, True)


def test_a_query_that_is_given_up_leaves_nothing_behind(log: Path) -> None:
    """DataFusion's threads are in Python while they read; a program that ends then is aborted."""
    with open_log(log) as opened:
        topic = opened.create_topic("big", TopicSettings(value_format=Format.JSON))
        values = [b'{"n":%d}' % number for number in range(100_000)]
        opened.append(BATCH, 1, [part_of(topic, {0: values})])
    sql = "SELECT count(*) FROM big a, big b, big c WHERE a.n + b.n + c.n = -1"
    command = [
        sys.executable,
        "-m",
        "duolog.cli",
        "sql",
        "--log",
        str(log),
        "--timeout",
        "0.1",
        sql,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, "longer than the 0.1 s" in done.stderr) == (1, True), done.stderr


def test_a_table_has_an_end(duolog: Duolog, log: Path) -> None:
    with open_log(log) as opened:
        opened.publish("t", [Record(b'{"n":1}')] * 1500)
    result = duolog("SELECT n FROM t")
    assert len(result.stdout.splitlines()) == 1002
    assert "first 1,000 rows" in result.stderr
    assert len(_json(duolog("--json", "SELECT n FROM t"))) == 1503


def test_topics_in_avro_are_decoded(duolog: Duolog, log: Path) -> None:
    from duolog.log.model import Route

    with open_log(log) as opened:
        opened.create_topic("a", TopicSettings(value_format=Format.AVRO))
        opened.add_route("a", Route("s.t", frozenset({Op.INSERT})))
        opened.publish_rows("s.t", Op.INSERT, [{"id": 7}], ["id"])
    assert _json(duolog("--json", "SELECT id, value FROM a")) == [
        {"id": 7, "value": '{"_table":"s.t","id":7}'}
    ]


CELLS = [
    (None, "NULL", None),
    (True, "true", True),
    (5, "5", 5),
    (1.5, "1.5", 1.5),
    (float("nan"), "nan", "nan"),
    ("a\nb\x1b", "a\\nb\\x1b", "a\nb\x1b"),
    (b"text", "text", "text"),
    (b"\xff\x00", "0xff00", base64.b64encode(b"\xff\x00").decode()),
    (Decimal("1.50"), "1.50", "1.50"),
    (date(2026, 1, 31), "2026-01-31", "2026-01-31"),
    (datetime.fromisoformat("2026-01-31"), "2026-01-31 00:00:00.000", "2026-01-31T00:00:00.000"),
    (
        datetime(2026, 1, 31, 1, 2, 3, 4, UTC),
        "2026-01-31 01:02:03.000004Z",
        "2026-01-31T01:02:03.000004Z",
    ),
    (timedelta(seconds=90), "0:01:30", "0:01:30"),
    (
        [{"name": "h", "value": b"\xff"}, None],
        '[{"name": "h", "value": "/w==", "value_encoding": "base64"}, null]',
        [{"name": "h", "value": "/w==", "value_encoding": "base64"}, None],
    ),
]


@pytest.mark.parametrize(("value", "text", "as_json"), CELLS, ids=[str(each) for each in CELLS])
def test_a_cell(value: Any, text: str, as_json: Any) -> None:
    assert shown(value) == text
    assert plain(value) == as_json


def test_times_beyond_all_calendars() -> None:
    times = pa.array([0, 2**62], pa.timestamp("ms", "UTC"))
    found = [row[0] for row in rows_of(pa.RecordBatch.from_arrays([times], ["ts"]))]
    assert found == [datetime(1970, 1, 1, tzinfo=UTC), f"@{2**62}"]


def test_datafusion_is_loaded_only_for_a_select(log: Path) -> None:
    program = """
import sys
from duolog import open_log
from duolog.sql import parse, run
parse("SELECT 1; CREATE TOPIC x")
with open_log(sys.argv[1]) as log:
    run(log, "CONSUME FROM t")
    run(log, "CREATE TOPIC x")
    print("datafusion" in sys.modules)
    run(log, "SELECT 1").table()
    print("datafusion" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(log)], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "True"]
