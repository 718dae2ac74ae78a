"""A small world of one group in one topic, to play histories of members in.

Members keep what an answer has told them, ask with it, acknowledge with it, are slow, and vanish.
Beside it an oracle: who has processed what in which generation, and how far was acknowledged.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from duolog.bridge.members import admission
from duolog.bridge.members import membership as change
from duolog.bridge.members.model import Member, Membership
from duolog.errors import Conflict, StaleGeneration, UnknownMember

DRAIN = 2.0
SESSION = 10.0


@dataclass
class Client:
    """What a consumer knows."""

    member_id: str
    generation: int | None = None
    in_hand: dict[int, int] = field(default_factory=dict)  # by partition, the next offset to read


class World:
    def __init__(self, partitions: int) -> None:
        self.group = Membership(partitions, generation=100)
        self.now = 0.0
        self.clients: list[Client] = []
        self.position = dict.fromkeys(range(partitions), 0)  # of the group, as stored
        self.storing: list[tuple[int, int]] = []
        self.processed: dict[tuple[int, int], set[str]] = {}
        self.stale_since: dict[str, float] = {}
        self.made = 0

    # -- what a coordinator does

    def put(self, group: Membership) -> None:
        self.group = group
        while True:
            freed, gone = change.freed(self.group, self.now)
            target = change.balanced(freed)
            self.group = change.towards(freed, target, self.now + DRAIN)
            if self.group is freed and not gone:
                break
        self.check()

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        for member_id in change.expired(self.group, self.now):
            self.group = change.left(self.group, member_id)
        self.put(self.group)

    # -- what clients do

    def join(self) -> None:
        self.made += 1
        client = Client(f"m{self.made}")
        self.clients.append(client)
        self.ask_to_be_told(client)

    def ask_to_be_told(self, client: Client) -> None:
        knew = self.group.members.get(client.member_id)
        member = Member(client.member_id, "somebody", SESSION, self.now)
        self.put(change.joined(self.group, member))
        self.put(change.told(self.group, client.member_id))
        told = self.group.members[client.member_id]
        kept = {
            at
            for at in self.group.owned_by(client.member_id)
            if knew is not None and self.group.grants[at].since <= knew.told
        }
        client.generation = told.generation
        client.in_hand = {
            at: client.in_hand[at] if at in kept and at in client.in_hand else self.position[at]
            for at in self.group.owned_by(client.member_id)
        }

    def poll(self, client: Client) -> None:
        """Read a record of each partition, and process it."""
        try:
            member = admission.known(self.group, client.member_id, "g")
            admission.check_generation(member, client.generation or 0, "g")
        except (UnknownMember, StaleGeneration) as error:
            if isinstance(error, UnknownMember):
                client.in_hand = {}
            self.ask_to_be_told(client)
            return
        self.put(change.heard(self.group, client.member_id, self.now))
        for partition in self.group.owned_by(client.member_id):
            at = client.in_hand.setdefault(partition, self.position[partition])
            assert at >= self.position[partition], "what was acknowledged is read again"
            where = (partition, member.generation)
            who = self.processed.setdefault(where, set())
            who.add(client.member_id)
            assert len(who) == 1, f"{who} in partition {partition}, generation {where[1]}"
            client.in_hand[partition] = at + 1

    def begin_ack(self, client: Client, partition: int) -> None:
        """Taken, and being stored."""
        if partition not in client.in_hand:
            return
        try:
            member = admission.known(self.group, client.member_id, "g")
            admission.check_ack(
                self.group, member, client.generation or 0, partition, self.now, "g"
            )
        except Conflict:
            known = self.group.members.get(client.member_id)
            in_time = self.now < self.stale_since.get(client.member_id, self.now) + DRAIN
            is_current = known is not None and known.told == client.generation
            assert not (is_current and in_time), "an acknowledgement in time is refused"
            return
        grant = self.group.grants[partition]
        assert grant.member_id == client.member_id, "somebody else's partition is acknowledged"
        self.storing.append((partition, client.in_hand[partition]))
        self.put(change.acking(self.group, partition, by=1))

    def store(self, which: int) -> None:
        if self.storing:
            partition, position = self.storing.pop(which % len(self.storing))
            self.position[partition] = max(self.position[partition], position)
            self.put(change.acking(self.group, partition, by=-1))

    def leave(self, client: Client) -> None:
        self.clients.remove(client)
        self.put(change.left(self.group, client.member_id))

    def vanish(self, client: Client) -> None:
        self.clients.remove(client)

    # -- what holds at every moment

    def check(self) -> None:
        group = self.group
        owned = [at for each in group.members for at in group.owned_by(each)]
        assert len(owned) == len(set(owned)), "two members have one partition"
        if group.members:
            free = set(range(group.partitions)) - set(group.grants)
            assert not free, f"nobody has partitions {free}"
        for member in group.members.values():
            if member.is_stale:
                self.stale_since.setdefault(member.member_id, self.now)
            else:
                self.stale_since.pop(member.member_id, None)
        assert all(m.generation <= group.generation for m in group.members.values())


def play(seed: int, actions: int = 80) -> World:
    """A random history, after which everybody has a fair share."""
    random = Random(seed)
    world = World(random.randrange(1, 8))
    for _ in range(actions):
        client = random.choice(world.clients) if world.clients else None
        kind = random.randrange(100)
        if client is None or (kind < 8 and len(world.clients) < 5):
            world.join()
        elif kind < 50:
            world.poll(client)
        elif kind < 70:
            world.begin_ack(client, random.randrange(world.group.partitions))
        elif kind < 82:
            world.store(random.randrange(9))
        elif kind < 86:
            world.leave(client)
        elif kind < 90:
            world.vanish(client)
        elif kind < 93:
            world.put(change.grown(world.group, world.group.partitions + 1))
            world.position.setdefault(world.group.partitions - 1, 0)
        else:
            world.pass_time(random.choice([0.1, 1.0, 2.5, 11.0]))
    while world.storing:
        world.store(0)
    for _ in range(3):
        world.pass_time(DRAIN + 0.1)
        for client in world.clients:
            world.poll(client)
    return world
