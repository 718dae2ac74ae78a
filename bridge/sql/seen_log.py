"""A log with the topics that a caller may use, and no others."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from duolog.bridge.visible_rows import check_rows_can_be_told
from duolog.errors import ForbiddenGroup, ForbiddenTopic, NameTaken, UnknownTopic
from duolog.log.mirror_modes import MirrorModes
from duolog.log.taking import checked_places
from duolog.log.topic_ids import check_topic_id
from duolog.sql.statements import Ack, AddSource, Consume, CreateTopic, ResetGroup, Select

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from duolog.bridge.http.callers import Caller
    from duolog.bridge.visible_reads import VisibleReads, VisibleTopics
    from duolog.log.access import LogAccess, Place, TopicRef
    from duolog.log.damage_model import DamagedOffsets, Hole
    from duolog.log.fetched import Fetched, FetchedEncoded
    from duolog.log.mirror_model import Mirror
    from duolog.log.mirror_modes import MirrorReport
    from duolog.log.model import (
        GroupMember,
        GroupPosition,
        Op,
        PartitionOffsets,
        Retention,
        Route,
        Settled,
        Start,
        Swept,
        Topic,
        TopicSettings,
    )
    from duolog.sql.statements import Statement


class Groups(Protocol):
    """What moves groups: a log, or a host that has a mirror too."""

    def seek(
        self,
        group: str,
        reference: TopicRef,
        partition: int,
        position: int,
        *,
        expected_version: int | None = None,
    ) -> GroupPosition: ...
    def settle_group(
        self,
        group: str,
        reference: TopicRef,
        partition: int | None = None,
        *,
        timeout_seconds: float = 30.0,
    ) -> Settled: ...


class SeenLog:
    """What a caller may read. Names are looked up here, and the log is asked by ids: between the
    look and the answer an alias may come to mean another topic.

    A caller who is limited to some topics or groups learns nothing of others, not even that they
    are there. Of records that do not meet the caller's condition nothing is read but how many
    there are.
    """

    def __init__(self, log: LogAccess, caller: Caller, visible: VisibleTopics) -> None:
        self._log = log
        self._caller = caller
        self._visible = visible

    def topic(self, reference: TopicRef, *, topic_id: int | None = None) -> Topic:
        caller = self._caller
        try:
            topic = self._log.topic(reference)
        except UnknownTopic:
            if caller.topics is None:
                raise
            if caller.may_use(str(reference)):
                raise UnknownTopic(f"There is no topic {reference!r}.") from None
            raise forbidden(caller, reference) from None
        if not caller.may_use(topic.name):
            raise forbidden(caller, reference)
        return check_topic_id(topic, topic_id)

    def check_group(self, group: str) -> str:
        """The group, if it is one of the caller's."""
        if not self._caller.may_use_group(group):
            raise ForbiddenGroup(
                f"The token '{self._caller.name}' may not use group '{group}'. Have one made with "
                "--groups that match it."
            )
        return group

    def topics(self) -> tuple[Topic, ...]:
        return tuple(topic for topic in self._log.topics() if self._caller.may_use(topic.name))

    def offsets(self, reference: TopicRef) -> tuple[PartitionOffsets, ...]:
        return self._log.offsets(self.topic(reference).id)

    def all_offsets(self) -> tuple[PartitionOffsets, ...]:
        found = self._log.all_offsets()
        seen = {name for name in {each.topic for each in found} if self._caller.may_use(name)}
        return tuple(each for each in found if each.topic in seen)

    def record_times(self, places: Sequence[Place]) -> tuple[int | None, ...]:
        asked = checked_places(places)
        ids: dict[TopicRef, int] = {}
        for reference in {each[0] for each in asked}:
            with suppress(UnknownTopic):  # dropped, or somebody else's: nothing is there
                ids[reference] = self.topic(reference).id
        known = [place for place in asked if place[0] in ids]
        times = self._log.record_times(
            [(ids[reference], partition, offset) for reference, partition, offset in known]
        )
        found = dict(zip(known, times, strict=True))
        return tuple(found.get(place) for place in asked)

    def resolve(self, reference: TopicRef, partition: int, start: Start) -> int:
        return self._log.resolve(self.topic(reference).id, partition, start)

    def fetch(self, reference: TopicRef, partition: int, offset: int, **limits: Any) -> Fetched:
        topic = self.topic(reference)
        reads = self.visible_reads(topic)
        if reads is None:
            return self._log.fetch(topic.id, partition, offset, **limits)
        return reads.fetch(partition, offset, **limits)

    def fetch_encoded(
        self, reference: TopicRef, partition: int, offset: int, **limits: Any
    ) -> FetchedEncoded:
        topic = self.topic(reference)
        reads = self.visible_reads(topic)
        if reads is None:
            return self._log.fetch_encoded(topic.id, partition, offset, **limits)
        return reads.fetch_encoded(partition, offset, **limits)

    def visible_reads(self, topic: Topic) -> VisibleReads | None:
        """The reads of a topic for a caller who may have some of its records only."""
        where = self._caller.where
        if where is None:
            return None
        check_rows_can_be_told(topic, where, self._caller.name)
        return self._visible.reads(topic, where)

    def look_for_damage(
        self, reference: TopicRef, partition: int, offset: int
    ) -> DamagedOffsets | None:
        return self._log.look_for_damage(self.topic(reference).id, partition, offset)

    def damage(self, reference: TopicRef | None = None) -> tuple[DamagedOffsets, ...]:
        found = self._log.damage(None if reference is None else self.topic(reference).id)
        return tuple(each for each in found if self._caller.may_use(each.topic))

    def holes(self, reference: TopicRef | None = None) -> tuple[Hole, ...]:
        found = self._log.holes(None if reference is None else self.topic(reference).id)
        return tuple(each for each in found if self._caller.may_use(each.topic))

    def group_position(
        self, group: str, reference: TopicRef, partition: int
    ) -> GroupPosition | None:
        return self._log.group_position(
            self.check_group(group), self.topic(reference).id, partition
        )

    def group_positions(
        self, group: str | None = None, reference: TopicRef | None = None
    ) -> tuple[GroupPosition, ...]:
        named = None if reference is None else self.topic(reference).id
        found = self._log.group_positions(group, named)
        return tuple(each for each in found if self._sees(each.group, each.topic))

    def group_members(self, group: str | None = None) -> tuple[GroupMember, ...]:
        found = self._log.group_members(group)
        return tuple(each for each in found if self._sees(each.group, each.topic))

    def _sees(self, group: str, topic: str) -> bool:
        return self._caller.may_use_group(group) and self._caller.may_use(topic)

    def mirrors(self, reference: TopicRef | None = None) -> tuple[Mirror, ...]:
        named = None if reference is None else self.topic(reference).id
        found = self._log.mirrors(named)
        return tuple(each for each in found if self._caller.may_use(each.topic))

    def mirror_modes(self) -> MirrorModes:
        modes = self._log.mirror_modes()
        seen = {name: mode for name, mode in modes.others.items() if self._caller.may_use(name)}
        return MirrorModes(modes.usual, seen)

    def mirror_reports(self, reference: TopicRef | None = None) -> tuple[MirrorReport, ...]:
        named = None if reference is None else self.topic(reference).id
        found = self._log.mirror_reports(named)
        return tuple(each for each in found if self._caller.may_use(each.topic))


class UsedLog(SeenLog):
    """What a caller may do, besides. Whether their role is enough is judged elsewhere.

    `groups` moves groups, on both sides where there are two.
    """

    def __init__(
        self,
        log: LogAccess,
        caller: Caller,
        visible: VisibleTopics,
        groups: Groups | None = None,
    ) -> None:
        super().__init__(log, caller, visible)
        self._groups = groups or log

    def check(self, statement: Statement) -> None:
        """Refuse a statement that names a topic of others, before anything is done."""
        match statement:
            case Select():
                return  # its topics are seen when it is planned
            case CreateTopic(name, settings):
                self._check_new(name, settings)
                return
            case AddSource(_, table):
                self._check_route(table)
        try:
            self.topic(statement.topic)
        except ForbiddenTopic:
            raise
        except UnknownTopic:
            pass  # an earlier statement may make it
        match statement:
            case Consume(group=str(group)) | Ack(group=group) | ResetGroup(group=group):
                self.check_group(group)

    def check_table(self, table: str) -> None:
        """Refuse a table that feeds topics of others: one's own would tell what goes to them."""
        for topic, _ in self._log.routing_plan().routes_of(table):
            if not self._caller.may_use(topic.name):
                raise ForbiddenTopic(
                    f"The token '{self._caller.name}' may not use table '{table}': its rows go to "
                    "other topics, too. Have one made with --topics that match all topics of the "
                    "table."
                )

    def _check_route(self, table: str) -> None:
        """Refuse a route that the caller is not to make, whatever the table feeds by now."""
        if not self._caller.may_route(table):
            remedy = "with --tables" if self._caller.where is None else "without --where"
            raise ForbiddenTopic(
                f"The token '{self._caller.name}' is not for table '{table}': a route would be "
                f"given all of its rows. Have one made {remedy}."
            )
        self.check_table(table)

    def create_topic(
        self, name: str, settings: TopicSettings, *, if_not_exists: bool = False
    ) -> Topic:
        self._check_new(name, settings)
        try:
            return self._log.create_topic(name, settings, if_not_exists=if_not_exists)
        except NameTaken:
            if self._caller.topics is None:
                raise
            raise NameTaken(f"'{name}', or its alias or topic in Kafka, is taken.") from None

    def add_route(self, reference: TopicRef, route: Route) -> Topic:
        self._check_route(route.table)
        return self._log.add_route(self.topic(reference).id, route)

    def _check_new(self, name: str, settings: TopicSettings) -> None:
        for each in (name, settings.alias, settings.kafka_topic):
            if each is not None and not self._caller.may_use(each):
                raise forbidden(self._caller, each)

    def drop_route(
        self, reference: TopicRef, table: str, ops: frozenset[Op] | None = None
    ) -> Topic:
        return self._log.drop_route(self.topic(reference).id, table, ops)

    def set_retention(self, reference: TopicRef, retention: Retention) -> Topic:
        return self._log.set_retention(self.topic(reference).id, retention)

    def set_partitions(self, reference: TopicRef, partitions: int) -> Topic:
        return self._log.set_partitions(self.topic(reference).id, partitions)

    def clear_topic(self, reference: TopicRef) -> Swept:
        return self._log.clear_topic(self.topic(reference).id)

    def skip_to(
        self, reference: TopicRef, partition: int, to_offset: int, *, by: str = ""
    ) -> tuple[Hole, ...]:
        who = self._caller.name or by
        return self._log.skip_to(self.topic(reference).id, partition, to_offset, by=who)

    def drop_topic(self, reference: TopicRef) -> Swept:
        return self._log.drop_topic(self.topic(reference).id)

    def ack(
        self, group: str, reference: TopicRef, upto_offset: int, partition: int | None = None
    ) -> GroupPosition:
        return self._log.ack(
            self.check_group(group), self.topic(reference).id, upto_offset, partition
        )

    def begin_group(
        self, group: str, reference: TopicRef, positions: Mapping[int, int]
    ) -> tuple[GroupPosition, ...]:
        return self._log.begin_group(self.check_group(group), self.topic(reference).id, positions)

    def seek(
        self,
        group: str,
        reference: TopicRef,
        partition: int,
        position: int,
        *,
        expected_version: int | None = None,
    ) -> GroupPosition:
        return self._groups.seek(
            self.check_group(group),
            self.topic(reference).id,
            partition,
            position,
            expected_version=expected_version,
        )

    def settle_group(
        self,
        group: str,
        reference: TopicRef,
        partition: int | None = None,
        *,
        timeout_seconds: float = 30.0,
    ) -> Settled:
        return self._groups.settle_group(
            self.check_group(group),
            self.topic(reference).id,
            partition,
            timeout_seconds=timeout_seconds,
        )


def forbidden(caller: Caller, reference: TopicRef) -> ForbiddenTopic:
    """To be raised."""
    return ForbiddenTopic(
        f"The token '{caller.name}' may not use topic '{reference}'. Have one made with --topics "
        "that match it."
    )
