"""The words of the log as plain values: topics, routes, records, positions.

Frozen dataclasses without any library, since these travel into Spark tasks, which have nothing
but pyarrow, numpy and the standard library.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, NamedTuple

from duolog.log.groups_seen import KafkaSeen

if TYPE_CHECKING:
    from collections.abc import Iterable

    from duolog.log.routing.filter.tree import Node

MAX_RECORD_BYTES = 1 << 20
"""Key, value and headers together, unless a log is opened with another limit."""


class Op(IntEnum):
    """What a change did to its row. The numbers are stored."""

    NONE = 0  # a plain record, not a change
    INSERT = 1
    UPDATE = 2
    DELETE = 3
    READ = 4  # the row as it stood when a feed began; goes where inserts go

    @property
    def word(self) -> str | None:
        return None if self is Op.NONE else self.name.lower()

    @classmethod
    def of(cls, word: str) -> Op:
        return cls[word.upper()]


class PayloadMode(IntEnum):
    """What of a row a record carries. The numbers are stored."""

    NONE = 0  # a plain record
    FULL = 1  # the row
    KEY = 2  # the key columns
    DIFF = 3  # the key and what changed, before and after

    @property
    def word(self) -> str | None:
        return None if self is PayloadMode.NONE else self.name.lower()


class Envelope(StrEnum):
    """How a payload is wrapped."""

    FLAT = "flat"
    DEBEZIUM = "debezium"


class Format(StrEnum):
    """How keys and values are encoded."""

    JSON = "json"
    AVRO = "avro"
    RAW = "raw"


class Unrouted(StrEnum):
    """What becomes of changes that no route takes."""

    FAIL = "fail"
    DROP = "drop"


class Side(StrEnum):
    """Who moved a group's position."""

    NATIVE = "native"
    KAFKA = "kafka"


class Mode(StrEnum):
    """How a writer numbers its epochs."""

    STREAM = "stream"  # one after the other
    BATCH = "batch"  # any higher number


@dataclass(frozen=True, slots=True)
class Writer:
    """Who appends. Two targets of one query are two writers."""

    mode: Mode
    name: str
    target: str

    def __str__(self) -> str:
        """Another one for each writer: a colon of the name is not the one that ends it."""
        name = self.name.replace("\\", "\\\\").replace(":", "\\:")
        return f"{self.mode}:{name}:{self.target}"

    @property
    def former_name(self) -> str:
        """As older Duologs called it, which took "a:b" to "c" and "a" to "b:c" for one."""
        return f"{self.mode}:{self.name}:{self.target}"


@dataclass(frozen=True, slots=True)
class Filter:
    """A route's condition: what was typed, and the checked tree that travels to tasks."""

    text: str
    tree: Node


@dataclass(frozen=True, slots=True)
class Expression:
    """A value of a row: what was typed, and the checked tree that travels to tasks."""

    text: str
    tree: Node


@dataclass(frozen=True, slots=True)
class Route:
    """Which changes of one table come to a topic, and as what."""

    table: str
    ops: frozenset[Op]
    filter: Filter | None = None
    payload: PayloadMode = PayloadMode.FULL
    partition_by: tuple[str | Expression, ...] = ()  # a str is a column; none: the key columns
    columns: tuple[str, ...] | None = None  # that values carry beside the key; None: all

    @property
    def partition_texts(self) -> tuple[str, ...]:
        """What is partitioned by, as people write it."""
        return tuple(part if isinstance(part, str) else part.text for part in self.partition_by)


@dataclass(frozen=True, slots=True)
class Retention:
    """How much of a topic is kept; None is without limit.

    What a mirror has still to copy to Kafka is kept, however old, unless it does not wait for it.
    """

    seconds: float | None = None
    max_bytes: int | None = None
    waits_for_mirror: bool = True

    @property
    def is_limited(self) -> bool:
        return self.seconds is not None or self.max_bytes is not None


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """What a topic is made with. All of it but the partitions can be left out."""

    alias: str | None = None
    partitions: int = 1
    retention: Retention = field(default_factory=Retention)
    key_format: Format = Format.JSON
    value_format: Format = Format.JSON
    envelope: Envelope = Envelope.FLAT
    tombstones_on_delete: bool = True  # behind each delete, in the debezium envelope
    kafka_topic: str | None = None
    dedup_window_seconds: float | None = None
    json_int64_as_string: bool = False  # for readers whose numbers are doubles, as in JavaScript


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic as the catalogue knows it."""

    id: int
    name: str
    settings: TopicSettings
    routes: tuple[Route, ...]
    created_at_ms: int
    updated_at_ms: int

    @property
    def alias(self) -> str | None:
        return self.settings.alias

    @property
    def partitions(self) -> int:
        return self.settings.partitions

    @property
    def retention(self) -> Retention:
        return self.settings.retention


class TopicPartition(NamedTuple):
    """One partition, by the topic's id. A tuple, since these are hashed for every record."""

    topic_id: int
    partition: int


@dataclass(frozen=True, slots=True)
class Head:
    """How far a partition reaches. `next_offset` is stored, never derived from what is kept."""

    start: int = 0
    next_offset: int = 0
    bytes: int = 0
    last_ts_ms: int = 0  # the highest timestamp so far

    @property
    def records(self) -> int:
        return self.next_offset - self.start


@dataclass(frozen=True, slots=True)
class PartitionOffsets:
    """A partition as users see it."""

    topic: str
    partition: int
    start: int
    next_offset: int
    bytes: int
    last_ts_ms: int

    @property
    def last_offset(self) -> int | None:
        """The offset of the last record, None when nothing is kept."""
        return self.next_offset - 1 if self.next_offset > self.start else None


def by_topic(offsets: Iterable[PartitionOffsets]) -> dict[str, tuple[PartitionOffsets, ...]]:
    """What the partitions of all topics have, by the topics' names."""
    found: dict[str, list[PartitionOffsets]] = {}
    for each in offsets:
        found.setdefault(each.topic, []).append(each)
    return {topic: tuple(partitions) for topic, partitions in found.items()}


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """The offsets that an append got in one partition, `next_offset` excluded."""

    topic: str
    partition: int
    start: int
    next_offset: int

    @property
    def count(self) -> int:
        return self.next_offset - self.start


@dataclass(frozen=True, slots=True)
class Appended:
    """An epoch's answer. `repeated`: it had been committed before, these are its first offsets.

    `at_ms` is when it was made, as its writer said, or when it was committed. Rows without a time
    of their own take the same again when the epoch is repeated. `note` is what its writer wanted
    to remember with it.
    """

    epoch: int
    ranges: tuple[OffsetRange, ...]
    at_ms: int
    repeated: bool = False
    duplicates_dropped: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """One record to publish. Without a partition the key decides, without a key turns are taken."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int | None = None
    ts_ms: int | None = None
    op: Op = Op.NONE
    table: str | None = None
    payload: PayloadMode = PayloadMode.NONE


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a published record lies. It is durable."""

    topic: str
    partition: int
    offset: int
    topic_id: int | None = field(default=None, compare=False, metadata={"is_sent": False})
    """Where it is known: an older Duolog on the other side of a wire takes no such field."""


@dataclass(frozen=True, slots=True)
class GroupPosition:
    """The next offset that a group reads in one partition, and how it came there."""

    group: str
    topic: str
    partition: int
    position: int
    version: int
    changed_at_ms: int
    changed_by: Side
    kafka: KafkaSeen | None = (
        None  # what is remembered of Kafka's side, once the two are kept as one
    )
    is_first: bool = field(default=False, metadata={"is_sent_if_default": False})
    """Where the group begins: nothing has been acknowledged, and nobody has moved it."""

    @property
    def upto_offset(self) -> int:
        """The last offset before the position, as an ACK names it; -1 when there is none."""
        return self.position - 1

    @property
    def last_acked_offset(self) -> int | None:
        """The last acknowledged offset; None when there is none."""
        return None if self.is_first or self.position == 0 else self.position - 1


@dataclass(frozen=True, slots=True)
class Settled:
    """Whether a group is at one place in the log and in Kafka; `pending` says what is missing."""

    pending: str = ""

    @property
    def is_settled(self) -> bool:
        return not self.pending


class MemberKind(StrEnum):
    """Where a member of a group reads."""

    NATIVE = "native"
    KAFKA = "kafka"


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A consumer that is a member of a group now, and what it has of one topic."""

    group: str
    topic: str
    member_id: str
    kind: MemberKind
    client_id: str  # what it calls itself, or who it is to the host
    host: str
    partitions: tuple[int, ...]
    generation: int | None = None  # of a native one's partitions


def position_after(upto_offset: int) -> int:
    """The position of a group that acknowledged everything up to and including this offset."""
    return upto_offset + 1


@dataclass(frozen=True, slots=True)
class Swept:
    """What retention or a clear took away."""

    messages_deleted: int = 0
    bytes_freed: int = 0

    def __add__(self, other: Swept) -> Swept:
        return Swept(
            self.messages_deleted + other.messages_deleted, self.bytes_freed + other.bytes_freed
        )


@dataclass(frozen=True, slots=True)
class HeldBack:
    """What retention has to leave because a mirror has not copied it; there may be more behind."""

    records: int = 0
    bytes: int = 0

    def __add__(self, other: HeldBack) -> HeldBack:
        return HeldBack(self.records + other.records, self.bytes + other.bytes)


@dataclass(frozen=True, slots=True)
class RetentionRun:
    """What one run took away, by topic. `cancelled`: it was told to stop before it was through.

    `held_back` names the topics with records that stay only for their mirror in Kafka.
    """

    by_topic: dict[str, Swept]
    cancelled: bool = False
    held_back: dict[str, HeldBack] = field(default_factory=dict)

    @property
    def total(self) -> Swept:
        return sum(self.by_topic.values(), Swept())


@dataclass(frozen=True, slots=True)
class LogStats:
    """Counters since the log was opened, and what it holds now.

    `routes_cached` is of now, `counters_restored` as of opening. `topics` and what follows it are
    what the log holds; `bytes` are those of stored batches.
    """

    routes_cached: int
    counters_restored: int
    cache_hits: int
    cache_misses: int
    duplicates_dropped: int
    records_appended: int
    syncs: int
    positions_stored: int = 0  # of groups; whoever follows them looks again when it has grown
    publishers_remembered: int = 0  # this and the next two when expiry looked last
    batch_writers_remembered: int = 0
    stream_writers_remembered: int = 0
    publishers_expired: int = 0
    batch_writers_expired: int = 0
    topics: int = 0
    partitions: int = 0
    records: int = 0
    bytes: int = 0
    groups: int = 0


@dataclass(frozen=True, slots=True)
class Earliest:
    """The first record still kept."""


@dataclass(frozen=True, slots=True)
class Latest:
    """What is written from now on."""


@dataclass(frozen=True, slots=True)
class AtOffset:
    """This offset."""

    offset: int


@dataclass(frozen=True, slots=True)
class AtTimestamp:
    """The first record that is as late as this."""

    ts_ms: int


Start = Earliest | Latest | AtOffset | AtTimestamp


DEFAULT_START: Start = Earliest()
"""Where a consumer begins that does not say where: nothing is left out. For HTTP, SQL, the client
and the command line; a Spark stream begins as one of Spark's Kafka source does.
"""


def words(ops: frozenset[Op]) -> str:
    """Operations as people write them: "insert, update"."""
    return ", ".join(op.name.lower() for op in sorted(ops))
