"""The words of the client as plain values: places, pieces, questions, answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol


class Place(NamedTuple):
    """A partition; `topic` as it was subscribed to, which may be an alias."""

    topic: str
    partition: int


class Source(NamedTuple):
    """What one request reads. No partition: all of the topic's."""

    topic: str
    partition: int | None = None

    def holds(self, place: Place) -> bool:
        return self.topic == place.topic and self.partition in {None, place.partition}

    def __str__(self) -> str:
        whole = f"'{self.topic}'"
        return whole if self.partition is None else f"{whole} partition {self.partition}"


@dataclass(frozen=True, slots=True)
class Seat:
    """A source's place in its group, as the host told it last. `is_stale`: it is to ask again."""

    member_id: str | None = None
    generation: int = 0
    assigned: frozenset[int] = frozenset()
    is_stale: bool = True


class Batch(Protocol):
    """Records of one partition whose offsets follow one another."""

    @property
    def first_offset(self) -> int: ...
    @property
    def next_offset(self) -> int: ...
    @property
    def values(self) -> Any:
        """The decoded values; None until they are made."""


@dataclass(frozen=True, slots=True)
class Question:
    """What the host is asked for a source. `turn` tells answers from before a seek."""

    source: Source
    as_group: bool
    start: Any  # as JSON
    turn: int
    seat: Seat | None = None  # as a member of the group: then these partitions go on elsewhere
    next_offsets: Mapping[int, int] = field(default_factory=dict)
    topic_id: int | None = None  # which the topic is to have; None: not known yet


class LeftOut(NamedTuple):
    """Offsets of a partition that have no records."""

    partition: int
    first_offset: int
    next_offset: int
    is_damaged: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Page:
    """The host's answer: where each partition goes on, and batches of some."""

    topic: str
    next_offsets: dict[int, int]
    batches: Sequence[tuple[int, Batch]]
    seat: Seat | None = None
    topic_id: int | None = None  # None: an older host says none
    left_out: Sequence[LeftOut] = ()
    damaged: Sequence[LeftOut] = ()  # where others gave records, and these partitions cannot


@dataclass(frozen=True, slots=True)
class Piece:
    """Some records of a batch, from offset `start` up to but not including `stop`."""

    place: Place
    batch: Any
    start: int
    stop: int
    attempt: int = 1
    topic_id: int | None = None

    def cut(self, start: int, stop: int) -> Piece:
        """A part of it. Called for each record, and `replace` takes ten times as long."""
        return Piece(self.place, self.batch, start, stop, self.attempt, self.topic_id)


@dataclass(frozen=True, slots=True)
class Ack:
    """What the host is told: the group's position in a partition."""

    place: Place
    position: int
    seat: Seat | None = None
    topic_id: int | None = None

    @property
    def upto_offset(self) -> int:
        """The last offset that is done, as the host is told."""
        return self.position - 1
