"""A log with more tables than a process may have files open; a process that has none left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from duolog.bridge.http.answers import refusal_of
from duolog.log import record_files
from duolog.log.embedded import open_log
from duolog.log.model import TopicSettings
from duolog.log.open_files import tables_within, too_many_open_files
from tests.support.children import ROOT
from tests.support.records import STREAM, part_of

PARTITIONS, EPOCHS, ROWS = 4, 40, 30
LIMIT = 100

PROGRAM = """
import json, os, resource, sys
from duolog.errors import DuologError
from duolog.log.embedded import open_log
from duolog.log.model import Record
from duolog.log.options import LogOptions

def limit(soft, hard):
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

def take_all():
    '''All descriptors that are left.'''
    taken = []
    while True:
        try:
            taken.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            return taken

def told(call):
    try:
        return call()
    except DuologError as error:
        return [error.code, str(error)]

folder = sys.argv[1]
options = LogOptions(cache_bytes=0)
said = {}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log with many small tables."""
    path: Path = tmp_path_factory.mktemp("many") / "log"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_files, "SHARE_BYTES", 1000)
        with open_log(path) as log:
            topic = log.create_topic("orders", TopicSettings(partitions=PARTITIONS))
            rows: dict[int, Sequence[bytes | None]] = {
                partition: [b"%05d" % n + os.urandom(100) for n in range(ROWS)]
                for partition in range(PARTITIONS)
            }
            for epoch in range(EPOCHS):
                log.append(STREAM, epoch, [part_of(topic, rows)])
    assert len(list((path / "db").glob("*.sst"))) > LIMIT
    return path


def run(folder: Path, body: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", f"{PROGRAM}\n{body}\nprint(json.dumps(said))", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_a_log_has_more_tables_than_a_process_may_open(folder: Path) -> None:
    said = run(
        folder,
        f"""
limit({LIMIT}, {LIMIT})
with open_log(folder, options=options) as log:
    said["records"] = log.check_whole().records
    most = len(os.listdir("/proc/self/fd"))
    for number in range(200):
        log.publish("orders", Record(b"x", partition=number % {PARTITIONS}))
    said["left"] = {LIMIT} - most
""",
    )
    assert said["records"] >= PARTITIONS * EPOCHS * ROWS
    assert said["left"] > 20


def test_the_soft_limit_is_raised(folder: Path) -> None:
    said = run(
        folder,
        """
limit(64, 512)
with open_log(folder) as log:
    said["limits"] = resource.getrlimit(resource.RLIMIT_NOFILE)
""",
    )
    assert said["limits"] == [512, 512]


def test_a_process_without_a_descriptor_is_told_so_and_nothing_is_damaged(folder: Path) -> None:
    said = run(
        folder,
        f"""
limit({LIMIT}, {LIMIT})
taken = take_all()
said["no lock"] = told(lambda: open_log(folder))
for left in (1, 2, 6, 12):
    for _ in range(left):
        os.close(taken.pop())
    said[f"{{left}} left"] = told(lambda: open_log(folder))
    for other in take_all():
        taken.append(other)
for descriptor in taken:
    os.close(descriptor)
with open_log(folder, options=options) as log:
    taken = take_all()
    told_of_reads = [
        told(lambda: log.fetch("orders", partition, offset).count)
        for partition in range({PARTITIONS})
        for offset in range(0, {EPOCHS * ROWS}, 7)
    ]
    said["reads"] = sorted({{one[0] for one in told_of_reads if isinstance(one, list)}})
    said["words"] = [one[1] for one in told_of_reads if isinstance(one, list)][:1]
    for descriptor in taken:
        os.close(descriptor)
    said["records"] = log.check_whole().records
""",
    )
    for name in ("no lock", "1 left", "2 left", "6 left", "12 left"):
        code, text = said[name]
        assert code == "TooManyOpenFiles", (name, text)
        assert "ulimit" in text
    assert said["reads"] == ["TooManyOpenFiles"]
    assert "Nothing is damaged" in said["words"][0]
    assert said["records"] >= PARTITIONS * EPOCHS * ROWS


@pytest.mark.parametrize(
    ("open_files", "tables"),
    [(64, 32), (1024, 128), (20_000, 2500), (65_536, 8192), (1 << 20, 8192)],
)
def test_tables_get_an_eighth_of_the_files_that_may_be_open(open_files: int, tables: int) -> None:
    assert tables_within(open_files) == tables


def test_a_host_answers_that_it_may_be_asked_again() -> None:
    refusal = refusal_of(too_many_open_files("The log cannot be read"))
    assert (refusal.status, refusal.code) == (503, "TooManyOpenFiles")
    assert refusal.retry_after_seconds
