"""What may follow from looking at both sides of a group's position. Plain values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from duolog.log.groups_seen import KafkaSeen, KafkaWrite


class GroupState(StrEnum):
    """Whether Kafka lets others write a group's offsets."""

    EMPTY = "empty"  # or not there at all
    LIVE = "live"  # has members, on whatever topics


class Moved(StrEnum):
    """Why a native position follows Kafka."""

    ADOPTED = "adopted"  # there was none yet
    FORWARD = "forward"
    REWOUND = "rewound"


@dataclass(frozen=True, slots=True)
class Agreed:
    """Both sides are at one place. `unmirrored`: how far the native one is ahead of the mirror."""

    unmirrored: int = 0


@dataclass(frozen=True, slots=True)
class MoveNative:
    """The native position goes to where Kafka's is. Not if somebody else moved it meanwhile."""

    position: int
    why: Moved


@dataclass(frozen=True, slots=True)
class WriteKafka:
    """Kafka's offset goes to where the native position is."""

    offset: int


@dataclass(frozen=True, slots=True)
class AwaitEmptyGroup:
    """This is to be written, and Kafka takes it when the group has no members.

    `has_time`: it is only where the group begins, so nobody asks again before members change.
    """

    offset: int
    has_time: bool = False


@dataclass(frozen=True, slots=True)
class AwaitEcho:
    """Something is to be written, and it is not known yet what became of the last write."""

    write: KafkaWrite


@dataclass(frozen=True, slots=True)
class AwaitMirror:
    """Kafka's offset lies beyond what is known to be mirrored; it is not clamped."""

    offset: int


@dataclass(frozen=True, slots=True)
class OneWay:
    """The native position is elsewhere, and this group's offsets are its application's own."""


Step = Agreed | MoveNative | WriteKafka | AwaitEmptyGroup | AwaitEcho | AwaitMirror | OneWay


@dataclass(frozen=True, slots=True)
class Decision:
    """A step, and what to remember of Kafka.

    With a move of the native position it is stored in the same write; else before the step is done.
    """

    step: Step
    seen: KafkaSeen
