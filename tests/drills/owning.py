"""One process owns a log and copies it; another one tries to get in meanwhile."""

from __future__ import annotations

import shutil
from pathlib import Path

from duolog.errors import LogBusy, WritesRefused
from duolog.log.embedded import open_log
from duolog.log.model import Record
from duolog.log.options import LogOptions
from tests.drills.worker import say

RECORDS = 50


def own(folder: str, *, rounds: int) -> None:
    """The role: publish, back up, copy; goes on each time a line comes."""
    log_folder = Path(folder) / "log"
    with open_log(log_folder) as log:
        log.create_topic("orders")
        say(["opened", log.log_id])
        for number in range(rounds):
            for nth in range(RECORDS):
                log.publish("orders", Record(b"%d/%d" % (number, nth)))
            log.backup(Path(folder) / f"backup{number}")
            shutil.copytree(log_folder, Path(folder) / f"copy{number}")
            # As a copying tool does that reads every file there is.
            for file in (log_folder / "db").iterdir():
                file.read_bytes()
            say(["copied", number])
            input()


def intrude(folder: str) -> None:
    """The role: try to open the log each time a line comes; says whether it got in."""
    log_folder = Path(folder) / "log"
    say("ready")
    while input():
        try:
            with open_log(log_folder, options=LogOptions(lock_wait_seconds=0.02)) as log:
                log.publish("orders", Record(b"intruder"))
        except (LogBusy, WritesRefused):  # the latter by RocksDB's own lock
            say("busy")
        else:
            say("got in")
