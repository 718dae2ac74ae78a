"""What the host's endpoints hold to, beyond what a request says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from duolog.errors import InvalidSetting
from duolog.log.record_check import MAX_HEADERS
from duolog.server.json_pieces import MOST_VALUES_IN_A_PIECE, SMALL_BYTES
from duolog.server.request_memory import MEMORY_BYTES, MOST_REQUESTS

READING_BYTES: Final = 48 << 20
"""Of memory, to read and to show records for requests; one request may take all of it."""


@dataclass(frozen=True, slots=True)
class TopicRules:
    """How long a poll waits, who may consume, and how large topics are made."""

    default_consume_timeout: float = 30.0  # seconds, where a request does not say
    max_consume_timeout: float = 300.0  # seconds, whatever a request says
    allow_user_role_consume: bool = False
    max_partitions: int = 4096  # what each group's first poll works through

    def __post_init__(self) -> None:
        for name in ("default_consume_timeout", "max_consume_timeout"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise InvalidSetting(f"{name} must be 0 or more; got {getattr(self, name)}.")
        if self.max_partitions < 1:
            raise InvalidSetting(f"max_partitions must be 1 or more; got {self.max_partitions}.")

    def wait_seconds(self, asked: float | None) -> float:
        """How long a poll waits that asked for so much."""
        wanted = self.default_consume_timeout if asked is None else asked
        return min(wanted, self.max_consume_timeout)


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """How much of a request's body is taken in, and parsed."""

    max_body_bytes: int = 8 << 20  # of one request
    max_bytes_at_once: int = 48 << 20  # of all large requests; one token may have half of it
    large_request_memory: int = MEMORY_BYTES  # to work on all of them, by an estimate
    answer_memory: int = 48 << 20  # of answers that clients have not taken yet
    read_within_seconds: float = 60.0
    max_record_headers: int = MAX_HEADERS
    max_request_headers: int = 100_000  # of all its messages
    max_record_values: int = MOST_VALUES_IN_A_PIECE  # in the JSON of one message or row
    max_request_values: int = 400_000
    max_large_requests: int = MOST_REQUESTS  # that are worked on, or wait for it

    def __post_init__(self) -> None:
        for name, least, most in (
            ("max_body_bytes", 1, None),
            ("max_record_headers", 0, MAX_HEADERS),
            ("max_request_headers", 0, None),
            ("max_record_values", SMALL_BYTES, None),  # small bodies are not counted
            ("max_request_values", SMALL_BYTES, None),
            ("max_large_requests", 1, None),
            ("max_bytes_at_once", 1, None),
            ("large_request_memory", 1 << 20, None),
            ("answer_memory", 1 << 20, None),
        ):
            value = getattr(self, name)
            if value < least or (most is not None and value > most):
                bounds = f"{least} or more" if most is None else f"{least} to {most}"
                raise InvalidSetting(f"{name} must be {bounds}; got {value}.")
