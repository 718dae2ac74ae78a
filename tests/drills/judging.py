"""A process that opens one log after the other and says what is wrong with each.

Opening and reading happens here, so that what kills a process does not kill the tests.

    asks    {"folder": …, "ledger": …, "go_on": true}
    answer  {"refused": code or null, "message": …, "violations": […], "log_id": …}
"""

from __future__ import annotations

import json
import random
import sys
from typing import Any

from duolog.errors import DuologError
from duolog.log.embedded import open_log
from duolog.log.options import LogOptions
from tests.drills.checker import violations
from tests.drills.ledger import read_ledger
from tests.drills.worker import say
from tests.drills.writing import Writing

_OPTIONS = LogOptions(min_free_bytes=0, cache_bytes=0, lock_wait_seconds=1.0)


def judge() -> None:
    """The role."""
    say("ready")
    for line in sys.stdin:
        say(_judged(json.loads(line)))


def _judged(asked: dict[str, Any]) -> dict[str, Any]:
    try:
        return _verdict(asked["folder"], asked["ledger"], go_on=asked["go_on"])
    except DuologError as refused:
        return {"refused": refused.code, "message": str(refused), "violations": []}
    except Exception as error:
        unnamed = f"{type(error).__name__}: {error}"
        return {"refused": None, "message": "", "violations": [unnamed]}


def _verdict(folder: str, ledger_path: str, *, go_on: bool) -> dict[str, Any]:
    ledger = read_ledger(ledger_path)
    with open_log(folder, create=False, options=_OPTIONS) as log:
        wrong = violations(log, ledger)
        log_id = log.log_id
        if go_on and not wrong:
            Writing(log, ledger, _unheard, random.Random(1)).run(publications=3, epochs=2)
    if go_on and not wrong:
        with open_log(folder, create=False, options=_OPTIONS) as log:
            wrong = violations(log, ledger)
    return {"refused": None, "message": "", "violations": wrong, "log_id": log_id}


def _unheard(what: Any) -> None:
    if what[0] == "violations":
        raise RuntimeError(what[1])
