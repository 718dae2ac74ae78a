"""Consumer groups: acknowledge, reset, compare-and-set, list, delete. All synced, all shared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from duolog.errors import (
    AckBeyondHead,
    InvalidRequest,
    PositionChanged,
    TokenLimitReached,
    TooManyStoredGroups,
    UnknownGroup,
)
from duolog.log.catalogue import partition_of
from duolog.log.commits import Committer, Job
from duolog.log.group_allowance import GroupAllowance, current_allowance
from duolog.log.groups_seen import KafkaSeen
from duolog.log.mirror_modes import MirrorMode
from duolog.log.model import (
    GroupPosition,
    Head,
    Side,
    Topic,
    TopicPartition,
    position_after,
)
from duolog.log.names import check_text_name
from duolog.log.positions import (
    StoredPosition,
    acknowledged,
    check_storable,
    check_version,
    first,
    moved,
)
from duolog.log.rounds import Round
from duolog.log.state import State

Decide = Callable[[StoredPosition | None, Head, int], StoredPosition]


class Groups:
    """The groups of an opened log."""

    def __init__(self, state: State, committer: Committer) -> None:
        self._state = state
        self._committer = committer

    def position(self, group: str, topic: Topic, partition: int) -> GroupPosition | None:
        """Where a group is; None when it has no position here."""
        check_text_name(group, "group")
        where = partition_of(topic, partition)
        stored = self._state.positions.get((group, where))
        return None if stored is None else _shown(group, topic, partition, stored)

    def positions(self, group: str | None, topic: Topic | None) -> tuple[GroupPosition, ...]:
        """All positions, of one group or topic if given."""
        topics, known = self._state.catalogue.by_id, self._state.positions
        found = known.all() if group is None else known.of_group(group)
        return tuple(
            _shown(name, topics[where.topic_id], where.partition, stored)
            for (name, where), stored in sorted(found, key=lambda item: item[0])
            if where.topic_id in topics and (topic is None or where.topic_id == topic.id)
        )

    def ack(
        self, group: str, topic: Topic, partition: int | None, upto_offset: int, side: Side
    ) -> GroupPosition:
        """Everything up to and including this offset is done. Never moves back."""
        if partition is None:
            if topic.partitions > 1:
                raise InvalidRequest(
                    f"Topic '{topic.name}' has {topic.partitions} partitions: say which one is "
                    "acknowledged."
                )
            partition = 0
        check_storable(side)
        if isinstance(upto_offset, bool) or not isinstance(upto_offset, int) or upto_offset < 0:
            raise InvalidRequest(f"upto_offset must be a whole number from 0; got {upto_offset!r}.")

        def decide(current: StoredPosition | None, head: Head, now_ms: int) -> StoredPosition:
            if upto_offset >= head.next_offset:
                raise AckBeyondHead(
                    f"Offset {upto_offset} of topic '{topic.name}' partition {partition} has not "
                    f"been written: the next one is {head.next_offset}. Acknowledge only what was "
                    "read."
                )
            return acknowledged(current, position_after(upto_offset), now_ms, side)

        return self._move(group, topic, partition, decide, side)

    def seek(
        self,
        group: str,
        topic: Topic,
        partition: int,
        position: int,
        expected_version: int | None,
        side: Side,
    ) -> GroupPosition:
        """Move a group to any position, also back; with a version, only if it is still that."""
        check_storable(side)
        _checked(position)

        def decide(current: StoredPosition | None, head: Head, now_ms: int) -> StoredPosition:
            if expected_version is not None:
                check_version(current, expected_version)
            _check_written(topic, partition, position, head)
            return moved(current, position, now_ms, side)

        return self._move(group, topic, partition, decide, side)

    def remember_kafka(
        self,
        group: str,
        topic: Topic,
        partition: int,
        seen: KafkaSeen,
        expected_version: int,
        position: int | None,
    ) -> GroupPosition:
        """Store what Kafka was last seen at, and with it a move that follows from it."""
        check_storable(Side.KAFKA, seen)
        if position is not None and (type(position) is not int or position < 0):
            raise InvalidRequest(f"A position must be a whole number from 0; got {position!r}.")

        def decide(current: StoredPosition | None, head: Head, now_ms: int) -> StoredPosition:
            check_version(current, expected_version)
            if self._state.mirror_modes.of(topic.id) is MirrorMode.DETACHED:
                raise PositionChanged(
                    f"The mirror of topic '{topic.name}' was detached, so nothing that Kafka holds "
                    f"moves group '{group}' there any more."
                )
            if position is not None:
                _check_written(topic, partition, position, head)
                return replace(moved(current, position, now_ms, Side.KAFKA), kafka=seen)
            if current is None:
                raise UnknownGroup(
                    f"Group '{group}' has no position in topic '{topic.name}' partition "
                    f"{partition}: what Kafka holds is remembered beside one. Give it a position."
                )
            return current if current.kafka == seen else replace(current, kafka=seen)

        return self._move(group, topic, partition, decide)

    def begin(
        self, group: str, topic: Topic, positions: Mapping[int, int]
    ) -> tuple[GroupPosition, ...]:
        """Store where a group begins, in those of the partitions where it has no position."""
        check_text_name(group, "group")
        wanted = {partition_of(topic, each): _checked(at) for each, at in positions.items()}
        job = _BeginGroup(group, topic, wanted)
        self._committer.run(job)
        return tuple(_shown(group, topic, each.partition, at) for each, at in job.result.items())

    def delete(self, group: str, topic: Topic | None) -> int:
        """Forget a group's positions, of one topic if given; how many there were."""
        check_text_name(group, "group")
        job = _DeleteGroup(group, None if topic is None else topic.id)
        self._committer.run(job)
        return job.deleted

    def _move(
        self,
        group: str,
        topic: Topic,
        partition: int,
        decide: Decide,
        side: Side | None = None,
    ) -> GroupPosition:
        """`side`: None for what only a mirror does. What a token's sender says counts for that
        token, whichever side they say that it came from.
        """
        check_text_name(group, "group")
        allowance = None if side is None else current_allowance()
        job = _MovePosition(
            group,
            topic,
            partition_of(topic, partition),
            decide,
            is_counted=side is Side.NATIVE or allowance is not None,
            allowance=allowance,
        )
        self._committer.run(job)
        return _shown(group, topic, partition, job.result)


def _checked(position: int) -> int:
    if isinstance(position, bool) or not isinstance(position, int) or position < 0:
        raise InvalidRequest(f"A position must be a whole number from 0; got {position!r}.")
    return position


def _check_written(topic: Topic, partition: int, position: int, head: Head) -> None:
    if position > head.next_offset:
        raise AckBeyondHead(
            f"Position {position} of topic '{topic.name}' partition {partition} is beyond its end, "
            f"{head.next_offset}."
        )


def _shown(group: str, topic: Topic, partition: int, stored: StoredPosition) -> GroupPosition:
    return GroupPosition(
        group,
        topic.name,
        partition,
        stored.position,
        stored.version,
        stored.changed_at_ms,
        stored.changed_by,
        stored.kafka,
        stored.is_first,
    )


def _admitted(round_: Round, group: str, allowance: GroupAllowance | None) -> str | None:
    """The token that begins this group, or began it. For one that is not known yet, raises
    TooManyStoredGroups, or TokenLimitReached where it is one token that has too many.
    """
    known, most = round_.state.positions, round_.state.options.max_stored_groups
    if group in known:
        return known.beginner(group)
    held = round_.positions_of(group)
    if held:  # of another job of this round
        return next((each.begun_by for each in held.values() if each.begun_by), None)
    if len(known) >= most:
        raise TooManyStoredGroups(
            f"The log has {len(known)} groups, as many as it takes (max_stored_groups), so "
            f"'{group}' cannot begin. Delete some with `duolog group delete`, or raise it. A host "
            "forgets groups that nobody has used for group_retention_seconds."
        )
    if allowance is None:
        return None
    begun = known.begun_by(allowance.token)
    if begun >= allowance.max_groups:
        raise TokenLimitReached(
            f"The token '{allowance.token}' has begun {begun} groups that are stored, as many as "
            f"one may have (max_stored_groups_of_token in [members]), so '{group}' cannot begin. "
            "Delete some with `duolog group delete`, or raise it. A host forgets groups that "
            "nobody has used for group_retention_seconds."
        )
    return allowance.token


class _MovePosition(Job):
    def __init__(
        self,
        group: str,
        topic: Topic,
        where: TopicPartition,
        decide: Decide,
        *,
        is_counted: bool,
        allowance: GroupAllowance | None = None,
    ) -> None:
        super().__init__()
        self._key = (group, where)
        self._topic = topic
        self._decide = decide
        self._is_counted = is_counted
        self._allowance = allowance
        self.result: StoredPosition

    def prepare(self, round_: Round) -> None:
        round_.catalogue.topic(self._topic.id)  # raises when it was dropped meanwhile
        current = round_.position(self._key)
        begun_by = None
        if current is None and self._is_counted:
            begun_by = _admitted(round_, self._key[0], self._allowance)
        self.result = self._decide(current, round_.state.heads.get(self._key[1]), round_.now_ms)
        if current is None:
            self.result = replace(self.result, begun_by=begun_by)
        if self.result is not current:
            round_.set_position(self._key, self.result)


class _BeginGroup(Job):
    """All partitions in one round, so in one sync; none where nothing is missing."""

    def __init__(self, group: str, topic: Topic, positions: Mapping[TopicPartition, int]) -> None:
        super().__init__()
        self._group = group
        self._topic = topic
        self._positions = positions
        self._allowance = current_allowance()
        self.result: dict[TopicPartition, StoredPosition] = {}

    def prepare(self, round_: Round) -> None:
        round_.catalogue.topic(self._topic.id)  # raises when it was dropped meanwhile
        begun_by = _admitted(round_, self._group, self._allowance)
        self.result = {}
        begins = {}
        for where, position in self._positions.items():
            current = round_.position((self._group, where))
            if current is None:
                _check_written(self._topic, where.partition, position, round_.head(where))
                current = begins[where] = first(position, round_.now_ms, begun_by)
            self.result[where] = current
        for where, begin in begins.items():
            round_.set_position((self._group, where), begin)
        # What another job of this round has stored is not durable yet.
        is_durable = all(
            round_.state.positions.get((self._group, where)) == found
            for where, found in self.result.items()
        )
        self.is_written = not is_durable


class _DeleteGroup(Job):
    def __init__(self, group: str, topic_id: int | None) -> None:
        super().__init__()
        self._group = group
        self._topic_id = topic_id
        self.deleted = 0

    def prepare(self, round_: Round) -> None:
        keys = [
            key
            for key in round_.positions_of(self._group)
            if self._topic_id in {None, key[1].topic_id}
        ]
        if not keys:
            raise UnknownGroup(f"Group '{self._group}' has no position here.")
        for key in keys:
            round_.set_position(key, None)
        self.deleted = len(keys)
