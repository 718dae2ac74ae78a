"""What Kafka's coordinator holds of a group, asked and changed through the admin calls."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from duolog.bridge.kafka.access import Overheard, client_of
from duolog.bridge.kafka.feed.held_offsets import NOT_READY, HeldOffsets
from duolog.bridge.kafka.feed.offset_requests import OffsetsHeld
from duolog.bridge.kafka.positions.decisions import GroupState
from duolog.bridge.kafka.positions.marks import KafkaCommit, commit_of, mark
from duolog.bridge.kafka.settings import KafkaSettings
from duolog.errors import KafkaRefused, KafkaUnreachable

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, TopicPartition

_AGAIN_SECONDS: Final = 0.05
_HAS_MEMBERS: Final = frozenset({22, 25, 27})

Answer = TypeVar("Answer")


class KafkaPartition(NamedTuple):
    """A partition, by its topic's name in Kafka."""

    topic: str
    partition: int


Commits = dict[KafkaPartition, KafkaCommit | None]
"""What a group has committed; None where it has nothing."""


class NewCommit(NamedTuple):
    """What is to be written for one partition."""

    offset: int
    nonce: str


class GroupCoordinator:
    """Groups as Kafka's coordinators know them. May be used by several threads.

    What was committed in transactions that are still open is waited for.
    """

    def __init__(
        self, settings: KafkaSettings, log_id: str, *, timeout_seconds: float = 30.0
    ) -> None:
        from confluent_kafka.admin import AdminClient

        self._overheard = Overheard()
        self._admin = client_of(
            AdminClient, {**settings.for_confluent(), **self._overheard.options}
        )
        self._held = HeldOffsets(settings, timeout_seconds)
        self.log_id = log_id
        self._timeout_seconds = timeout_seconds
        self._closed = threading.Event()

    def groups(self) -> tuple[str, ...]:
        """All groups of consumers, when every broker has told its own."""
        listing = self._ask(lambda: self._admin.list_consumer_groups(**self._within), "all groups")
        for error in listing.errors:
            raise _refused(error, "all groups")
        return tuple(sorted(listed.group_id for listed in listing.valid))

    def state(self, group: str) -> GroupState:
        """Whether a group has members, on whatever topic; one that is not there has none."""
        from confluent_kafka import ConsumerGroupState

        described = self._ask(
            lambda: self._admin.describe_consumer_groups([group], **self._within)[group], group
        )
        empty = {ConsumerGroupState.EMPTY, ConsumerGroupState.DEAD}
        return GroupState.EMPTY if described.state in empty else GroupState.LIVE

    def committed(self, group: str, partitions: Iterable[KafkaPartition]) -> Commits:
        """What the group has committed in these partitions; None where it has nothing."""
        return self._commits(self._held.of(group, partitions))

    def committed_by_many(
        self, groups: Sequence[str], partitions: Iterable[KafkaPartition]
    ) -> dict[str, Commits]:
        """The same of several groups, but for those of which it cannot be told at once."""
        held = self._held.of_many(groups, partitions)
        return {group: self._commits(its_own) for group, its_own in held.items()}

    def _commits(self, held: OffsetsHeld) -> Commits:
        return {
            KafkaPartition(*where): (
                None if each.offset < 0 else commit_of(each.offset, each.metadata, self.log_id)
            )
            for where, each in held.offsets.items()
        }

    def write(
        self, group: str, commits: Mapping[KafkaPartition, NewCommit]
    ) -> frozenset[KafkaPartition]:
        """Set a group's offsets; the partitions that were refused since the group has members.

        When this raises KafkaUnreachable, they may have been set or not.
        """
        from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

        wanted = [
            TopicPartition(*where, new.offset, mark(self.log_id, new.nonce, new.offset))
            for where, new in commits.items()
        ]
        asked = [ConsumerGroupTopicPartitions(group, wanted)]
        answered = self._ask(
            lambda: self._admin.alter_consumer_group_offsets(asked, **self._within)[group], group
        )
        refused = set()
        for each in answered.topic_partitions:
            if each.error is None:
                continue
            if each.error.code() not in _HAS_MEMBERS:
                raise _refused(each.error, group)
            refused.add(KafkaPartition(each.topic, each.partition))
        return frozenset(refused)

    def forget(self, group: str, partitions: Iterable[KafkaPartition]) -> bool:
        """Delete a group's offsets in these partitions; False where it has members there.

        When this raises KafkaUnreachable, they may have been deleted or not.
        """
        return not self._held.forget(group, partitions).has_members

    def ends(self, partitions: Iterable[KafkaPartition]) -> dict[KafkaPartition, int]:
        """Where partitions end now."""
        from confluent_kafka import TopicPartition

        specs: Any = import_module("confluent_kafka.admin").OffsetSpec  # has no types
        latest = specs.latest()

        def end(place: KafkaPartition) -> int:
            asked = TopicPartition(*place)
            found = self._ask(
                lambda: self._admin.list_offsets({asked: latest}, **self._within)[asked], place[0]
            )
            return int(found.offset)

        return {each: end(each) for each in partitions}

    def close(self) -> None:
        """Let go of what is being tried again."""
        self._closed.set()
        self._held.close()

    @property
    def _within(self) -> dict[str, Any]:
        return {"request_timeout": self._timeout_seconds}

    def _ask(self, call: Callable[[], Any], group: str) -> Any:
        """The answer of an admin call; asked again as long as the coordinator is not ready."""
        from confluent_kafka import KafkaException

        deadline = time.monotonic() + self._timeout_seconds
        while True:
            try:
                answer = call().result()
                error = _not_ready(answer)
            except KafkaException as failure:
                error = failure.args[0]
                answer = None
            if error is None:
                return answer
            if error.code() not in NOT_READY:
                no_entry = self._overheard.why(self._admin) if error.code() < 0 else None
                raise no_entry or _refused(error, group)
            if time.monotonic() > deadline or self._closed.wait(_AGAIN_SECONDS):
                raise _refused(error, group)


def _not_ready(answer: Any) -> KafkaError | None:
    """An error of a single partition that makes the whole call worth another try."""
    partitions: Iterable[TopicPartition] = getattr(answer, "topic_partitions", ())
    for each in partitions:
        if each.error is not None and each.error.code() in NOT_READY:
            return each.error
    return None


def _refused(error: KafkaError, group: str) -> KafkaUnreachable | KafkaRefused:
    from confluent_kafka import KafkaError

    silent = {
        KafkaError._TIMED_OUT,  # noqa: SLF001  # librdkafka's own errors are named so
        KafkaError._TRANSPORT,  # noqa: SLF001
        KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
        KafkaError.REQUEST_TIMED_OUT,
    }
    if error.code() in silent:
        return KafkaUnreachable(
            f"Kafka's coordinator of '{group}' did not answer: {error.str()}. It is asked again; "
            "look at the brokers if it goes on."
        )
    return KafkaRefused(
        f"Kafka's coordinator refused what was asked of '{group}': {error.str()}. It is asked "
        "again; the mirror's user needs Describe and Read on groups.",
        error=error.code(),
    )
