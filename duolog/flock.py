"""One process at a time: a file's lock, which ends with the process that holds it."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_LOOK_AGAIN_SECONDS = 0.05


@contextmanager
def locked(file: Path, patience_seconds: float) -> Iterator[IO[str]]:
    """Hold the lock of a file, made if it is not there; children that inherit it hold it too.

    Raises BlockingIOError when another has it for longer than the patience.
    """
    deadline = time.monotonic() + patience_seconds
    with file.open("w") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_LOOK_AGAIN_SECONDS)
            else:
                break
        yield lock
