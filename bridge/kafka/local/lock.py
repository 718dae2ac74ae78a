"""One broker for a folder, which Kafka alone does not see to.

A second Kafka looks at its lock only after it has opened the log of the controller, and the first
one then ends with a damaged log: tried with 4.1.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from duolog.errors import LocalKafkaFailed
from duolog.flock import locked

_PATIENCE_SECONDS = 5.0  # a broker whose parent was killed needs a moment to end


@contextmanager
def held_folder(folder: Path) -> Iterator[int]:
    """A file descriptor whose inheritors hold the folder, even when this process is gone."""
    with ExitStack() as held:
        try:
            lock = held.enter_context(locked(folder / "in-use.lock", _PATIENCE_SECONDS))
        except BlockingIOError:
            raise LocalKafkaFailed(
                f"Another broker uses {folder}: stop it, or name another folder."
            ) from None
        yield lock.fileno()
