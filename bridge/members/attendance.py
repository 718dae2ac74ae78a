"""Who the members of groups are, for those who look: SQL, commands, metrics. From any thread.

Native members are known here. Of Kafka's own the worker tells, when it can; a native one's proxy is
not shown beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent import futures
from typing import Any, Final

from duolog.bridge.members.coordinator import Coordinator
from duolog.bridge.members.gathering import Gathering
from duolog.bridge.metrics.bounds import TOGETHER, MetricRules, shown_alone
from duolog.bridge.metrics.names import (
    GROUP_MEMBERS,
    MEMBERS_OF_GROUP,
    REBALANCES,
    SESSIONS_ENDED,
    SINCE_REBALANCE,
    Metric,
)
from duolog.bridge.metrics.tally import Labels, Sample
from duolog.bridge.serve.asking import Asking
from duolog.errors import DuologError
from duolog.log import EmbeddedLog
from duolog.log.model import GroupMember, MemberKind

_WORKER_SECONDS: Final = 5.0
_MOST_GROUPS: Final = 100  # in one question to the worker


class HostAttendance:
    """Of one host."""

    def __init__(
        self,
        log: EmbeddedLog,
        coordinator: Coordinator,
        worker: Callable[[], Asking | None],
        rules: MetricRules,
    ) -> None:
        self._log = log
        self._rules = rules
        self._coordinator = coordinator
        self._worker = worker

    def members(self, group: str | None) -> tuple[GroupMember, ...]:
        native = [each for each in self._native() if group in {None, each.group}]
        names = {group} if group is not None else {each.group for each in native}
        if group is None:
            names |= {each.group for each in self._log.group_positions()}
        return (*native, *self._in_kafka(sorted(filter(None, names))))

    def check_no_members(self, group: str, topic_id: int | None, what: str) -> None:
        self._coordinator.check_no_members(group, topic_id, what)

    def samples(self) -> Mapping[Metric, list[Sample]]:
        """For metrics. Kafka takes long to be asked: of its members, what the worker has told."""
        shown = self._coordinator.shown()
        kinds = Counter(
            "simple" if member.is_provisional else "native"
            for gathering in shown
            for member in gathering.state.members.values()
        )
        changes = self._coordinator.rebalances
        changes += sum(gathering.changes for gathering in shown)
        of_groups = {
            (gathering.group, gathering.topic.name): gathering
            for gathering in shown
            if gathering.state.full_members
        }
        alone = self._groups_alone(of_groups)
        members: Counter[Labels] = Counter()
        since: list[Sample] = []
        for labels, gathering in of_groups.items():
            place = labels if labels in alone else (TOGETHER, TOGETHER)
            members[*place, "native"] += gathering.state.full_members
            others = None if gathering.seats is None else gathering.seats.others
            if others is not None:
                members[*place, "kafka"] += others
            if labels in alone:
                seconds = self._coordinator.seconds_since(gathering.changed_at)
                since.append((labels, round(seconds, 3)))
        return {
            MEMBERS_OF_GROUP: list(members.items()),
            SINCE_REBALANCE: since,
            GROUP_MEMBERS: [((kind,), kinds[kind]) for kind in ("native", "simple")],
            REBALANCES: [((), changes)],
            SESSIONS_ENDED: [((), self._coordinator.expired)],
        }

    def _groups_alone(self, of_groups: Mapping[tuple[str, str], Gathering]) -> set[tuple[str, str]]:
        """Those with the most members have series of their own."""

        def most_first(group: tuple[str, str]) -> tuple[int, tuple[str, str]]:
            return -of_groups[group].state.full_members, group

        return shown_alone(
            (
                (each, of_groups[each].state.partitions)
                for each in sorted(of_groups, key=most_first)
            ),
            self._rules.max_group_partitions,
            lambda group: self._rules.is_named_group(group[0]),
        )

    def _native(self) -> Iterable[GroupMember]:
        for gathering in self._coordinator.shown():
            state = gathering.state
            for member in state.members.values():
                if member.is_provisional:
                    continue
                yield GroupMember(
                    gathering.group,
                    gathering.topic.name,
                    member.member_id,
                    MemberKind.NATIVE,
                    member.holder.partition(" at ")[0],
                    member.holder.partition(" at ")[2].partition(",")[0],
                    tuple(sorted(state.owned_by(member.member_id))),
                    member.generation,
                )

    def _in_kafka(self, groups: list[str]) -> Iterable[GroupMember]:
        worker = self._worker()
        if worker is None:
            return
        names = {each.target.kafka_topic: each.topic for each in self._log.mirrors()}
        for first in range(0, len(groups), _MOST_GROUPS):
            asked = {"groups": groups[first : first + _MOST_GROUPS], "topics": sorted(names)}
            try:
                found = worker.ask("members_in_kafka", asked, _WORKER_SECONDS).result()
            except (DuologError, futures.CancelledError):
                return  # the native ones are known all the same
            for each in found["members"]:
                yield _member(each, names)


def _member(said: Mapping[str, Any], names: Mapping[str, str]) -> GroupMember:
    return GroupMember(
        said["group"],
        names.get(said["topic"], said["topic"]),
        said["member"],
        MemberKind.KAFKA,
        said["client"],
        said["host"],
        tuple(said["partitions"]),
    )
