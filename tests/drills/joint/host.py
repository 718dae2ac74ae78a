"""`duolog` as a child, with a mutant in the host or in its worker if JOINT_MUTANT names one."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from typing import Any

from duolog.bridge.serve import child, worker
from duolog.bridge.serve.supervision import Patience
from duolog.cli import main
from tests.drills.joint.mutants import HOST, VARIABLE, WORKER

WORKER_MODULE = "tests.drills.joint.worker"
_LONGEST_PAUSE_SECONDS = 1.0  # a worker that is killed again and again is started again at once


def begin() -> None:
    often = partial(Patience, longest_pause_seconds=_LONGEST_PAUSE_SECONDS)
    worker.Patience = often  # type: ignore[attr-defined, assignment]
    name = os.environ.get(VARIABLE, "")
    if name in HOST:
        HOST[name]()
    if name in WORKER:
        start = child.WorkerCommand.start

        def start_ours(self: child.WorkerCommand, *heard: Any) -> Any:
            return start(replace(self, module=WORKER_MODULE), *heard)

        child.WorkerCommand.start = start_ours  # type: ignore[method-assign,assignment]
    main()


if __name__ == "__main__":
    begin()
