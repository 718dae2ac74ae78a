"""Kafka assigns: members have proxies in the group there, which the Kafka worker keeps.

There are at most as many proxies as partitions: another one would be given nothing. Who has none
waits, holds nothing either, and gets the proxy's place of a member that goes.

Events of the worker come on threads of others; all else, and what they lead to, is on the loop.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, Final

from duolog.bridge.members.gathering import Gathering
from duolog.bridge.members.model import Member
from duolog.bridge.serve.asking import Asking
from duolog.errors import DuologError, IncompatibleGroup, TooManyMembers
from duolog.log.access import LogAccess

_AGAIN_SECONDS: Final = 0.2
_COMMIT_SECONDS: Final = 15.0
_EVENTS: Final = (
    "members_began",
    "member_assigned",
    "member_revoking",
    "member_lost",
    "member_refused",
    "members_counted",
    "mirrored",
)

Changed = Callable[[Gathering], object]


class KafkaSeating:
    """All groups of a host whose partitions Kafka assigns, from `open` to `close`."""

    def __init__(
        self,
        asking: Asking,
        log: LogAccess,
        changed: Changed,
        moved: Callable[[int], object],
        max_proxies: int,
    ) -> None:
        """`changed` is called for a group, `moved` with a topic of which more is in Kafka now."""
        self._max_proxies = max_proxies
        self._proxies = 0
        self.asking = asking
        self._log = log
        self._changed = changed
        self._moved = moved
        self._seats: dict[tuple[str, str], KafkaSeats] = {}
        self._upto: defaultdict[str, dict[int, int]] = defaultdict(dict)
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._ends = [asking.subscribe(event, self._hear_as(event)) for event in _EVENTS]

    def close(self) -> None:
        for end in self._ends:
            end()
        for task in self._tasks:
            task.cancel()

    def find(self, gathering: Gathering) -> KafkaSeats | None:
        """Seats for a group, where its topic is mirrored."""
        topic = gathering.topic
        if gathering.stays_native or self._log.mirror(topic.id, 0) is None:
            return None
        seats = KafkaSeats(self, gathering)
        self._seats[gathering.group, topic.name] = seats
        return seats

    @property
    def has_room(self) -> bool:
        """Whether another proxy may be there."""
        return self._proxies < self._max_proxies

    def check_room(self, group: str) -> None:
        """Raises TooManyMembers: a group that has no proxy gets none now."""
        if not self.has_room:
            raise TooManyMembers(
                f"Group '{group}' has to be joined in Kafka, and the host has {self._max_proxies} "
                "proxies there already (max_proxies in [members]). Join when others have left, or "
                "raise it: each proxy is a Kafka client with about five threads."
            )

    def add_proxy(self) -> None:
        self._proxies += 1

    def remove_proxies(self, count: int, then: Callable[[], None]) -> None:
        """Whoever had them goes first; then others may have waited for room."""
        was_full = not self.has_room
        self._proxies -= count
        then()
        if was_full:
            for seats in tuple(self._seats.values()):
                seats.fill()

    def upto(self, topic: str) -> Mapping[int, int]:
        return self._upto[topic]

    def position(self, gathering: Gathering, partition: int) -> int:
        """Where a group is; what its members are given begins no further than Kafka is."""
        found = self._log.group_position(gathering.group, gathering.topic.id, partition)
        return 0 if found is None else found.position

    def begins(self, gathering: Gathering, partition: int, position: int) -> bool:
        """Whether a group has only begun there."""
        try:
            found = self._log.group_position(gathering.group, gathering.topic.id, partition)
        except DuologError:  # the topic was dropped, or the log is being closed
            return False
        return found is not None and found.is_first and found.position == position

    def changed(self, gathering: Gathering) -> None:
        self._changed(gathering)

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something that waits for the worker."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _hear_as(self, event: str) -> Callable[[Mapping[str, Any]], object]:
        return lambda said: self._loop.call_soon_threadsafe(self._hear, event, said)

    def _hear(self, event: str, said: Mapping[str, Any]) -> None:
        for key in [key for key, seats in self._seats.items() if seats.gathering.is_over]:
            del self._seats[key]
        if event == "mirrored":
            self._upto[said["topic"]].update((int(at), int(to)) for at, to in said["upto"])
            for seats in self._seats.values():
                if seats.gathering.topic.name == said["topic"]:
                    self._moved(seats.gathering.topic.id)
            return
        if event == "members_began":
            for seats in tuple(self._seats.values()):
                seats.began()
            return
        found = self._seats.get((said["group"], said["topic"]))
        if found is None:
            return
        if event == "members_counted":
            found.others = int(said["others"])
        else:
            found.hear(event, said)


class KafkaSeats:
    """One group in one topic."""

    def __init__(self, seating: KafkaSeating, gathering: Gathering) -> None:
        self._seating = seating
        self.gathering = gathering
        self._joined: set[str] = set()  # those that have a proxy
        self._waiting: dict[str, None] = {}  # those that have none, in the order in which they came
        self._given: defaultdict[str, set[int]] = defaultdict(set)
        self._taken: dict[str, set[int]] = {}  # what Kafka waits for
        self._revocations: dict[str, int] = {}
        self.others: int | None = None
        self._refusals: dict[str, IncompatibleGroup] = {}

    def target(self) -> Mapping[int, str]:
        return {at: member for member, given in self._given.items() for at in given}

    def mirrored(self) -> Mapping[int, int]:
        return self._seating.upto(self.gathering.topic.name)

    def refusal(self, member_id: str) -> DuologError | None:
        return self._refusals.get(member_id)

    def check_room(self, member_id: str) -> None:
        """Where others of the group have proxies, it waits for one."""
        if not self._joined and member_id not in self._waiting:
            self._seating.check_room(self.gathering.group)

    def join(self, member: Member) -> None:
        self._refusals.pop(member.member_id, None)
        if member.member_id not in self._joined:
            self._waiting[member.member_id] = None
            self.fill()

    def leave(self, member_id: str) -> None:
        self._waiting.pop(member_id, None)
        self._given.pop(member_id, None)
        self._refusals.pop(member_id, None)
        if member_id in self._joined:
            self._joined.discard(member_id)
            self._seating.begin(self._tell("member_leave", member_id))
            self._seating.remove_proxies(1, self.fill)

    def fill(self) -> None:
        """Give proxies to those who have waited longest, while Kafka has partitions for them."""
        while (
            self._waiting
            and len(self._joined) < self.gathering.state.partitions
            and self._seating.has_room
        ):
            member_id = next(iter(self._waiting))
            del self._waiting[member_id]
            self._joined.add(member_id)
            self._seating.add_proxy()
            self._seating.begin(self._join(member_id))

    def _stay_native(self) -> None:
        """Kafka is not to assign this group: the host does."""
        self.gathering.stays_native = True
        self.gathering.seats = None
        self._waiting.clear()
        joined, self._joined = self._joined, set()
        self._seating.remove_proxies(len(joined), lambda: self._seating.changed(self.gathering))

    async def commit(self, member_id: str, partition: int, position: int) -> None:
        if position < self._seating.position(self.gathering, partition):
            return  # it would move the group back in Kafka
        asked = {**self._names(member_id), "partition": partition, "position": position}
        await self._seating.asking.asked("member_commit", asked, _COMMIT_SECONDS)

    def begin_at(self, member_id: str, positions: Mapping[int, int]) -> None:
        self._seating.begin(self._begin_at(member_id, dict(positions)))

    async def _begin_at(self, member_id: str, left: dict[int, int]) -> None:
        """Until Kafka has them all: "latest" is further than the mirror when it is looked up."""
        while member_id in self._joined:
            for partition, position in tuple(left.items()):
                if not self._begins(member_id, partition, position):
                    del left[partition]
                elif position <= self.mirrored().get(partition, 0):
                    with suppress(DuologError):  # tried again
                        await self.commit(member_id, partition, position)
                        del left[partition]
            if not left:
                return
            await asyncio.sleep(_AGAIN_SECONDS)

    def _begins(self, member_id: str, partition: int, position: int) -> bool:
        """Whether it is still the member's, and nobody has acknowledged anything there, nor is
        about to: Kafka learns of that first, and this must not come after it.
        """
        state = self.gathering.state
        if state.acking.get(partition):
            return False
        grant = state.grants.get(partition)
        has_it = grant is not None and grant.member_id == member_id and not grant.is_revoked
        return has_it and self._seating.begins(self.gathering, partition, position)

    def let_go(self, freed: Mapping[int, str]) -> None:
        for partition, member_id in freed.items():
            taken = self._taken.get(member_id)
            if taken is not None:
                taken.discard(partition)
        for member_id in [each for each, taken in self._taken.items() if not taken]:
            del self._taken[member_id]
            revocation = self._revocations.pop(member_id)
            self._seating.begin(self._tell("member_let_go", member_id, revocation=revocation))

    def hear(self, event: str, said: Mapping[str, Any]) -> None:
        """The worker tells of a proxy."""
        member_id, partitions = said["member"], set(said.get("partitions", ()))
        if member_id not in self._joined:
            return  # it has left; so will its proxy
        if event == "member_assigned":
            self._given[member_id] |= partitions
        elif event == "member_revoking":
            self._given[member_id] -= partitions
            grants = self.gathering.state.grants
            held = {at for at in partitions if at in grants and grants[at].member_id == member_id}
            self._taken[member_id] = held
            self._revocations[member_id] = said["revocation"]
            self.let_go({})
        elif event == "member_lost":
            self._given[member_id] -= partitions
            self.gathering.fence(member_id, partitions)
        else:
            self.leave(member_id)  # who asks again tries again
            self._refusals[member_id] = IncompatibleGroup(str(said["error"]))
            self.gathering.wake_waiting(member_id)
        self._seating.changed(self.gathering)

    def began(self) -> None:
        """The worker has been started anew: its proxies are gone, and what they had with them."""
        self._given.clear()
        self._taken.clear()
        self._revocations.clear()
        for member_id in tuple(self._joined):
            self.gathering.fence(member_id, set(range(self.gathering.state.partitions)))
            self._seating.begin(self._join(member_id))
        self._seating.changed(self.gathering)

    async def _join(self, member_id: str) -> None:
        while member_id in self._joined:
            try:
                asked = {**self._names(member_id), "group": self.gathering.group}
                answer = await self._seating.asking.asked("member_join", asked)
            except DuologError:  # it is being started, or Kafka is away
                await asyncio.sleep(_AGAIN_SECONDS)
                continue
            if not answer["joint"]:
                self._stay_native()
            elif member_id not in self._joined:
                await self._tell("member_leave", member_id)
            return

    async def _tell(self, what: str, member_id: str, **more: int) -> None:
        try:
            await self._seating.asking.asked(what, {**self._names(member_id), **more})
        except DuologError:
            return  # a worker that has ended has no proxies either

    def _names(self, member_id: str) -> dict[str, Any]:
        return {"topic": self.gathering.topic.name, "member": member_id}
