"""The statements as plain values, before anything is done."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Literal, TypeAlias

from duolog.log.model import (
    DEFAULT_START,
    Expression,
    Filter,
    Op,
    PayloadMode,
    Route,
    Start,
    TopicSettings,
)

DEFAULT_LIMIT = 100
MAX_LIMIT = 100_000


class Unchanged(Enum):
    """What a statement does not speak of."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = Unchanged.UNCHANGED


@dataclass(frozen=True, slots=True)
class CreateTopic:
    name: str
    settings: TopicSettings = field(default_factory=TopicSettings)
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AddSource:
    topic: str
    table: str
    ops: frozenset[Op]
    where: Filter | None = None
    partition_by: tuple[str | Expression, ...] = ()
    payload: PayloadMode = PayloadMode.FULL
    columns: tuple[str, ...] | None = None

    @property
    def route(self) -> Route:
        return Route(
            self.table, self.ops, self.where, self.payload, self.partition_by, self.columns
        )


@dataclass(frozen=True, slots=True)
class DropSource:
    """Without operations: all of them."""

    topic: str
    table: str
    ops: frozenset[Op] | None = None


@dataclass(frozen=True, slots=True)
class SetRetention:
    """None is without limit."""

    topic: str
    seconds: float | Literal[Unchanged.UNCHANGED] | None = UNCHANGED
    max_bytes: int | Literal[Unchanged.UNCHANGED] | None = UNCHANGED
    waits_for_mirror: bool | Literal[Unchanged.UNCHANGED] = UNCHANGED


@dataclass(frozen=True, slots=True)
class ClearRetention:
    """Keep everything."""

    topic: str


@dataclass(frozen=True, slots=True)
class SetPartitions:
    topic: str
    partitions: int


@dataclass(frozen=True, slots=True)
class DropTopic:
    topic: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ClearTopic:
    topic: str


@dataclass(frozen=True, slots=True)
class SkipDamage:
    """Give up the records of the damaged batches before an offset."""

    topic: str
    partition: int
    to_offset: int


@dataclass(frozen=True, slots=True)
class Consume:
    """A group that has a position goes on there; `start` is for everybody else."""

    topic: str
    group: str | None = None
    partition: int | None = None
    start: Start = DEFAULT_START
    limit: int = DEFAULT_LIMIT
    auto_ack: bool = False
    skip_damaged: bool = False
    topic_id: int | None = None  # which the topic is to have


@dataclass(frozen=True, slots=True)
class Ack:
    topic: str
    group: str
    upto_offset: int
    partition: int | None = None
    settled: bool = False  # wait until Kafka is there too
    topic_id: int | None = None  # which the topic is to have


@dataclass(frozen=True, slots=True)
class ResetGroup:
    group: str
    topic: str
    to: Start
    partition: int | None = None


@dataclass(frozen=True, slots=True)
class Select:
    """A query as it was typed; DataFusion understands it. `position` is where it was."""

    text: str
    position: int = field(default=0, compare=False)


Definition: TypeAlias = (
    CreateTopic
    | AddSource
    | DropSource
    | SetRetention
    | ClearRetention
    | SetPartitions
    | DropTopic
    | ClearTopic
    | SkipDamage
)
"""What changes topics."""

Statement: TypeAlias = Definition | Consume | Ack | ResetGroup | Select
