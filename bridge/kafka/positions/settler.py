"""Brings a group's positions together: looks at both sides, decides, and does one step.

Blocks, and belongs to one thread: what it was told by the feed must not overtake what it reads.
Everything that matters later is in the log before Kafka is told anything, so a new one goes on
where this one stopped.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace

from duolog.bridge.kafka.feed.coordinator import GroupCoordinator, KafkaPartition, NewCommit
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
from duolog.bridge.kafka.positions.offset_map import OffsetMap
from duolog.bridge.kafka.positions.reconcile import concluded, intending, reconcile, refused
from duolog.bridge.kafka.positions.sides import BothSides, Mirrors, Side
from duolog.errors import (
    GroupHasMembers,
    InvalidRequest,
    KafkaRefused,
    KafkaUnreachable,
    PositionChanged,
)
from duolog.log.access import LogAccess
from duolog.log.groups_seen import KafkaSeen, KafkaWrite
from duolog.log.model import GroupPosition


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was done for one group and partition, or what it waits for."""

    group: str
    topic: str
    partition: int
    step: Step


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

    def settle(self, group: str) -> list[Outcome]:
        """One step for each partition of a group. Look again until there is nothing to do."""
        sides = self._both.of(group)
        if not sides:
            return []
        sides = {place: self._conclude(group, place, side) for place, side in sides.items()}
        feed_from = self._hints.feed_offset(group)
        committed = self._coordinator.committed(group, sides)
        decisions = {
            place: self._decide(side, committed[place], GroupState.EMPTY)
            for place, side in sides.items()
        }
        if any(isinstance(each.step, WriteKafka) for each in decisions.values()):
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
                AwaitEmptyGroup(writes[place].offset) if place in pending else decision.step,
            )
            for place, decision in decisions.items()
        ]

    def reset(self, group: str, topic: str, partition: int, position: int) -> GroupPosition:
        """Move a group to any place on both sides: Kafka first, and not while it has members."""
        found = [
            (place, side)
            for place, side in self._both.of(group).items()
            if (side.mirror.topic, place.partition) == (topic, partition)
        ]
        if not found:
            return self._log.seek(group, topic, partition, position)
        ((place, side),) = found
        if position > self._log.offsets(topic)[partition].next_offset:
            return self._log.seek(group, topic, partition, position)  # which refuses it
        if side.seen.one_way:
            raise InvalidRequest(
                f"Group '{group}' keeps its own metadata with its offsets in Kafka, as Kafka "
                "Streams does: reset it with its own tool. The native position follows."
            )
        feed_from = self._hints.feed_offset(group)
        committed = self._coordinator.committed(group, [place])[place]
        offset = OffsetMap.of_mirror(side.mirror).to_kafka(position)
        write = _new_write(offset, committed, feed_from)
        seen = intending(side.seen, write)
        if side.position is not None:
            self._log.remember_kafka(group, topic, partition, seen, expected_version=side.version)
        self._echoes.expect((group, place), write)
        if self._write(group, {place: NewCommit(offset, write.nonce)}):
            raise GroupHasMembers(
                f"Group '{group}' has members in Kafka, on this or another topic, and Kafka lets "
                "nobody else move it. Stop its consumers (a static one until its session ends) and "
                "send it again; nothing was changed."
            )
        return self._log.remember_kafka(
            group, topic, partition, seen, expected_version=side.version, position=position
        )

    def _decide(self, side: Side, committed: KafkaCommit | None, state: GroupState) -> Decision:
        offsets = OffsetMap.of_mirror(side.mirror)
        decision = reconcile(side.native, side.seen, committed, offsets, state)
        if isinstance(decision.step, AwaitMirror):
            offsets = self._both.known_further(side.mirror)
            decision = reconcile(side.native, side.seen, committed, offsets, state)
        return decision

    def _conclude(self, group: str, place: KafkaPartition, side: Side) -> Side:
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
        noticed = concluded(side.native, side.seen, known.before, offsets)
        if isinstance(noticed.step, MoveNative):
            self._remember(group, side, noticed.seen, noticed.step.position)
            return self._both.of(group)[place]
        return side if noticed.step else replace(side, seen=noticed.seen)

    def _remember(self, group: str, side: Side, seen: KafkaSeen, move_to: int | None) -> bool:
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


def _new_write(offset: int, committed: KafkaCommit | None, feed_from: int | None) -> KafkaWrite:
    base = None if committed is None else committed.offset
    return KafkaWrite(secrets.token_hex(4), offset, base, feed_from)
