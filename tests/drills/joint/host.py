"""`duolog` as a child, with a mutant in the host or in its worker if JOINT_MUTANT names one."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from duolog.bridge.serve import child
from duolog.cli import main
from tests.drills.joint.mutants import HOST, VARIABLE, WORKER

WORKER_MODULE = "tests.drills.joint.worker"


def begin() -> None:
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
