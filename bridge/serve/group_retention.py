"""Groups that nobody has used for long go, as they do in Kafka.

Used is a group that is acknowledged, moved or read for, on either side, or that has members. Where
its topics are mirrored, the Kafka worker deletes it on both sides, and not while it has members in
Kafka. Without a worker such a group stays: Kafka would give back what is removed here.

A clock may be ahead for a moment, by days. So a group goes when it was idle at two looks, an hour
apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Protocol

from duolog.bridge.journal import Journal
from duolog.bridge.metrics.names import GROUPS_EXPIRED
from duolog.bridge.metrics.tally import Tally
from duolog.clock import Clock
from duolog.errors import DuologError, GroupHasMembers, UnknownGroup
from duolog.log import EmbeddedLog

_LOOK_EVERY_MS: Final = 3600 * 1000
_STORED_PARTS: Final = 8  # uses are stored as often in the time that a group is kept
_MOST_IN_KAFKA: Final = 1000  # at one look: each is asked for by itself


class BothSides(Protocol):
    """Forgets a group in Kafka and in the log."""

    def expire_group(self, group: str, before_ms: float) -> bool: ...


class GroupRetention:
    """Of one host. Used from one thread."""

    def __init__(
        self,
        log: EmbeddedLog,
        clock: Clock,
        tally: Tally,
        journal: Journal,
        *,
        keep_seconds: float,
        with_members: Callable[[], Iterable[str]],
        both_sides: Callable[[], BothSides | None],
    ) -> None:
        """`both_sides` is there while a worker mirrors the log. `keep_seconds` 0: for ever."""
        self._log = log
        self._clock = clock
        self._tally = tally
        self._journal = journal
        self._keep_ms = keep_seconds * 1000
        self._with_members = with_members
        self._both_sides = both_sides
        self._looked_at_ms: int | None = None
        self._idle_since_ms: dict[str, int] = {}  # when each idle group was first found so

    def run_when_due(self, cancelled: Callable[[], bool]) -> None:
        now_ms, looked = self._clock.now_ms(), self._looked_at_ms
        if not self._keep_ms or (
            looked is not None and looked <= now_ms < looked + self._interval_ms
        ):
            return
        self._looked_at_ms = now_ms
        self.run(now_ms, cancelled)

    @property
    def _interval_ms(self) -> float:
        return min(_LOOK_EVERY_MS, self._keep_ms / 2)

    def run(self, now_ms: int, cancelled: Callable[[], bool]) -> None:
        """One look."""
        for group in set(self._with_members()):
            self._log.note_group_use(group)
        self._log.store_group_uses(self._keep_ms / _STORED_PARTS)
        before_ms = now_ms - self._keep_ms
        idle = {each.group: each.is_mirrored for each in self._log.idle_groups(before_ms)}
        seen = self._idle_since_ms
        self._idle_since_ms = {
            group: seen[group] if seen.get(group, now_ms + 1) <= now_ms else now_ms
            for group in idle
        }
        due = [
            group
            for group, since_ms in self._idle_since_ms.items()
            if since_ms + self._interval_ms <= now_ms
        ]
        here = [group for group in due if not idle[group]]
        expired = self._log.expire_groups(here, before_ms) if here else 0
        there = [group for group in due if idle[group]][:_MOST_IN_KAFKA]
        expired += self._expire_in_kafka(there, before_ms, cancelled)
        if expired:
            self._tally.add(GROUPS_EXPIRED, by=expired)
            self._journal.note("groups.expired", groups=expired)

    def _expire_in_kafka(
        self, groups: list[str], before_ms: float, cancelled: Callable[[], bool]
    ) -> int:
        both_sides = self._both_sides()
        if both_sides is None:
            return 0
        expired = 0
        for group in groups:
            if cancelled():
                break
            try:
                expired += both_sides.expire_group(group, before_ms)
            except GroupHasMembers:  # somebody reads for it there
                self._log.note_group_use(group)
            except UnknownGroup:  # deleted meanwhile
                continue
            except DuologError as error:  # Kafka is away: the next look tries again
                self._journal.warn("groups.not_expired", group=group, error=str(error))
                break
        return expired
