"""Where commits may not be watched: every group is supposed to have changed, once a second."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from duolog.bridge.kafka.feed.hints import Hint
from duolog.bridge.kafka.feed.records import MembersChanged

POLL_SECONDS: Final = 0.5  # a commit is to be seen within a second


class GroupPolling:
    """Hints without a feed: for all groups there are, each time it is asked."""

    def __init__(
        self, groups: Callable[[], Iterable[str]], *, every_seconds: float = POLL_SECONDS
    ) -> None:
        self._groups = groups
        self._every_seconds = every_seconds
        self._due_at = time.monotonic()
        self._closed = threading.Event()

    def poll(self, timeout_seconds: float) -> Sequence[Hint]:
        now = time.monotonic()
        if self._due_at > now:
            self._closed.wait(min(timeout_seconds, self._due_at - now))
        if self._closed.is_set() or time.monotonic() < self._due_at:
            return ()
        self._due_at = time.monotonic() + self._every_seconds
        return [Hint(MembersChanged(group)) for group in self._groups()]

    def feed_offset(self, group: str) -> int | None:  # noqa: ARG002  # there is no feed
        return None

    def feed_end(self, group: str) -> int | None:  # noqa: ARG002
        return None

    def close(self) -> None:
        self._closed.set()
