"""A small world of one group and partition, to play histories of group positions in.

The log, the mirror, Kafka's coordinator, consumers of both sides, and a settler which may crash
between any two of its steps and keeps nothing but what the log stores. Beside it an oracle: two
bounds. `lowest` is what was acknowledged and never taken back; `highest` what may be passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from duolog.bridge.kafka.positions.decisions import (
    Agreed,
    AwaitMirror,
    GroupState,
    MoveNative,
    WriteKafka,
)
from duolog.bridge.kafka.positions.marks import Author, KafkaCommit
from duolog.log.groups_seen import KafkaSeen, KafkaWrite
from duolog.log.mirror_model import Run
from duolog.log.offset_map import OffsetMap


@dataclass(frozen=True)
class Rules:
    """The product's functions that are tried, or broken ones."""

    reconcile: Callable[..., Any]
    concluded: Callable[..., Any]
    intending: Callable[..., Any]
    refused: Callable[..., Any]


@dataclass(frozen=True)
class Stored:
    """What the log keeps."""

    position: int | None = None
    version: int = 0
    seen: KafkaSeen = field(default_factory=KafkaSeen)
    is_first: bool = False


@dataclass
class Consumer:
    """A Kafka consumer: where it is, and whether it is a member of the group."""

    at: int
    subscribed: bool
    committed: int


class World:
    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.log_end = 0
        self.kafka: list[int | None] = []  # log offsets; None: a foreign record
        self.sent = 0  # the mirror has dealt with everything before
        self.known_sent = 0  # and has stored so much of it
        self.known_kafka_end = 0
        self.stored = Stored()
        self.committed: KafkaCommit | None = None
        self.feed: list[KafkaCommit | None] = []
        self.consumers: list[Consumer] = []
        self.has_native_member = False  # with its proxy in Kafka's group
        self.member_ack: int | None = None  # told Kafka, and not stored yet
        self.reader = 0
        self.settling: Iterator[None] | None = None
        self.wish: Callable[[], Iterator[None]] | None = None  # what it is asked to do next
        self.last_step: Any = None
        self.outcome_open_until: int | None = None
        self.nonces = 0
        self.writes = self.stores = 0
        self.lowest = self.highest = 0
        self.open_rewind: int | None = None  # not noticed yet: where it went, and
        self.buried_rewind: int | None = None  # and was written over by us
        self.before_rewind = 0  # what might be passed over before it
        self.unnoticed = False  # a commit was made that the settler has not dealt with
        self.floor: int | None = None  # as Kafka's consumers know it
        self.events: list[str] = []

    # -- the log, its mirror, and who else writes to Kafka's topic

    def publish(self, count: int) -> None:
        self.log_end += count

    def mirror(self, count: int, *, skipped: bool = False) -> None:
        """Send the next records, or find that Kafka cannot take them."""
        for offset in range(self.sent, min(self.sent + count, self.log_end)):
            if not skipped:
                self.kafka.append(offset)
            self.sent = offset + 1

    def foreign_records(self, count: int) -> None:
        self.kafka.extend([None] * count)

    def mirror_stores(self) -> None:
        """The mirror stores what it has sent; what lies in Kafka up to now is known."""
        self.known_sent, self.known_kafka_end = self.sent, len(self.kafka)

    def map(self, *, known_only: bool = True) -> OffsetMap:
        end = self.known_kafka_end if known_only else len(self.kafka)
        sent = self.known_sent if known_only else self.sent
        runs: list[Run] = []
        for at, offset in enumerate(self.kafka[:end]):
            if offset is None:
                continue
            last = runs[-1] if runs else None
            if last and (last.next_log_offset, last.next_kafka_offset) == (offset, at):
                runs[-1] = last.cut(last.count + 1)
            else:
                runs.append(Run(offset, at, 1))
        return OffsetMap(tuple(runs), 0, 0, sent, end)

    def place(self, kafka_offset: int) -> int:
        place = self.map(known_only=False).to_log(kafka_offset)
        assert place is not None
        return place

    def canonical(self, position: int) -> int:
        return self.place(self.map(known_only=False).to_kafka(position))

    # -- native consumers

    def ack(self, count: int) -> None:
        if self.has_native_member:
            return
        position = min((self.stored.position or 0) + count, self.log_end)
        if self.stored.position is not None and position <= self.stored.position:
            return
        self.events.append(f"native ack {position}")
        self._move(position)
        self.highest = max(self.highest, position)
        self._reached(position)

    def seek_back(self, count: int) -> None:
        """A native position moved back in the log itself, while nobody asks Kafka."""
        if self.stored.position is None or self.has_native_member:
            return  # a group with members is not moved
        position = max(0, self.stored.position - count)
        self.events.append(f"native seek {position}")
        calm = self._calm()
        self._move(position)
        self.lowest = min(self.lowest, position)
        if calm:
            self.highest = position

    def _calm(self) -> bool:
        """Kafka's side has nothing to say that is not known."""
        return not self.unnoticed and not self.consumers

    def _move(self, position: int) -> None:
        self.stored = replace(
            self.stored, position=position, version=self.stored.version + 1, is_first=False
        )
        self.last_step = None

    def _reached(self, position: int) -> None:
        """Done up to here; if a rewind is not known natively yet, that may go over it."""
        bounds = [each for each in (self.open_rewind, self.buried_rewind) if each is not None]
        self.lowest = max(self.lowest, min(position, *bounds) if bounds else position)

    # -- a native consumer that is a member of the group in Kafka

    def member_joins(self) -> None:
        """It gets the partition, and begins when both sides are at one place."""
        settled = isinstance(self.last_step, Agreed) and self._calm()
        if settled and self.stored.position is not None and self.committed is not None:
            self.has_native_member = True

    def member_acknowledges(self, count: int) -> None:
        """Kafka first, by its proxy; of what is mirrored."""
        if not self.has_native_member or self.member_ack is not None:
            return
        position = min((self.stored.position or 0) + count, self.known_sent)
        offset = self.map().to_kafka(position)
        if self.committed is None or offset <= self.committed.offset:
            return
        self.member_ack = position
        self.events.append(f"member ack {position}")
        self._foreign_commit(offset)

    def member_ack_is_stored(self) -> None:
        position, self.member_ack = self.member_ack, None
        if position is not None and position > (self.stored.position or 0):
            self._move(position)
            self.highest = max(self.highest, position)
            self._reached(position)

    def member_leaves(self) -> None:
        """Or is gone with its worker, between the two."""
        self.has_native_member = False
        self.member_ack = None

    # -- Kafka consumers

    def join(self, *, subscribed: bool) -> None:
        if self.has_native_member:  # the partition is its own
            return
        at = 0 if self.committed is None else min(self.committed.offset, len(self.kafka))
        self.consumers.append(Consumer(at, subscribed, at))

    def leave(self, which: int) -> None:
        if self.consumers:
            self.consumers.pop(which % len(self.consumers))

    def consume_and_commit(self, which: int, count: int) -> None:
        if not self.consumers:
            return
        consumer = self.consumers[which % len(self.consumers)]
        if consumer.subscribed and sum(each.subscribed for each in self.consumers) > 1:
            consumer.at = max(consumer.at, 0 if self.committed is None else self.committed.offset)
        consumer.at = min(consumer.at + count, len(self.kafka))
        if consumer.at > consumer.committed:
            consumer.committed = consumer.at
            self._foreign_commit(consumer.at)

    def rewind(self, count: int) -> None:
        """Somebody resets the group in Kafka, below what any consumer may have gone on from."""
        if self.floor is None or self.committed is None or self.live:
            return
        lowest = min(self.floor, self.committed.offset)
        offset = max(0, lowest - count)
        if offset < lowest:
            self.consumers.clear()  # its applications are stopped before, as Kafka demands
            self._foreign_commit(offset)

    def _foreign_commit(self, offset: int) -> None:
        self.events.append(f"kafka commit {offset}")
        before, self.committed = self.committed, KafkaCommit(offset)
        self.feed.append(self.committed)
        self._judge(before, offset)
        self.floor = offset
        self.unnoticed = True
        self.last_step = None

    def _judge(self, before: KafkaCommit | None, offset: int) -> None:
        """Move the oracle's bounds for a commit that was made in Kafka."""
        place = self.place(offset)
        floor = None if self.floor is None else self.place(self.floor)
        if before is not None and self.place(before.offset) == place:
            return
        if before is not None and before.offset < offset:
            self.highest = max(self.highest, place)
            if self.open_rewind is not None and before.author is not Author.OURS:
                self.open_rewind = max(self.open_rewind, place)
                if floor is not None and place >= floor:  # it is over before anybody has looked
                    self.highest = max(self.highest, self.before_rewind)
            if place != self._last_seen():  # there and back says nothing to who did not look
                self._reached(place)
            return
        clear = (
            before is not None
            and floor is not None
            and not self.unnoticed
            and self.stored.position is not None
            and self.canonical(self.stored.position) >= floor
        )
        if clear and floor is not None and place < floor:
            self.before_rewind = max(self.highest, self.before_rewind if self.open_rewind else 0)
            self.lowest, self.highest = min(self.lowest, place), place
            self.open_rewind = place
        elif clear and before is not None and before.author is Author.OURS:
            return  # a consumer that has not seen ours: nothing is taken back
        else:  # what was meant cannot be told: either is right
            self.lowest = min(self.lowest, place)
            self.highest = max(self.highest, place)
            self.open_rewind = place
            if place == self._last_seen():  # there and back
                self.lowest = min(self.lowest, self.stored.position or 0)

    def _last_seen(self) -> int | None:
        seen = self.stored.seen
        last = seen.foreign if seen.ours is None else seen.ours
        return None if last is None else self.place(last)

    def expire(self) -> None:
        """Kafka forgets the group's offsets, days after the last commit."""
        if self.committed is not None and not self.live and not self.unnoticed:
            self.events.append("kafka forgets")
            self.committed = None
            self.feed.append(None)
            self.last_step = None

    @property
    def live(self) -> bool:
        return self.has_native_member or any(each.subscribed for each in self.consumers)

    def broker_write(self, commit: KafkaCommit) -> bool:
        """False: error 25."""
        if self.live:
            return False
        self.events.append(f"our write {commit.offset}")
        self.writes += 1
        if self.open_rewind is not None:
            self.buried_rewind = min(self.open_rewind, self.buried_rewind or self.open_rewind)
        self.committed = commit
        self.feed.append(commit)
        self.floor = commit.offset if self.floor is None else min(self.floor, commit.offset)
        return True

    # -- the settler

    def step(self) -> None:
        """One step of the settler, up to the next place where it may crash."""
        if self.settling is None:
            wish, self.wish = self.wish, None
            self.settling = self._round() if wish is None else wish()
        if next(self.settling, True):
            self.settling = None

    def crash(self, *, in_flight_lands: bool) -> None:
        """Stop the settler between two steps. What it had sent may come to the broker or not."""
        self.events.append("crash")
        self.settling = self.wish = None
        write = self.stored.seen.writing
        landed = write is not None and any(
            entry is not None and entry.nonce == write.nonce for entry in self.feed
        )
        if write is not None and not landed and in_flight_lands:
            self.broker_write(KafkaCommit(write.offset, Author.OURS, write.nonce))
        self.reader = len(self.feed) if write is None else write.feed_from or 0
        self.outcome_open_until = len(self.feed)

    def read_feed(self, count: int) -> None:
        self.reader = min(self.reader + count, len(self.feed))

    def want(self, reset_to: int | None) -> None:  # None: to delete it
        self.wish = self._delete if reset_to is None else lambda: self._reset(reset_to)

    def _reset(self, position: int) -> Iterator[None]:
        position = min(position, self.log_end)
        yield from self._conclude_first()
        native, committed, feed_from = self.stored, self.committed, self.reader
        noticed = self._notice()
        if native.seen.writing is not None or isinstance(noticed.step, MoveNative | AwaitMirror):
            return  # asked again later
        self.nonces += 1
        nonce, offset = f"n{self.nonces}", self.map().to_kafka(position)
        base = None if committed is None else committed.offset
        yield
        seen = self.rules.intending(noticed.seen, KafkaWrite(nonce, offset, base, feed_from))
        if not self._store(native, None, seen):
            return
        self.outcome_open_until = None
        yield
        calm = self._calm()
        if not self.broker_write(KafkaCommit(offset, Author.OURS, nonce)):
            yield
            self._store(self.stored, None, self.rules.refused(self.stored.seen))
            return
        yield
        if self.stored.version != native.version:
            return  # the next look puts Kafka where the group is
        self.stored = replace(self.stored, seen=seen)
        self._move(position)
        self.events.append("both reset")
        if calm and self._calm():
            self.lowest = self.highest = position
        else:
            self.lowest, self.highest = min(self.lowest, position), max(self.highest, position)

    def _notice(self) -> Any:
        stored = self.stored
        return self.rules.reconcile(
            stored.position,
            stored.seen,
            self.committed,
            self.map(),
            GroupState.LIVE,
            is_first=stored.is_first,
        )

    def _delete(self) -> Iterator[None]:
        yield from self._conclude_first()
        is_noticed = not isinstance(self._notice().step, MoveNative | AwaitMirror)
        if self.stored.seen.writing is not None or self.live or not is_noticed:
            return
        calm = self._calm()
        if self.committed is not None:
            self.events.append("kafka deleted")
            self.committed = None
            self.feed.append(None)
        self.last_step = None
        yield
        self.events.append("both deleted")
        self.lowest = 0
        self.open_rewind = self.buried_rewind = self.floor = None
        if calm and self._calm() and self.committed is None:
            self.highest = 0
        self.stored = Stored(version=0)
        self.last_step = None

    def _round(self) -> Iterator[None]:
        yield from self._conclude_first()
        feed_from = self.reader
        yield
        committed = self.committed
        yield
        group = GroupState.LIVE if self.live else GroupState.EMPTY
        yield
        native = self.stored
        yield
        offsets = self.map()
        decision = self.rules.reconcile(
            native.position, native.seen, committed, offsets, group, is_first=native.is_first
        )
        step, seen = decision.step, decision.seen
        nonce = ""
        if isinstance(step, WriteKafka):
            self.nonces += 1
            nonce = f"n{self.nonces}"
            base = None if committed is None else committed.offset
            seen = self.rules.intending(seen, KafkaWrite(nonce, step.offset, base, feed_from))
        yield
        if not self._store(native, step, seen):
            return
        if isinstance(step, WriteKafka):
            self.outcome_open_until = None
            yield
            landed = self.broker_write(KafkaCommit(step.offset, Author.OURS, nonce))
            yield
            if not landed:
                self._store(self.stored, None, self.rules.refused(self.stored.seen))
        if committed is self.committed and not isinstance(step, AwaitMirror):
            self.last_step = step
            if self.stored.seen.writing is None:
                self.open_rewind = self.buried_rewind = None
                self.unnoticed = False

    def _conclude_first(self) -> Iterator[None]:
        write = self.stored.seen.writing
        if write is None:
            return
        entries = self.feed[write.feed_from or 0 : self.reader]
        at = next((n for n, e in enumerate(entries) if e and e.nonce == write.nonce), None)
        until = self.outcome_open_until
        if at is None and (until is None or self.reader < until):
            return
        native = self.stored
        yield
        if at is None:
            self._store(native, None, self.rules.refused(native.seen))
            return
        overwritten = entries[at - 1] if at else None
        result = self.rules.concluded(
            native.position, native.seen, overwritten, self.map(), is_first=native.is_first
        )
        yield
        if not isinstance(result.step, AwaitMirror):
            self._store(native, result.step, result.seen)

    def _store(self, read: Stored, step: Any, seen: KafkaSeen) -> bool:
        """One write of the log; not if the position was moved since it was read."""
        if self.stored.version != read.version:
            return False
        if isinstance(step, MoveNative):
            self.events.append(f"native {step.why} {step.position}")
            self._move(step.position)
        if isinstance(step, MoveNative) or seen != self.stored.seen:
            self.stores += 1
            if self.stored.version:
                self.stored = replace(self.stored, seen=seen)
        return True

    # -- the end of a history

    def settle(self) -> None:
        """Let everything come to rest, and hold it to the oracle."""
        self.consumers.clear()
        self.member_leaves()
        self.mirror(self.log_end)
        self.mirror_stores()
        self.rounds(20)
        assert self.stored.seen.writing is None, "a write is never concluded"
        assert isinstance(self.last_step, Agreed), f"it does not come to rest: {self.last_step}"
        before = (self.writes, self.stores)
        self.rounds(3)
        assert (self.writes, self.stores) == before, "it goes on although nothing happens"
        position = self.stored.position
        if position is None:
            assert self.committed is None, "a Kafka position is not taken over"
            assert self.lowest == 0, "an acknowledgement is lost"
            return
        assert self.committed is not None, "a native position is not written to Kafka"
        agreed = self.canonical(position)
        assert self.place(self.committed.offset) == agreed, "the sides differ"
        assert self.canonical(self.lowest) <= agreed, "what was acknowledged is lost"
        assert agreed <= self.canonical(self.highest), "what was undone is skipped"

    def rounds(self, count: int) -> None:
        """The settler is left alone for a while."""
        for _ in range(count):
            self.reader = len(self.feed)
            self.step()
            while self.settling is not None:
                self.step()

    def check(self) -> None:
        """What holds at every moment."""
        ours = self.stored.seen.ours
        assert ours is None or any(
            entry is not None and entry.author is Author.OURS and entry.offset == ours
            for entry in self.feed
        ), "something is recorded as written that Kafka never held"


class Beginning(World):
    """Native consumers store where they begin, and acknowledge later."""

    def ack(self, count: int) -> None:
        if self.stored.position is not None:
            super().ack(count)
            return
        position = self.log_end if count > 1 else 0
        self.events.append(f"native begins {position}")
        self._move(position)
        self.stored = replace(self.stored, is_first=True)
        if self.committed is None and not self.lowest:  # nobody has acknowledged anything
            self.highest = max(self.highest, position)

    def _foreign_commit(self, offset: int) -> None:
        counts = self.stored.is_first and self.committed is None and self._is_at_rest
        super()._foreign_commit(offset)
        if counts:  # it is the group's first acknowledgement
            self.highest = self.place(offset)

    @property
    def _is_at_rest(self) -> bool:
        return self.settling is None and self.stored.seen.writing is None


def play(seed: int, rules: Rules, actions: int = 60, kind: type[World] = World) -> World:
    """A random history to its end."""
    random = Random(seed)
    world = kind(rules)
    for _ in range(actions):
        act(world, random.randrange(1000), random.randrange(1, 6), random.randrange(3))
        world.check()
    world.settle()
    return world


def act(world: World, kind: int, count: int, which: int) -> None:
    """One thing that happens. `kind` is from 0 to 999."""
    things: list[tuple[int, Callable[[], None]]] = [
        (80, lambda: world.publish(count)),
        (60, lambda: world.mirror(count)),
        (20, lambda: world.mirror(count, skipped=True)),
        (20, lambda: world.foreign_records(count)),
        (60, world.mirror_stores),
        (90, lambda: world.ack(count)),
        (30, lambda: world.seek_back(count)),
        (30, lambda: world.join(subscribed=True)),
        (30, lambda: world.join(subscribed=False)),
        (50, lambda: world.leave(which)),
        (100, lambda: world.consume_and_commit(which, count)),
        (40, lambda: world.rewind(count)),
        (12, lambda: world.want(count * which * 2)),
        (8, lambda: world.want(None)),
        (20, world.expire),
        (20, lambda: world.crash(in_flight_lands=count > 3)),
        (30, lambda: world.rounds(count)),
        (40, lambda: world.read_feed(count)),
        (160, world.step),
        (20, world.member_joins),
        (40, lambda: world.member_acknowledges(count)),
        (30, world.member_ack_is_stored),
        (10, world.member_leaves),
    ]
    for weight, thing in things:
        if kind < weight:
            thing()
            return
        kind -= weight
    raise AssertionError("the weights are to make 1000")
