"""A child process that does not outlive this one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

_KEEPER = Path(__file__).with_name("keeper.py")
_MARGIN_SECONDS = 10.0  # for the keeper to end after its program was killed


class KeptProcess:
    """A running program and its keeper; see keeper.py. What the program says goes to a file."""

    def __init__(self, command: Sequence[str], log_file: Path, *, grace_seconds: float) -> None:
        self._grace_seconds = grace_seconds
        with log_file.open("ab") as log:
            self._keeper = subprocess.Popen(  # noqa: S603 - our own script
                [sys.executable, "-I", "-S", str(_KEEPER), str(os.getpid()), str(grace_seconds)]
                + [*command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for us; we then stop it in order
            )
        assert self._keeper.stdout is not None
        with self._keeper.stdout as told:
            line = told.readline()
        self.pid = int(line) if line else None
        """The program's own; None when it could not be started."""

    @property
    def exit_code(self) -> int | None:
        """None while it runs; as a shell tells it: 137 after kill -9."""
        return self._keeper.poll()

    def wait(self, timeout_seconds: float | None = None) -> int:
        """Until it has ended; raises TimeoutError."""
        try:
            return self._keeper.wait(timeout_seconds)
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(f"Process {self.pid} still runs.") from error

    def stop(self) -> int:
        """SIGTERM, and SIGKILL after the grace; waits for the end."""
        self._end_orders()
        return self.wait(self._grace_seconds + _MARGIN_SECONDS)

    def kill(self) -> int:
        """kill -9; waits for the end."""
        assert self._keeper.stdin is not None
        if not self._keeper.stdin.closed:
            with suppress(BrokenPipeError):
                self._keeper.stdin.write(b"k")
                self._keeper.stdin.flush()
        code = self.wait(_MARGIN_SECONDS)
        self._end_orders()
        return code

    def _end_orders(self) -> None:
        assert self._keeper.stdin is not None
        with suppress(BrokenPipeError):
            self._keeper.stdin.close()
