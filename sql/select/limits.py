"""What a query may use."""

from __future__ import annotations

from dataclasses import dataclass

from duolog.errors import InvalidSetting

_LEAST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """Memory is what DataFusion holds for sorting, joining and grouping; nothing goes to disk."""

    timeout_seconds: float | None = None
    memory_bytes: int = 256 << 20

    def __post_init__(self) -> None:
        seconds = self.timeout_seconds
        if seconds is not None and not 0 < seconds < float("inf"):
            raise InvalidSetting(f"timeout_seconds must be above 0; got {seconds!r}.")
        if self.memory_bytes < _LEAST_BYTES:
            raise InvalidSetting(
                f"memory_bytes must be at least {_LEAST_BYTES}; got {self.memory_bytes!r}."
            )
