"""Two requests of Kafka's protocol: where a group's coordinator is, and what it holds.

Made here since librdkafka's own call for the second one ends the whole process when the coordinator
has moved (its issue 5040). Both are sent by the mirror's connections.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from duolog.bridge.kafka.wire.fields import NO_TAGS, Reader, array, int8, int32, text
from duolog.bridge.kafka.wire.requests import Prepared, Versions
from duolog.errors import KafkaUnsupported

_OFFSET_FETCH: Final = 9
_FIND_COORDINATOR: Final = 10
_OF_A_GROUP: Final = 0
_STABLE: Final = 1
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
        version = _known(versions, _FIND_COORDINATOR, "FindCoordinator", 3)
        body = text(self.group) + int8(_OF_A_GROUP) + NO_TAGS

        def read(answer: Reader) -> CoordinatorFound:
            answer.int32()
            error = answer.int16()
            answer.text()
            return CoordinatorFound(error, answer.int32())

        return Prepared(_FIND_COORDINATOR, version, body, read)


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

    def prepare(self, versions: Versions) -> Prepared[OffsetsHeld]:
        version = _known(versions, _OFFSET_FETCH, "OffsetFetch", 8)
        by_topic: dict[str, list[bytes]] = {}
        for topic, partition in self.partitions:
            by_topic.setdefault(topic, []).append(int32(partition))
        topics = array(
            text(topic) + array(partitions) + NO_TAGS for topic, partitions in by_topic.items()
        )
        group = text(self.group) + topics + NO_TAGS
        body = array([group]) + int8(_STABLE) + NO_TAGS
        return Prepared(_OFFSET_FETCH, version, body, _read_held)


def _read_held(answer: Reader) -> OffsetsHeld:
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

    def group() -> OffsetsHeld:
        answer.text()
        topics = answer.array(topic)
        held = {(name, number): each for name, found in topics for number, each in found}
        error = answer.int16()
        answer.tags()
        return OffsetsHeld(error, held)

    answer.int32()
    (only,) = answer.array(group)
    return only


def _known(versions: Versions, key: int, name: str, version: int) -> int:
    lowest, highest = versions.get(key, (0, -1))
    if lowest <= version <= highest:
        return version
    raise KafkaUnsupported(
        f"The broker does not know {name} version {version}: group positions need Apache Kafka 3.0 "
        "or newer."
    )
