"""What the queries of strangers may use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from duolog.errors import InvalidSetting, QueryTooLarge

_BASE_BYTES: Final = 256 << 20  # what Python, Arrow and DataFusion take, with nothing to do
_LEAST_MEMORY_BYTES: Final = 384 << 20


@dataclass(frozen=True, slots=True)
class SqlRules:
    """For SELECT over HTTP. Times are of the clock on the wall."""

    max_processes: int = 2  # queries at the same time
    timeout_seconds: float = 30.0  # of one query
    memory_bytes: int = 1 << 30  # of one process, all in all
    max_rows: int = 100_000  # of one answer
    max_answer_bytes: int = 32 << 20  # of one answer, as it is sent
    idle_seconds: float = 60.0  # a process waits so long for the next query

    def __post_init__(self) -> None:
        for name in ("max_processes", "max_rows", "max_answer_bytes"):
            if getattr(self, name) < 1:
                raise InvalidSetting(f"{name} must be 1 or more; got {getattr(self, name)}.")
        if not 0 < self.timeout_seconds < float("inf"):
            raise InvalidSetting(f"timeout_seconds must be above 0; got {self.timeout_seconds}.")
        if not 0 <= self.idle_seconds < float("inf"):
            raise InvalidSetting(f"idle_seconds must be 0 or more; got {self.idle_seconds}.")
        if self.memory_bytes < _LEAST_MEMORY_BYTES:
            raise InvalidSetting(
                f"memory_bytes must be at least {_LEAST_MEMORY_BYTES >> 20} MiB: most of that a "
                f"process takes before its first query; got {self.memory_bytes}."
            )

    @property
    def pool_bytes(self) -> int:
        """What DataFusion may hold for sorting, joining and grouping: this it can refuse by
        itself, and the process lives. What it does not count is as much again, or more, and ends
        the process.
        """
        return (self.memory_bytes - _BASE_BYTES) // 3


def too_large() -> QueryTooLarge:
    """To be raised where nobody counted, and there was no more."""
    return QueryTooLarge(
        "The query needs more memory than it may have: select fewer rows or columns, build no long "
        "texts or lists, or add a LIMIT."
    )
