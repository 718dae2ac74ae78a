"""Runs one program for a parent process, and ends it when the parent is gone, even by kill -9.

    python -I -S keeper.py PARENT GRACE_SECONDS PROGRAM ARGUMENT ...

It writes the program's pid as a line to stdout. On stdin it takes orders of one byte: `k` kills the
program; the end of stdin stops it (SIGTERM, and after the grace SIGKILL), and so does the end of
the process PARENT, or SIGTERM. What the program says goes to stderr. Ends as the program does.

Only it sends signals to the program: it is the parent of it, so the pid cannot be another's by
then. On Linux the kernel kills the program if the keeper itself is killed; elsewhere it would live
on then.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
import time

_LOOK_SECONDS = 1.0  # for a parent whose end of stdin lives on in a fork of it
_PR_SET_PDEATHSIG = 1


def main(parent: int, grace_seconds: float, command: list[str]) -> int:
    """Run the program to its end; its exit code as a shell tells it."""
    stops: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stops.append(number))
    signal.signal(signal.SIGCHLD, lambda *_: None)
    woken, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker)  # so that a signal ends the wait below
    program = subprocess.Popen(  # noqa: S603 - what our parent asks for
        command,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr.fileno(),
        close_fds=False,  # what was made for it to inherit
        preexec_fn=_die_with_keeper,  # noqa: PLW1509 - there are no threads here
    )
    os.write(1, b"%d\n" % program.pid)
    deadline = None
    listening = [woken, 0]
    while program.poll() is None:
        for ready in select.select(listening, [], [], _LOOK_SECONDS)[0]:
            order = os.read(ready, 512)
            if ready == 0 and b"k" in order:
                program.kill()
            elif ready == 0 and not order:
                listening.remove(0)
        if deadline is None and (0 not in listening or stops or os.getppid() != parent):
            deadline = time.monotonic() + grace_seconds
            program.terminate()
        elif deadline is not None and time.monotonic() > deadline:
            program.kill()
    code = program.returncode
    return code if code >= 0 else 128 - code


def _die_with_keeper() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]))
