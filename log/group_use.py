"""When groups were used last; groups that nobody has used for long go.

A group is used when it is acknowledged or moved, which its positions tell, and when somebody reads
for it. The latter is held in memory, and stored now and then: not for each poll. An older Duolog
stored none of it, so no group is idle before uses have been stored for as long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from duolog.clock import Clock
from duolog.log.commits import Committer, Job
from duolog.log.positions import last_used_ms
from duolog.log.rounds import Round
from duolog.log.state import State

_AT_ONCE = 256  # groups in one write
_STORED_SINCE = b"group_uses_since"


@dataclass(frozen=True, slots=True)
class IdleGroup:
    """One that nobody has used for long. `is_mirrored`: Kafka may have offsets of it."""

    group: str
    is_mirrored: bool


class GroupUses:
    """Of an opened log. Noted from any thread; stored and expired from one at a time."""

    def __init__(self, state: State, committer: Committer, clock: Clock) -> None:
        self._state = state
        self._committer = committer
        self._clock = clock
        self._used_at_ms: dict[str, int] = {}  # since they were stored

    def note(self, group: str) -> None:
        """Somebody reads for a group that has a position."""
        self._used_at_ms[group] = self._clock.now_ms()

    def store(self, at_least_every_ms: float) -> None:
        """Make what was noted durable, where what is stored is older than that."""
        now_ms, since_ms = self._clock.now_ms(), self._stored_since_ms
        if since_ms is None or since_ms > now_ms:  # the clock was ahead
            self._committer.run(_StoreSince(now_ms))
        noted = self._used_at_ms.copy()
        late = {}
        for group, used_ms in noted.items():
            held = self._state.positions.of_group(group)
            if held and last_used_ms(each for _, each in held) + at_least_every_ms <= used_ms:
                late[group] = used_ms
        names = list(late)
        for first in range(0, len(names), _AT_ONCE):
            some = names[first : first + _AT_ONCE]
            self._committer.run(_StoreUses({group: late[group] for group in some}))
        known = set(self._state.positions.groups())
        for group in noted.keys() - known:
            self._used_at_ms.pop(group, None)

    def idle(self, before_ms: float, group: str | None = None) -> tuple[IdleGroup, ...]:
        """Groups that were not used since then, of all or of one."""
        since_ms = self._stored_since_ms
        if since_ms is None or before_ms < since_ms:
            return ()
        found = []
        for name in self._state.positions.groups() if group is None else (group,):
            held = self._state.positions.of_group(name)
            is_idle = held and last_used_ms(each for _, each in held) < before_ms
            if is_idle and self._used_at_ms.get(name, 0) < before_ms:
                is_mirrored = any(
                    where in self._state.mirrors or each.kafka is not None
                    for (_, where), each in held
                )
                found.append(IdleGroup(name, is_mirrored))
        return tuple(found)

    @property
    def _stored_since_ms(self) -> int | None:
        stored = self._state.store.get("meta", _STORED_SINCE)
        return None if stored is None else int(stored)

    def expire(self, groups: Sequence[str], before_ms: float) -> int:
        """Forget groups that were not used since then, and of which Kafka has nothing."""
        expired = 0
        for first in range(0, len(groups), _AT_ONCE):
            job = _ExpireGroups(groups[first : first + _AT_ONCE], before_ms, self._used_at_ms)
            self._committer.run(job)
            expired += job.expired
        return expired


class _StoreSince(Job):
    def __init__(self, at_ms: int) -> None:
        super().__init__()
        self._at_ms = at_ms

    def prepare(self, round_: Round) -> None:
        round_.batch.put("meta", _STORED_SINCE, b"%d" % self._at_ms)


class _StoreUses(Job):
    """Versions stay: nothing has moved."""

    def __init__(self, used_at_ms: Mapping[str, int]) -> None:
        super().__init__()
        self._used_at_ms = used_at_ms

    def prepare(self, round_: Round) -> None:
        for group, used_ms in self._used_at_ms.items():
            held = round_.positions_of(group)
            if held:
                key = min(held)
                round_.set_position(key, replace(held[key], used_at_ms=used_ms))


class _ExpireGroups(Job):
    """Looks again: a group may have been used since it was found idle."""

    def __init__(self, groups: Sequence[str], before_ms: float, noted: Mapping[str, int]) -> None:
        super().__init__()
        self._groups = groups
        self._before_ms = before_ms
        self._noted = noted
        self.expired = 0

    def prepare(self, round_: Round) -> None:
        self.expired = 0
        for group in self._groups:
            held = round_.positions_of(group)
            if not held or last_used_ms(held.values()) >= self._before_ms:
                continue
            if self._noted.get(group, 0) >= self._before_ms:
                continue
            if any(where in round_.state.mirrors for _, where in held):
                continue
            for key in held:
                round_.set_position(key, None)
            self.expired += 1
