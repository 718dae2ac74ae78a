"""The members of all groups of a host: who joins, asks, acknowledges and leaves. On one event loop.

Only what is shown (`shown`, `has_members`) may be called from other threads.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial

from duolog.bridge.members import admission
from duolog.bridge.members import membership as change
from duolog.bridge.members.gathering import Gathering, Seats
from duolog.bridge.members.model import Member, Rules
from duolog.bridge.members.roll import GroupKey, Roll
from duolog.clock import Clock
from duolog.errors import GroupHasMembers, PartitionHeld
from duolog.log.model import Topic

FindSeats = Callable[[Gathering], Seats | None]


@dataclass(frozen=True, slots=True)
class Call:
    """What a consumer says of itself when it asks for records."""

    holder: str
    member_id: str | None = None
    generation: int | None = None
    session_seconds: float | None = None
    token: str | None = None  # by which it came in


@dataclass(frozen=True, slots=True)
class Place:
    """What a member has. `kept`: of it, what it has had all the time since it was told last.

    `resumed`: what nobody else has had since, as after an end of its session or of the host.
    """

    member_id: str
    generation: int
    assigned: frozenset[int]
    kept: frozenset[int]
    resumed: frozenset[int] = frozenset()


class Seat:
    """One call of a member, while it is being answered."""

    def __init__(self, gathering: Gathering, member_id: str, generation: int | None) -> None:
        self.gathering = gathering
        self.member_id = member_id
        self._generation = generation
        member = gathering.state.members[member_id]
        self.is_provisional = member.is_provisional
        self._knew = member.told
        if generation is None:
            gathering.put(change.told(gathering.state, member_id))

    def place(self) -> Place:
        """What it has now. Raises StaleGeneration, unless it has asked to be told."""
        gathering = self.gathering
        state = gathering.state
        member = admission.known(state, self.member_id, gathering.where)
        if self._generation is None:
            if gathering.seats is not None:
                refusal = gathering.seats.refusal(self.member_id)
                if refusal is not None:
                    raise refusal
            if member.is_stale:
                gathering.put(change.told(state, self.member_id))
        else:
            admission.check_generation(member, self._generation, gathering.where)
        state = gathering.state
        assigned = state.owned_by(self.member_id)
        kept = frozenset(at for at in assigned if state.grants[at].since <= self._knew)
        resumed = frozenset(at for at in assigned - kept if gathering.had_no_other(at))
        return Place(self.member_id, member.generation, assigned, kept, resumed)

    def is_still(self, place: Place) -> bool:
        """Whether nothing has changed since. Raises as `place` does."""
        return self.place().generation == place.generation


class Coordinator:
    """Made before the loop runs; `open` and `close` on it."""

    def __init__(
        self,
        clock: Clock,
        id_prefix: str,
        rules: Rules | None = None,
        find_seats: FindSeats = lambda _: None,
        rebalanced: Callable[[float], object] = lambda _: None,
    ) -> None:
        self.rules = rules or Rules()
        self._clock = clock
        self._id_prefix = id_prefix
        self._find_seats = find_seats
        self._rebalanced = rebalanced
        self._gatherings: dict[GroupKey, Gathering] = {}
        self._roll = Roll(self.rules)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timers: dict[GroupKey, asyncio.TimerHandle] = {}
        self._last_generation = 0
        self.rebalances = 0  # of groups that are over
        self.expired = 0

    def open(self) -> None:
        self._loop = asyncio.get_running_loop()

    def close(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._loop = None

    # -- calls of consumers

    @contextmanager
    def seat(self, group: str, topic: Topic, call: Call) -> Iterator[Seat]:
        """A consumer asks for records of all partitions that are its own."""
        gathering = self._gathering(group, topic)
        try:
            member_id = self._admitted(gathering, call)
        finally:
            self._look_after(gathering)
        gathering.put(change.heard(gathering.state, member_id, self._now(), answering=1))
        try:
            seat = Seat(gathering, member_id, call.generation)
            self._look_after(gathering)
            yield seat
        finally:
            gathering.put(change.heard(gathering.state, member_id, self._now(), answering=-1))
            self._look_after(gathering)

    def beat(self, group: str, topic: Topic, member_id: str, generation: int) -> None:
        """A member says that it is there. Raises what it has to be told."""
        gathering, member = self._found(group, topic, member_id)
        gathering.put(change.heard(gathering.state, member_id, self._now()))
        self._look_after(gathering)
        admission.check_generation(member, generation, gathering.where)

    @asynccontextmanager
    async def acking(
        self, group: str, topic: Topic, member_id: str, generation: int, partition: int
    ) -> AsyncIterator[Gathering]:
        """While a member's acknowledgement is being stored, nobody else gets the partition."""
        gathering, member = self._found(group, topic, member_id)
        state = gathering.state
        admission.check_ack(state, member, generation, partition, self._now(), gathering.where)
        gathering.put(change.acking(change.heard(state, member_id, self._now()), partition, by=1))
        try:
            yield gathering
        finally:
            gathering.put(change.acking(gathering.state, partition, by=-1))
            self._look_after(gathering)

    def leave(self, group: str, topic: Topic, member_id: str) -> bool:
        """A member goes; False when it had gone already."""
        gathering = self._gatherings.get((group, topic.id))
        if gathering is None or member_id not in gathering.state.members:
            return False
        gathering.leave(member_id)
        self._look_after(gathering)
        return True

    def check_free(self, group: str, topic: Topic, partitions: range) -> None:
        """Raises PartitionHeld where a member has one of them."""
        gathering = self._gatherings.get((group, topic.id))
        if gathering is not None:
            admission.check_free(gathering.state, partitions, gathering.where)

    # -- what others ask

    def check_no_members(self, group: str, topic_id: int | None, what: str) -> None:
        """Raises GroupHasMembers. From any thread."""
        for gathering in tuple(self._gatherings.values()):
            if gathering.group == group and topic_id in {None, gathering.topic.id}:
                full = [m for m in gathering.state.members.values() if not m.is_provisional]
                if full:
                    raise GroupHasMembers(
                        f"G{gathering.where[1:]} has {len(full)} members here, one of them "
                        f"'{full[0].member_id}' ({full[0].holder}): it cannot be {what} now. Stop "
                        "its consumers, or wait until their sessions end."
                    )

    def seconds_since(self, then: float) -> float:
        """From any thread."""
        return max(0.0, self._now() - then)

    def shown(self) -> tuple[Gathering, ...]:
        """All groups with members. From any thread; their states are values."""
        return tuple(self._gatherings.values())

    # -- for who assigns

    def changed(self, gathering: Gathering) -> None:
        """The seats of a group have changed."""
        gathering.put(gathering.state)
        self._look_after(gathering)

    # -- inside

    def _now(self) -> float:
        return self._clock.monotonic()

    def _found(self, group: str, topic: Topic, member_id: str) -> tuple[Gathering, Member]:
        gathering = self._gatherings.get((group, topic.id))
        if gathering is None:  # nobody is there; it says so
            gathering = Gathering(group, topic, 0, self.rules, self._now)
        return gathering, admission.known(gathering.state, member_id, gathering.where)

    def _gathering(self, group: str, topic: Topic) -> Gathering:
        key = (group, topic.id)
        found = self._gatherings.get(key)
        if found is None:
            # Later than all that an earlier gathering, or an earlier host, has given.
            generation = max(self._last_generation, self._clock.now_ms() // 1000)
            counted = partial(self._roll.changed, key)
            found = Gathering(
                group, topic, generation, self.rules, self._now, self._rebalanced, counted
            )
            found.seats = self._find_seats(found)
            self._gatherings[key] = found
            return found
        if found.topic != topic:
            found.grow(topic)
        if found.seats is None and not found.stays_native:
            found.seats = self._find_seats(found)
            if found.seats is not None:  # the topic is mirrored since: all begin anew, with Kafka
                for member_id in tuple(found.state.members):
                    found.leave(member_id)
                self._gatherings[key] = found
        return found

    def _admitted(self, gathering: Gathering, call: Call) -> str:
        """The member that calls, with its id."""
        if call.member_id is not None and call.generation is not None:
            member = admission.known(gathering.state, call.member_id, gathering.where)
            if member.is_provisional:
                self._seat(gathering, member)
            return member.member_id
        is_simple = call.member_id is None and call.session_seconds is None
        simple = [each for each in gathering.state.members.values() if each.is_provisional]
        for other in simple:
            if not other.answering:
                if other.member_id != call.member_id:
                    gathering.leave(other.member_id)
            elif is_simple:
                raise PartitionHeld(
                    f"A consumer of {gathering.where} is being answered now: {other.holder}. Poll "
                    "again when it is through; or carry the member_id that an answer gives, to "
                    "share the partitions.",
                    holder=other.holder,
                )
        if call.member_id not in gathering.state.members:
            key = (gathering.group, gathering.topic.id)
            self._roll.check(key, gathering.state, call.token, gathering.where)
        member = Member(
            call.member_id or f"{self._id_prefix}-{secrets.token_hex(8)}",
            call.holder,
            call.session_seconds or self._session_before(gathering, call.member_id),
            self._now(),
            call.token,
            # Where Kafka assigns to members already, nobody reads beside them.
            is_provisional=is_simple and not gathering.is_assigned_elsewhere,
        )
        if member.is_provisional:
            gathering.put(change.joined(gathering.state, member))
        else:
            self._seat(gathering, member)
        return member.member_id

    def _session_before(self, gathering: Gathering, member_id: str | None) -> float:
        known = gathering.state.members.get(member_id or "")
        return self.rules.default_session_seconds if known is None else known.session_seconds

    def _seat(self, gathering: Gathering, member: Member) -> None:
        """Make it a full member, now or from before."""
        if gathering.seats is not None:
            gathering.seats.check_room(member.member_id)
        state = change.joined(gathering.state, member)
        state = change.made_full(state, member.member_id)
        if gathering.seats is not None:
            gathering.seats.join(state.members[member.member_id])
        gathering.put(state)

    def _look_after(self, gathering: Gathering) -> None:
        """Forget it when it is over, and look again when the clock changes something."""
        self._last_generation = max(self._last_generation, gathering.state.generation)
        key = (gathering.group, gathering.topic.id)
        if self._gatherings.get(key) is not gathering:
            return
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
        if gathering.is_over:
            del self._gatherings[key]
            self.rebalances += gathering.changes
            return
        at = change.next_event_at(gathering.state)
        if at is not None and self._loop is not None:
            delay = max(0.0, at - self._now())
            self._timers[key] = self._loop.call_later(delay, self._tick, gathering)

    def _tick(self, gathering: Gathering) -> None:
        gone = gathering.expire()
        self.expired += sum(not member.is_provisional for member in gone)
        gathering.put(gathering.state)
        self._look_after(gathering)
