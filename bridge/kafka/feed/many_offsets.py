"""The same two requests for many groups at once: where thousands are looked at, one by one is slow.

What goes wrong with a group leaves it out here; who asks for it alone learns why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from duolog.bridge.kafka.feed.offset_requests import (
    FIND_COORDINATOR,
    OF_A_GROUP,
    OFFSET_FETCH,
    STABLE,
    OffsetsHeld,
    known,
    partitions_by_topic,
    read_group,
)
from duolog.bridge.kafka.wire.fields import NO_TAGS, Reader, array, int8, text
from duolog.bridge.kafka.wire.requests import Prepared, Versions

_BY_KEYS: Final = 4


@dataclass(frozen=True, slots=True)
class FindCoordinators:
    """The broker that coordinates each of these groups."""

    groups: Sequence[str]

    def prepare(self, versions: Versions) -> Prepared[dict[str, int]]:
        version = known(versions, FIND_COORDINATOR, "FindCoordinator", _BY_KEYS)
        body = int8(OF_A_GROUP) + array(map(text, self.groups)) + NO_TAGS

        def coordinator(answer: Reader) -> tuple[str, int, int]:
            group, node = answer.text() or "", answer.int32()
            answer.text()
            answer.int32()
            error = answer.int16()
            answer.text()
            answer.tags()
            return group, node, error

        def read(answer: Reader) -> dict[str, int]:
            answer.int32()
            found = answer.array(lambda: coordinator(answer))
            return {group: node for group, node, error in found if not error}

        return Prepared(FIND_COORDINATOR, version, body, read)


@dataclass(frozen=True, slots=True)
class OffsetFetchOfMany:
    """What a coordinator holds of several groups in these partitions."""

    groups: Sequence[str]
    partitions: Sequence[tuple[str, int]]

    def prepare(self, versions: Versions) -> Prepared[dict[str, OffsetsHeld]]:
        version = known(versions, OFFSET_FETCH, "OffsetFetch", 8)
        topics = partitions_by_topic(self.partitions)
        groups = array(text(group) + topics + NO_TAGS for group in self.groups)

        def read(answer: Reader) -> dict[str, OffsetsHeld]:
            answer.int32()
            return {
                group: held
                for group, held in answer.array(lambda: read_group(answer))
                if not held.errors
            }

        return Prepared(OFFSET_FETCH, version, groups + int8(STABLE) + NO_TAGS, read)
