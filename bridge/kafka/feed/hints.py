"""Whoever tells which groups have changed: by reading along, or by asking now and then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from duolog.bridge.kafka.feed.records import GroupChange


@dataclass(frozen=True, slots=True)
class Hint:
    """A change, and where the feed told of it: None where it is only supposed."""

    change: GroupChange
    feed_offset: int | None = None


class Hints(Protocol):
    """A source of hints. One thread uses it."""

    def poll(self, timeout_seconds: float) -> Sequence[Hint]:
        """What has changed since, waiting for the first if there is nothing yet."""

    def feed_offset(self, group: str) -> int | None:
        """All commits of the group from here on will still be told; None: they may be missed."""

    def feed_end(self, group: str) -> int | None:
        """Everything that Kafka has taken until now lies before this; None without a feed."""

    def close(self) -> None: ...
