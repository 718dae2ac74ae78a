"""How a log's host is asked: times, budgets, trust."""

from __future__ import annotations

from dataclasses import dataclass

from duolog.errors import InvalidSetting


@dataclass(frozen=True, slots=True)
class RemoteOptions:
    """Of a log that is reached through its host. Picklable: it goes along to tasks."""

    deadline_seconds: float = 60.0  # so long is asked again while nobody answers
    connect_timeout_seconds: float = 5.0  # to shake hands, too
    answer_timeout_seconds: float = 30.0  # without a sign of life
    cache_bytes: int = 32 << 20  # decoded batches of which a read took a part
    inline_bytes: int = 8 << 20  # parts in memory that go along with an append; more are uploaded
    allow_plain_http: bool = False  # beyond this machine, where anybody may read the token
    ca_path: str | None = None  # PEM file of who vouches for the host; the usual authorities

    def __post_init__(self) -> None:
        for name in ("deadline_seconds", "connect_timeout_seconds", "answer_timeout_seconds"):
            if not 0 < getattr(self, name) < float("inf"):
                raise InvalidSetting(f"{name} must be above 0; got {getattr(self, name)}.")
        for name in ("cache_bytes", "inline_bytes"):
            if getattr(self, name) < 0:
                raise InvalidSetting(f"{name} must not be negative; got {getattr(self, name)}.")
