"""What drills run in child processes: `python -m tests.drills.worker '{"role": …, "mutant": …}'`.

A role is a function; the other arguments are its own. With a mutant, the product is changed first.
The process says what happens in lines of JSON, and ends with the process that started it.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import threading
from importlib import import_module
from typing import Any

_ROLES = {
    "write": "tests.drills.writing",
    "judge": "tests.drills.judging",
    "fail_syncs": "tests.drills.failing",
    "back_up": "tests.drills.failing",
    "fill": "tests.drills.filling",
    "hand_over": "tests.drills.handing",
    "join": "tests.drills.handing",
    "own": "tests.drills.owning",
    "intrude": "tests.drills.owning",
    "replan": "tests.drills.replanning",
    "publish_together": "tests.drills.publishing",
    "remove_beside_readers": "tests.drills.removing",
    "read_hostile": "tests.drills.reading_hostile",
    "act": "tests.drills.model.acting",
}
_END_WITH_PARENT = 1  # PR_SET_PDEATHSIG
_speaking = threading.Lock()


def say(what: Any) -> None:
    """One line to whoever started this process."""
    line = json.dumps(what).encode() + b"\n"
    with _speaking:
        while line:
            line = line[os.write(1, line) :]


def main() -> None:
    ctypes.CDLL(None).prctl(_END_WITH_PARENT, signal.SIGKILL)
    arguments = json.loads(sys.argv[1])
    role = arguments.pop("role")
    module = import_module(_ROLES[role])
    mutant = arguments.pop("mutant", None)
    if mutant is not None:
        from tests.drills.mutants import MUTANTS

        MUTANTS[mutant]()
    getattr(module, role)(**arguments)


if __name__ == "__main__":
    main()
