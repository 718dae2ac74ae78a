"""A child process that does not outlive this one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, cast

_KEEPER = Path(__file__).with_name("keeper.py")
_MARGIN_SECONDS = 10.0  # for the keeper to end after its program was killed


class KeptProcess:
    """A running program and its keeper; see keeper.py. What the program says goes to a file.

    Both inherit a file descriptor, whose lock is then held for as long as one of them lives.
    """

    def __init__(
        self, command: Sequence[str], log_file: Path, *, grace_seconds: float, inherited: int
    ) -> None:
        self._grace_seconds = grace_seconds
        keeper = [sys.executable, "-I", "-S", str(_KEEPER), str(os.getpid()), str(grace_seconds)]
        with log_file.open("ab") as log:
            self._keeper = subprocess.Popen(  # noqa: S603 - our own script
                [*keeper, *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                pass_fds=(inherited,),
                start_new_session=True,  # Ctrl-C is for us; we then stop it in order
            )
        self._orders = cast("IO[bytes]", self._keeper.stdin)
        with cast("IO[bytes]", self._keeper.stdout) as told:
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
        with suppress(BrokenPipeError):
            self._orders.write(b"k")
            self._orders.flush()
        code = self.wait(_MARGIN_SECONDS)
        self._end_orders()
        return code

    def _end_orders(self) -> None:
        with suppress(BrokenPipeError):  # it has ended by itself
            self._orders.close()
