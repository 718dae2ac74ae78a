"""One broker for a folder, which Kafka alone does not see to.

A second Kafka looks at its lock only after it has opened the log of the controller, and the first
one then ends with a damaged log: tried with 4.1.1.
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from duolog.errors import LocalKafkaFailed

_PATIENCE_SECONDS = 5.0  # a broker whose parent was killed needs a moment to end
_LOOK_AGAIN_SECONDS = 0.05


@contextmanager
def held_folder(folder: Path) -> Iterator[int]:
    """A file descriptor whose inheritors hold the folder, even when this process is gone."""
    patience = time.monotonic() + _PATIENCE_SECONDS
    with (folder / "in-use.lock").open("w") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > patience:
                    raise LocalKafkaFailed(
                        f"Another broker uses {folder}: stop it, or name another folder."
                    ) from None
                time.sleep(_LOOK_AGAIN_SECONDS)
            else:
                break
        yield lock.fileno()
