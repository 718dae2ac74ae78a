"""One group in one topic while it has members: its state, who waits, who assigns. On one loop."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from typing import Final, Protocol

from duolog.bridge.members import membership as change
from duolog.bridge.members.model import Member, Membership, Rules
from duolog.errors import AckBeyondHead, DuologError
from duolog.log.model import Topic, position_after

_MOST_STEPS: Final = 1000

Counted = Callable[[Mapping[str, Member], Mapping[str, Member]], object]
"""Told of a group's members before and now."""


class Seats(Protocol):
    """Somebody else who assigns the partitions. Called on the loop; none of it blocks."""

    def target(self) -> Mapping[int, str]:
        """Who is to have which partition."""

    def check_room(self, member_id: str) -> None:
        """Raises TooManyMembers where a member that comes would wait for ever."""

    def join(self, member: Member) -> None:
        """A member is to be given some; again is once."""

    def fill(self) -> None:
        """There may be more partitions than before."""

    def leave(self, member_id: str) -> None:
        """A member needs none any more."""

    async def commit(self, member_id: str, partition: int, position: int) -> None:
        """A member has acknowledged up to there; before it is stored."""

    def begin_at(self, member_id: str, positions: Mapping[int, int]) -> None:
        """Where the group begins in partitions of a member; nobody has acknowledged anything."""

    def let_go(self, freed: Mapping[int, str]) -> None:
        """These partitions were taken from these members."""

    def mirrored(self) -> Mapping[int, int]:
        """Up to where each partition's records are in Kafka."""

    def refusal(self, member_id: str) -> DuologError | None:
        """Why a member gets none."""

    @property
    def others(self) -> int | None:
        """How many members besides have partitions, as far as it is known."""


class Waits(Protocol):
    """A call that waits."""

    def wake(self) -> None: ...


class Gathering:
    """Applies what `membership.py` decides, and wakes those whom it concerns."""

    def __init__(
        self,
        group: str,
        topic: Topic,
        generation: int,
        rules: Rules,
        now: Callable[[], float],
        rebalanced: Callable[[float], object] = lambda _: None,
        counted: Counted = lambda _before, _now: None,
    ) -> None:
        """`rebalanced` is told how long each change took, until all members were told of it, and
        `counted` who came and went.
        """
        self._counted = counted
        self.group = group
        self.topic = topic
        self.state = Membership(topic.partitions, generation)
        self.seats: Seats | None = None
        self.stays_native = False  # Kafka's worker says that this group is none of its own
        self._owners: dict[int, str] = {}  # whoever has, or had, each partition
        self._changed_hands: set[int] = set()
        self.changes = 0  # rebalances: changes of who has what
        self.changed_at = now()
        self._unsettled_since: float | None = None
        self._rebalanced = rebalanced
        self._rules = rules
        self._now = now
        self._waiting: defaultdict[str, set[Waits]] = defaultdict(set)

    @property
    def where(self) -> str:
        return f"group '{self.group}' in topic '{self.topic.name}'"

    @property
    def is_over(self) -> bool:
        return not self.state.members and not self.state.grants and not self.state.acking

    @property
    def is_assigned_elsewhere(self) -> bool:
        """Whether Kafka assigns: not to simple callers, who are no members there."""
        return self.seats is not None and self.state.full_members > 0

    def upto(self) -> Mapping[int, int] | None:
        """Up to where members may read: what is not in Kafka yet, nobody there can be told of."""
        return self.seats.mirrored() if self.seats and self.is_assigned_elsewhere else None

    def put(self, state: Membership) -> None:
        """The next state, and all that follows from it."""
        before = self.state
        self.state = state
        for _ in range(_MOST_STEPS):
            state, gone = change.freed(self.state, self._now())
            target = self._target(state)
            self.state = change.towards(state, target, self._now() + self._rules.drain_seconds)
            if gone and self.seats is not None:
                self.seats.let_go(gone)
            if self.state is state and not gone:
                break
        if self.state.members.keys() != before.members.keys():
            self._counted(before.members, self.state.members)
        if self.state.grants != before.grants:
            self.changes += 1
            self.changed_at = self._now()
            self._note_owners()
        self._note_rebalance()
        self._wake(before)

    def fence(self, member_id: str, partitions: Collection[int]) -> None:
        """Others have these partitions already: nothing more is taken of this member."""
        self.put(change.revoked(self.state, member_id, partitions, self._now()))

    def expire(self) -> list[Member]:
        """Those whose session is over go."""
        gone = [self.state.members[each] for each in change.expired(self.state, self._now())]
        for member in gone:
            self.leave(member.member_id)
        return gone

    def leave(self, member_id: str) -> None:
        if member_id in self.state.members:
            if self.seats is not None:
                self.seats.leave(member_id)
            self.put(change.left(self.state, member_id))
            self._wake_all(member_id)

    def grow(self, topic: Topic) -> None:
        """The topic as it is now."""
        self.topic = topic
        if topic.partitions > self.state.partitions:
            self.put(change.grown(self.state, topic.partitions))
            if self.seats is not None:
                self.seats.fill()

    async def tell_kafka(self, member_id: str, partition: int, upto_offset: int) -> None:
        """An acknowledgement, before it is stored: after a crash in between, Kafka is ahead."""
        upto = self.upto()
        if upto is None or self.seats is None:
            return
        if upto_offset >= upto.get(partition, 0):
            raise AckBeyondHead(
                f"Offset {upto_offset} of topic '{self.topic.name}' partition {partition} is not "
                f"in Kafka: {upto.get(partition, 0)} comes next there. Acknowledge only what was "
                "read."
            )
        await self.seats.commit(member_id, partition, position_after(upto_offset))

    def begin_in_kafka(self, member_id: str, positions: Mapping[int, int]) -> None:
        """Where the group begins in partitions that a member was given, so that whoever has them
        next goes on there, also a consumer in Kafka.
        """
        if positions and self.upto() is not None and self.seats is not None:
            self.seats.begin_at(member_id, positions)

    def wait(self, member_id: str, waiter: Waits) -> Callable[[], None]:
        """Have a call woken when something changes for its member; what is returned ends that."""
        self._waiting[member_id].add(waiter)

        def end() -> None:
            waiting = self._waiting.get(member_id, set())
            waiting.discard(waiter)
            if not waiting:
                self._waiting.pop(member_id, None)

        return end

    def wake_waiting(self, member_id: str) -> None:
        """There is something to tell a member."""
        self._wake_all(member_id)

    def had_no_other(self, partition: int) -> bool:
        """Whether nobody but its member now is known to have had a partition."""
        return partition not in self._changed_hands

    def _note_owners(self) -> None:
        for partition, grant in self.state.grants.items():
            if self._owners.setdefault(partition, grant.member_id) != grant.member_id:
                self._owners[partition] = grant.member_id
                self._changed_hands.add(partition)

    def _note_rebalance(self) -> None:
        if not change.is_between(self.state):
            if self._unsettled_since is not None and self.state.full_members:
                self._rebalanced(self._now() - self._unsettled_since)
            self._unsettled_since = None
        elif self._unsettled_since is None:
            self._unsettled_since = self._now()

    def _target(self, state: Membership) -> Mapping[int, str]:
        if self.seats is not None and state.full_members:
            return self.seats.target()
        return change.balanced(state)

    def _wake(self, before: Membership) -> None:
        for member_id, member in self.state.members.items():
            was = before.members.get(member_id)
            if was is None or was.generation != member.generation:
                self._wake_all(member_id)

    def _wake_all(self, member_id: str) -> None:
        for waiter in self._waiting.get(member_id, ()):
            waiter.wake()
