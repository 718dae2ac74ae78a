"""Requests of Kafka's protocol: where a group's coordinator is, what it holds, and to forget that.

Made here since librdkafka's own call for the second one ends the whole process when the coordinator
has moved (its issue 5040), and Python has none for the third. They are sent by the mirror's
connections.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from duolog.bridge.kafka.wire.fields import (
    NO_TAGS,
    Reader,
    array,
    int8,
    int32,
    old_array,
    old_text,
    text,
)
from duolog.bridge.kafka.wire.requests import Prepared, Versions
from duolog.errors import KafkaUnsupported

OFFSET_FETCH: Final = 9
FIND_COORDINATOR: Final = 10
_OFFSET_DELETE: Final = 47
OF_A_GROUP: Final = 0
STABLE: Final = 1
_NOT_THERE: Final = frozenset({3, 69})  # the partition, the group
_HAS_MEMBERS: Final = frozenset({68, 86})  # of a group; that read this topic
_END: Final = "\0"  # librdkafka sends the end mark of its texts along


@dataclass(frozen=True, slots=True)
class CoordinatorFound:
    """The broker that coordinates a group, or why there is none."""

    error: int
    node: int


@dataclass(frozen=True, slots=True)
class FindCoordinator:
    """Which broker coordinates a group."""

    group: str

    def prepare(self, versions: Versions) -> Prepared[CoordinatorFound]:
        version = known(versions, FIND_COORDINATOR, "FindCoordinator", 3)
        body = text(self.group) + int8(OF_A_GROUP) + NO_TAGS

        def read(answer: Reader) -> CoordinatorFound:
            answer.int32()
            error = answer.int16()
            answer.text()
            return CoordinatorFound(error, answer.int32())

        return Prepared(FIND_COORDINATOR, version, body, read)


@dataclass(frozen=True, slots=True)
class HeldOffset:
    """One partition's; `offset` is negative where the group has committed nothing."""

    error: int
    offset: int
    metadata: str


@dataclass(frozen=True, slots=True)
class OffsetsHeld:
    """What a coordinator holds of a group, by topic and partition."""

    error: int
    offsets: Mapping[tuple[str, int], HeldOffset]

    @property
    def errors(self) -> frozenset[int]:
        """All errors, the group's own and those of its partitions."""
        return frozenset({self.error, *(each.error for each in self.offsets.values())}) - {0}


@dataclass(frozen=True, slots=True)
class OffsetFetch:
    """A group's offsets in these partitions; none of a transaction that is still open."""

    group: str
    partitions: Sequence[tuple[str, int]]

    def failed(self, error: int) -> OffsetsHeld:
        """The answer when the coordinator is not even found."""
        return OffsetsHeld(error, {})

    def prepare(self, versions: Versions) -> Prepared[OffsetsHeld]:
        version = known(versions, OFFSET_FETCH, "OffsetFetch", 8)
        group = text(self.group) + partitions_by_topic(self.partitions) + NO_TAGS
        body = array([group]) + int8(STABLE) + NO_TAGS
        return Prepared(OFFSET_FETCH, version, body, _read_held)


def partitions_by_topic(partitions: Sequence[tuple[str, int]]) -> bytes:
    """The partitions as the request has them."""
    by_topic: dict[str, list[bytes]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(int32(partition))
    return array(text(topic) + array(numbers) + NO_TAGS for topic, numbers in by_topic.items())


@dataclass(frozen=True, slots=True)
class OffsetsDeleted:
    """What a coordinator said to forgetting offsets, by topic and partition."""

    error: int
    partitions: Mapping[tuple[str, int], int]

    @property
    def has_members(self) -> bool:
        return self.error in _HAS_MEMBERS or not _HAS_MEMBERS.isdisjoint(self.partitions.values())

    @property
    def errors(self) -> frozenset[int]:
        """What went wrong: not that nothing was there, nor that the group has members."""
        return frozenset({self.error, *self.partitions.values(), 0}) - (
            _NOT_THERE | _HAS_MEMBERS | {0}
        )


@dataclass(frozen=True, slots=True)
class OffsetDelete:
    """Forget a group's offsets in these partitions."""

    group: str
    partitions: Sequence[tuple[str, int]]

    def failed(self, error: int) -> OffsetsDeleted:
        """The answer when the coordinator is not even found."""
        return OffsetsDeleted(error, {})

    def prepare(self, versions: Versions) -> Prepared[OffsetsDeleted]:
        version = known(versions, _OFFSET_DELETE, "OffsetDelete", 0)
        by_topic: dict[str, list[bytes]] = {}
        for topic, partition in self.partitions:
            by_topic.setdefault(topic, []).append(int32(partition))
        body = old_text(self.group) + old_array(
            old_text(topic) + old_array(partitions) for topic, partitions in by_topic.items()
        )
        return Prepared(_OFFSET_DELETE, version, body, _read_deleted, is_flexible=False)


def _read_deleted(answer: Reader) -> OffsetsDeleted:
    def topic() -> tuple[str, list[tuple[int, int]]]:
        return answer.old_text(), answer.old_array(lambda: (answer.int32(), answer.int16()))

    error = answer.int16()
    answer.int32()
    topics = answer.old_array(topic)
    return OffsetsDeleted(
        error, {(name, number): e for name, found in topics for number, e in found}
    )


def _read_held(answer: Reader) -> OffsetsHeld:
    answer.int32()
    ((_, only),) = answer.array(lambda: read_group(answer))
    return only


def read_group(answer: Reader) -> tuple[str, OffsetsHeld]:
    """One group of the answer, by its name."""

    def partition() -> tuple[int, HeldOffset]:
        number, offset = answer.int32(), answer.int64()
        answer.int32()
        metadata = (answer.text() or "").rstrip(_END)
        held = HeldOffset(answer.int16(), offset, metadata)
        answer.tags()
        return number, held

    def topic() -> tuple[str, list[tuple[int, HeldOffset]]]:
        name, partitions = answer.text() or "", answer.array(partition)
        answer.tags()
        return name, partitions

    group, topics = answer.text() or "", answer.array(topic)
    held = {(name, number): each for name, found in topics for number, each in found}
    error = answer.int16()
    answer.tags()
    return group, OffsetsHeld(error, held)


def known(versions: Versions, key: int, name: str, version: int) -> int:
    lowest, highest = versions.get(key, (0, -1))
    if lowest <= version <= highest:
        return version
    raise KafkaUnsupported(
        f"The broker does not know {name} version {version}: group positions need Apache Kafka 3.0 "
        "or newer."
    )
