"""What the host's endpoints hold to, beyond what a request says."""

from __future__ import annotations

from dataclasses import dataclass

from duolog.errors import InvalidSetting


@dataclass(frozen=True, slots=True)
class TopicRules:
    """How long a poll waits, and who may consume."""

    default_consume_timeout: float = 30.0  # seconds, where a request does not say
    max_consume_timeout: float = 300.0  # seconds, whatever a request says
    allow_user_role_consume: bool = False

    def __post_init__(self) -> None:
        for name in ("default_consume_timeout", "max_consume_timeout"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise InvalidSetting(f"{name} must be 0 or more; got {getattr(self, name)}.")

    def wait_seconds(self, asked: float | None) -> float:
        """How long a poll waits that asked for so much."""
        wanted = self.default_consume_timeout if asked is None else asked
        return min(wanted, self.max_consume_timeout)


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """How much of a request's body is taken in."""

    max_body_bytes: int = 8 << 20  # of one request
    max_bytes_at_once: int = 256 << 20  # of all requests that are under way
    read_within_seconds: float = 60.0

    def __post_init__(self) -> None:
        if self.max_body_bytes < 1:
            raise InvalidSetting(f"max_body_bytes must be 1 or more; got {self.max_body_bytes}.")
