"""What Kafka's coordinators say of groups and their members. Blocks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from duolog.bridge.kafka.members.protocol import GroupSeen

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

_DESCRIBE_SECONDS: Final = 10.0
_LOOK_SECONDS: Final = 3.0  # somebody waits for it, and asks again
_THERE_IS_NONE: Final = 69
_NO_RIGHT: Final = 30


def group_seen(admin: AdminClient, group: str) -> GroupSeen | None:
    """How a group shares out its partitions; that of one which is not there yet is free. None when
    its coordinator does not say.
    """
    from confluent_kafka import ConsumerGroupState, ConsumerGroupType, KafkaException

    try:
        asked = admin.describe_consumer_groups([group], request_timeout=_LOOK_SECONDS)
        found = asked[group].result()
    except KafkaException as failure:
        # Without a right to look, joining tells what else is wrong.
        is_free = failure.args[0].code() in {_THERE_IS_NONE, _NO_RIGHT}
        return GroupSeen() if is_free else None
    empty = {ConsumerGroupState.EMPTY, ConsumerGroupState.DEAD}
    sharing_out = {
        ConsumerGroupState.PREPARING_REBALANCING,
        ConsumerGroupState.COMPLETING_REBALANCING,
    }
    return GroupSeen(
        found.type is not ConsumerGroupType.CONSUMER,
        found.state not in empty and bool(found.members),
        found.partition_assignor or "",
        found.state in sharing_out,
    )


def members_at_rest(admin: AdminClient, group: str) -> list[Any] | None:
    """The members of a group; None while it shares out its partitions, or cannot be looked at."""
    from confluent_kafka import ConsumerGroupState, KafkaException

    try:
        asked = admin.describe_consumer_groups([group], request_timeout=_DESCRIBE_SECONDS)
        found = asked[group].result()
    except KafkaException:
        return None
    return list(found.members) if found.state is ConsumerGroupState.STABLE else None


def described(admin: AdminClient, groups: list[str]) -> list[tuple[str, Any]]:
    """All members, each with its group."""
    from confluent_kafka import KafkaException

    if not groups:
        return []
    found = []
    asked = admin.describe_consumer_groups(groups, request_timeout=_DESCRIBE_SECONDS)
    for group, future in asked.items():
        try:
            found += [(group, member) for member in future.result().members]
        except KafkaException:
            continue  # it is not there, or may not be looked at
    return found


def assigned_to(member: Any, topics: Collection[str]) -> Iterator[tuple[str, list[int]]]:
    """What a member has of these topics."""
    by_topic: defaultdict[str, list[int]] = defaultdict(list)
    partitions: Iterable[Any] = member.assignment.topic_partitions if member.assignment else ()
    for each in partitions:
        if each.topic in topics:
            by_topic[each.topic].append(each.partition)
    yield from ((topic, sorted(numbers)) for topic, numbers in sorted(by_topic.items()))
