"""Bad records by the doors that need no host: publish_then, the command line, SQL."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from duolog import open_log
from duolog.cli.program import app
from duolog.errors import InvalidRecord, InvalidSql
from duolog.log.model import Record
from duolog.sql import run
from tests.support.poisons import HALF, POISONS

FAR_AHEAD_MS = 4_102_444_800_000  # 2100: parameters are the same in every process


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A log with an acknowledged record."""
    folder = tmp_path / "log"
    with open_log(folder) as log:
        log.create_topic("orders")
        log.publish("orders", Record(b"acknowledged"))
    return folder


def values(folder: Path) -> list[bytes | None]:
    with open_log(folder) as log:
        return [record.value for record in log.fetch("orders", 0, 0)]


@pytest.mark.parametrize("poison", POISONS.values(), ids=POISONS.keys())
def test_publishing_without_a_thread_refuses_at_once(folder: Path, poison: dict[str, Any]) -> None:
    def tell(*_: object) -> None:
        raise AssertionError("it was raised already")

    with open_log(folder) as log, pytest.raises(InvalidRecord):
        log.publish_then("orders", [Record(b"v"), Record(**{"value": b"v", **poison})], tell)
    assert values(folder) == [b"acknowledged"]


def published(folder: Path, *arguments: str, stdin: bytes) -> Result:
    runner = CliRunner(env={"DUOLOG_LOG": str(folder)})
    return runner.invoke(app, ["publish", *arguments, "--json"], input=stdin)


def line(**fields: Any) -> bytes:
    return json.dumps({"value": "v", **fields}).encode() + b"\n"


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (line(table=HALF), "InvalidRecord"),
        (line(headers={HALF: "v"}), "InvalidRecord"),
        (line(headers=[{"name": HALF, "value": "v"}]), "InvalidRecord"),
        (line(value=HALF), "InvalidRecord"),
        (line(key=HALF), "InvalidRecord"),
        (line(table="HALF").replace(b"HALF", b"\xed\xa0\x80"), "InvalidRecord"),
        (line(table="HALF").decode().replace("HALF", HALF).encode("utf-16-le", "surrogatepass"),
         "InvalidRecord"),
        (line(table=5), "InvalidRecord"),
        (line(op=9), "InvalidRecord"),
        (line(ts=1.5), "InvalidRecord"),
        (line(ts=True), "InvalidRecord"),
        (line(ts=-1), "InvalidTimestamp"),
        (line(ts=FAR_AHEAD_MS), "InvalidTimestamp"),
        (line(ts=10**30), "InvalidTimestamp"),
        (line(partition=0.0), "InvalidRecord"),
        (line(headers={"n" * 2000: "v"}), "InvalidRecord"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("writer", [(), ("--writer", "w")])
def test_the_command_line_refuses_a_bad_line(
    folder: Path, sent: bytes, code: str, writer: tuple[str, ...]
) -> None:
    result = published(folder, "orders", *writer, stdin=sent)
    assert result.exit_code == 1
    said = json.loads(result.stderr.splitlines()[-1])
    assert said["code"] == code
    assert "Line 1" in said["error"]
    assert values(folder) == [b"acknowledged"]


def test_the_command_line_refuses_names_that_are_no_text(folder: Path) -> None:
    """Arguments that are no UTF-8 come as halves of surrogate pairs; what is said can be shown."""
    half = b"\xed\xa0\x80"
    for command in (
        [b"publish", b"orders", b"--writer", half],
        [b"publish", half],
        [b"topic", b"create", half],
        [b"topic", b"create", b"t", b"--alias", half],
        [b"ack", b"orders", b"--group", half, b"--offset", b"0"],
        [b"sql", b"CREATE TOPIC " + half],
    ):
        done = subprocess.run(
            [sys.executable.encode(), b"-m", b"duolog.cli", *command],
            input=b'{"value":1}\n',
            capture_output=True,
            timeout=60,
            env={**os.environ, "DUOLOG_LOG": str(folder)},
            check=False,
        )
        assert done.returncode != 0
        assert b"Traceback" not in done.stderr, (command, done.stderr.decode())
    assert values(folder) == [b"acknowledged"]
    with open_log(folder) as log:
        assert [topic.name for topic in log.topics()] == ["orders"]


def test_sql_refuses_what_is_no_text(folder: Path) -> None:
    with open_log(folder) as log:
        for sql in (f"CREATE TOPIC {HALF}", f"SELECT '{HALF}'", f'CLEAR TOPIC "{HALF}"'):
            with pytest.raises(InvalidSql):
                run(log, sql)
