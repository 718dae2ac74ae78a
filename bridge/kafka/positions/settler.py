"""Brings a group's positions together: looks at both sides, decides, and does one step.

Blocks, and belongs to one thread: what it was told by the feed must not overtake what it reads.
Everything that matters later is in the log before Kafka is told anything, so a new one goes on
where this one stopped.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from duolog.bridge.kafka.feed.coordinator import (
    Commits,
    GroupCoordinator,
    KafkaPartition,
    NewCommit,
)
from duolog.bridge.kafka.feed.hints import Hint, Hints
from duolog.bridge.kafka.feed.records import OffsetCommitted
from duolog.bridge.kafka.positions.decisions import (
    AwaitEmptyGroup,
    AwaitMirror,
    Decision,
    GroupState,
    MoveNative,
    Step,
    WriteKafka,
)
from duolog.bridge.kafka.positions.echoes import Echoes
from duolog.bridge.kafka.positions.marks import KafkaCommit, commit_of
from duolog.bridge.kafka.positions.reconcile import concluded, intending, reconcile, refused
from duolog.bridge.kafka.positions.sides import BothSides, Mirrors, kafka_partition
from duolog.bridge.kafka.positions.sides import Side as BothSide
from duolog.errors import (
    AckBeyondHead,
    GroupHasMembers,
    InvalidRequest,
    KafkaRefused,
    KafkaUnreachable,
    PositionChanged,
    UnknownGroup,
)
from duolog.log.access import LogAccess
from duolog.log.groups_seen import KafkaSeen, KafkaWrite
from duolog.log.model import GroupPosition, Side
from duolog.log.offset_map import OffsetMap

_TOGETHER: Final = 4  # fewer groups are asked for one by one


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was done for one group and partition, or what it waits for.

    `on_its_way`: a write was sent before, whose echo has not been read yet.
    """

    group: str
    topic: str
    partition: int
    step: Step
    on_its_way: bool = False


class NotYet(Exception):
    """The group has to be looked at first: a write or a commit is still to be dealt with."""


class Settler:
    """For all groups of one log and one cluster.

    `mirrors` gives the partitions that are mirrored and whose Kafka topic is the one that was
    mirrored into: not those that stand still because it was made anew.
    """

    def __init__(
        self,
        log: LogAccess,
        coordinator: GroupCoordinator,
        hints: Hints,
        mirrors: Mirrors | None = None,
    ) -> None:
        self._log = log
        self._coordinator = coordinator
        self._hints = hints
        self._both = BothSides(log, coordinator, mirrors or log.mirrors)
        self._echoes = Echoes()

    def resume(self) -> None:
        """Take up the writes that an earlier settler had on their way."""
        for group, place, write in self._both.writes_on_their_way():
            self._echoes.expect((group, place), write, known_by=self._hints.feed_end(group))

    def places(self) -> frozenset[KafkaPartition]:
        """The partitions whose groups are kept together."""
        return self._both.places()

    def hear(self, hint: Hint) -> None:
        """The feed tells of a change."""
        change = hint.change
        if isinstance(change, OffsetCommitted) and change.offset is not None:
            commit = commit_of(change.offset, change.metadata, self._coordinator.log_id)
            place = (change.group, KafkaPartition(change.topic, change.partition))
            self._echoes.hear(place, commit, hint.feed_offset or 0)

    def look(self, groups: Sequence[str]) -> dict[str, Commits]:
        """What several groups have committed, asked at once: thousands of them at the start."""
        places = self._both.places()
        if len(groups) < _TOGETHER or not places:
            return {}
        return self._coordinator.committed_by_many(groups, places)

    def settle(self, group: str, held: Commits | None = None) -> list[Outcome]:
        """One step for each partition of a group. Look again until there is nothing to do.

        `held`: by `look`, since the feed was read last. Kafka is not written to on its word alone.
        """
        sides = self._both.of(group)
        if not sides:
            return []
        sides = {place: self._conclude(group, place, side) for place, side in sides.items()}
        feed_from = self._hints.feed_offset(group)
        is_held = held is not None and sides.keys() <= held.keys()
        committed = (
            held if held is not None and is_held else self._coordinator.committed(group, sides)
        )
        decisions = {
            place: self._decide(side, committed[place], GroupState.EMPTY)
            for place, side in sides.items()
        }
        if any(isinstance(each.step, WriteKafka) for each in decisions.values()):
            if is_held:
                committed = self._coordinator.committed(group, sides)
            state = self._coordinator.state(group)
            decisions = {
                place: self._decide(side, committed[place], state) for place, side in sides.items()
            }
        writes: dict[KafkaPartition, NewCommit] = {}
        for place, decision in decisions.items():
            step, seen, side = decision.step, decision.seen, sides[place]
            write = None
            if isinstance(step, WriteKafka):
                write = _new_write(step.offset, committed[place], feed_from)
                seen = intending(seen, write)
            move_to = step.position if isinstance(step, MoveNative) else None
            if not self._remember(group, side, seen, move_to):
                continue
            if side.stored.writing is not None and side.stored.writing != seen.writing:
                self._echoes.forget((group, place))
            if write is not None:
                self._echoes.expect((group, place), write)
                writes[place] = NewCommit(write.offset, write.nonce)
        pending = self._write(group, writes) if writes else frozenset[KafkaPartition]()
        return [
            Outcome(
                group,
                sides[place].mirror.topic,
                place.partition,
                AwaitEmptyGroup(writes[place].offset, sides[place].is_first)
                if place in pending
                else decision.step,
                on_its_way=decision.seen.writing is not None,
            )
            for place, decision in decisions.items()
        ]

    def reset(
        self,
        group: str,
        topic: str,
        partition: int,
        position: int,
        expected_version: int | None = None,
    ) -> GroupPosition | None:
        """Move a group to any place on both sides: Kafka first, and not while it has members.

        None when the partition is not mirrored: nothing is done then. NotYet when it is to
        be tried again a little later.
        """
        found = [
            (place, side)
            for place, side in self._both.of(group).items()
            if (side.mirror.topic, place.partition) == (topic, partition)
        ]
        if not found:
            return None
        ((place, side),) = found
        end = self._log.offsets(topic)[partition].next_offset
        if position > end:
            raise AckBeyondHead(
                f"Position {position} of topic '{topic}' partition {partition} is beyond its end, "
                f"{end}."
            )
        side = self._concluded(group, place, side)
        if expected_version not in {None, side.version}:
            raise PositionChanged(
                f"The position has version {side.version}, not {expected_version}: somebody else "
                "moved it. Read it again and decide anew."
            )
        if side.seen.one_way:
            raise InvalidRequest(
                f"Group '{group}' keeps its own metadata with its offsets in Kafka, as Kafka "
                "Streams does: reset it with its own tool. The native position follows."
            )
        feed_from = self._hints.feed_offset(group)
        committed = self._coordinator.committed(group, [place])[place]
        decision = self._noticed(side, committed)
        offset = OffsetMap.of_mirror(side.mirror).to_kafka(position)
        write = _new_write(offset, committed, feed_from)
        seen = intending(decision.seen, write)
        if side.position is not None:
            self._log.remember_kafka(group, topic, partition, seen, expected_version=side.version)
        self._echoes.expect((group, place), write)
        if self._write(group, {place: NewCommit(offset, write.nonce)}):
            raise _has_members(group, "nothing was changed")
        return self._log.remember_kafka(
            group, topic, partition, seen, expected_version=side.version, position=position
        )

    def delete(self, group: str, topic: str | None = None) -> int:
        """Forget a group on both sides, in one topic or in all; how many positions the log had.

        Kafka first: whatever comes in between, the log still has the group, and it can be sent
        again. NotYet when it is to be tried again a little later.
        """
        sides = {
            place: self._concluded(group, place, side)
            for place, side in self._both.of(group).items()
            if topic is None or side.mirror.topic == topic
        }
        held = self._coordinator.committed(group, sides) if sides else {}
        in_kafka = [place for place, commit in held.items() if commit is not None]
        for place, side in sides.items():
            self._noticed(side, held[place])
        if in_kafka and self._coordinator.state(group) is not GroupState.EMPTY:
            raise _has_members(group, "nothing was deleted")
        if in_kafka and not self._coordinator.forget(group, in_kafka):
            raise _has_members(group, "what was deleted of it in Kafka is written again")
        for place in sides:
            self._echoes.forget((group, place))
        try:
            return self._log.delete_group(group, topic, side=Side.KAFKA)
        except UnknownGroup:
            if in_kafka:
                return 0
            raise

    def _noticed(self, side: BothSide, committed: KafkaCommit | None) -> Decision:
        """What was said in Kafka counts natively before it is written over: a crash may follow."""
        decision = self._decide(side, committed, GroupState.LIVE)
        if isinstance(decision.step, AwaitMirror):  # one beyond Kafka's end says nothing
            place = kafka_partition(side.mirror)
            if decision.step.offset <= self._coordinator.ends([place])[place]:
                raise NotYet
        if isinstance(decision.step, MoveNative):
            raise NotYet
        return decision

    def _concluded(self, group: str, place: KafkaPartition, side: BothSide) -> BothSide:
        side = self._conclude(group, place, side)
        if side.seen.writing is not None:
            raise NotYet
        return side

    def _decide(self, side: BothSide, committed: KafkaCommit | None, state: GroupState) -> Decision:
        offsets = OffsetMap.of_mirror(side.mirror)
        is_first = side.is_first
        decision = reconcile(side.native, side.seen, committed, offsets, state, is_first=is_first)
        if isinstance(decision.step, AwaitMirror):
            offsets = self._both.known_further(side.mirror)
            decision = reconcile(
                side.native, side.seen, committed, offsets, state, is_first=is_first
            )
        return decision

    def _conclude(self, group: str, place: KafkaPartition, side: BothSide) -> BothSide:
        """What has become of the last write, as far as it is known."""
        write = side.seen.writing
        if write is None or side.position is None:
            return side
        known = self._echoes.of((group, place))
        heard = self._hints.feed_offset(group)
        if known is None or heard is None or write.feed_from is None:
            # Nobody tells of it: what Kafka holds now will say all.
            return replace(side, seen=refused(side.seen))
        if not known.echoed:
            lost = known.known_by is not None and heard >= known.known_by
            return replace(side, seen=refused(side.seen)) if lost else side
        offsets = OffsetMap.of_mirror(side.mirror)
        noticed = concluded(side.native, side.seen, known.before, offsets, is_first=side.is_first)
        if isinstance(noticed.step, MoveNative):
            self._remember(group, side, noticed.seen, noticed.step.position)
            return self._both.of(group)[place]
        return side if noticed.step else replace(side, seen=noticed.seen)

    def _remember(self, group: str, side: BothSide, seen: KafkaSeen, move_to: int | None) -> bool:
        """Store it beside the position; False if that was moved by somebody since it was read."""
        if move_to is None and (seen == side.stored or side.position is None):
            return True
        try:
            self._log.remember_kafka(
                group,
                side.mirror.topic,
                side.mirror.partition,
                seen,
                expected_version=side.version,
                position=move_to,
            )
        except PositionChanged:
            return False
        return True

    def _write(
        self, group: str, writes: Mapping[KafkaPartition, NewCommit]
    ) -> frozenset[KafkaPartition]:
        """Tell Kafka; those that it does not take as the group has members."""
        try:
            pending = self._coordinator.write(group, writes)
        except KafkaRefused:  # not written; where some partitions were, that is seen in Kafka
            for place in writes:
                self._take_back(group, place)
            raise
        except KafkaUnreachable:
            end = self._hints.feed_end(group)
            for place in writes:
                self._echoes.never_later_than((group, place), end or 0)
            raise
        for place in pending:
            self._take_back(group, place)
        return pending

    def _take_back(self, group: str, place: KafkaPartition) -> None:
        """A write was refused: forget that it was meant."""
        self._echoes.forget((group, place))
        side = self._both.of(group)[place]
        self._remember(group, side, refused(side.seen), None)


def _has_members(group: str, what_was_done: str) -> GroupHasMembers:
    return GroupHasMembers(
        f"Group '{group}' has members in Kafka, on this or another topic, and Kafka lets nobody "
        "else move it. Stop its consumers (a static one until its session ends) and send it again; "
        f"{what_was_done}."
    )


def _new_write(offset: int, committed: KafkaCommit | None, feed_from: int | None) -> KafkaWrite:
    base = None if committed is None else committed.offset
    return KafkaWrite(secrets.token_hex(4), offset, base, feed_from)
