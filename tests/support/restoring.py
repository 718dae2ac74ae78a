"""A restore in a process of its own, which dies where it is told to.

Run with a line of JSON: what to restore, into which folder, and at which fault point to end by
kill -9, and which time that it is passed.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from duolog.bridge.kafka.feed.filters import GroupFilter
from duolog.bridge.kafka.restore import restore_from_kafka
from duolog.bridge.kafka.settings import KafkaSettings
from duolog.log.from_backup import restore_backup
from duolog.log.identity import write_format
from duolog.log.options import FaultPoint, LogOptions
from duolog.log.restoring import Restoring


def main(asked: dict[str, Any]) -> None:
    passed = 0

    def die(point: FaultPoint) -> None:
        nonlocal passed
        if point == asked["point"]:
            passed += 1
            if passed == asked.get("time", 1):
                os.kill(os.getpid(), signal.SIGKILL)

    if asked.get("mutant"):
        _say_too_early_that_it_is_a_log()
    options, folder = LogOptions(fault=die), Path(asked["folder"])
    if "source" in asked:
        restore_backup(Path(asked["source"]), folder, options, lambda _words, _total: _nothing)
    else:
        restore_from_kafka(
            folder,
            KafkaSettings.of(asked["bootstrap_servers"]),
            topics=asked["topics"],
            groups=GroupFilter.of(asked["groups"]),
            options=options,
        )
    sys.stdout.write(json.dumps({"done": True}) + "\n")


def _nothing(_more: int) -> None:
    pass


def _say_too_early_that_it_is_a_log() -> None:
    """The mutant: FORMAT is written before the pieces are moved."""
    finish = Restoring.finish

    def too_early(self: Restoring) -> Any:
        write_format(self.folder)
        return finish(self)

    Restoring.finish = too_early  # type: ignore[method-assign]


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
