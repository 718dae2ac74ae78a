"""A process that ends without closing its log ends as it should, and nothing is lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from duolog.log import open_log

DEADLINE_SECONDS = 120
PUBLISH = """
import sys, threading
from duolog.log import open_log
from duolog.log.model import Record

log = open_log(sys.argv[1])
log.create_topic("orders")

def publish():
    while True:
        log.publish("orders", Record(b"beside" * 500))

if sys.argv[2] == "threads":
    for _ in range(4):
        threading.Thread(target=publish, daemon=True).start()
for number in range(1500):
    log.publish_then("orders", [Record(b"x" * 3000)], lambda placed, error: None)
placed = log.publish("orders", Record(b"last"))
print(placed[0].offset, flush=True)
"""


@pytest.mark.parametrize("threads", ["none", "threads"])
def test_a_log_that_is_left_open_is_closed_at_the_end(tmp_path: Path, threads: str) -> None:
    for number in range(4):
        folder = tmp_path / f"log{number}"
        ended = subprocess.run(
            [sys.executable, "-c", PUBLISH, str(folder), threads],
            capture_output=True,
            text=True,
            timeout=DEADLINE_SECONDS,
            check=False,
        )
        assert (ended.returncode, "FATAL" in ended.stderr) == (0, False), ended.stderr[-500:]
        with open_log(folder) as log:
            assert log.offsets("orders")[0].next_offset > int(ended.stdout)
