"""What a host can be asked to do with its log: one table for both sides of the wire.

Reads, and what a second time changes nothing, may be sent again when an answer was lost. What may
not is left for the caller to look at: OutcomeUnknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from duolog.log.damage_model import DamagedOffsets, Hole
from duolog.log.groups_seen import KafkaSeen
from duolog.log.mirror_model import Mirror, MirrorChange, MirrorProducer, MirrorTarget
from duolog.log.mirror_modes import MirrorMode, MirrorModes, MirrorReport
from duolog.log.model import (
    Appended,
    GroupMember,
    GroupPosition,
    LogStats,
    Op,
    PartitionOffsets,
    Placed,
    Record,
    Retention,
    RetentionRun,
    Route,
    Settled,
    Side,
    Start,
    Swept,
    Topic,
    TopicSettings,
    Unrouted,
    Writer,
)

Arguments = Mapping[str, Any]
Answered = TypeVar("Answered")


def _always(_: Arguments) -> bool:
    return True


def _never(_: Arguments) -> bool:
    return False


def _with_sequence(arguments: Arguments) -> bool:
    return arguments.get("writer") is not None and arguments.get("sequence") is not None


@dataclass(frozen=True)  # a generic one with slots cannot be frozen
class Call(Generic[Answered]):
    """One member of `LogAccess`: the types of its arguments and of its answer.

    `may_repeat` says whether it may be sent again. A long one shows signs of life meanwhile. What
    is `optional` may be left out: an older Duolog on the other side knows no such argument.
    """

    name: str
    answer: Any  # the type Answered, for those who decode
    parameters: Mapping[str, Any]
    may_repeat: Callable[[Arguments], bool] = _always
    is_long: bool = False
    optional: frozenset[str] = frozenset()


_TOPIC: Final = {"reference": Any}
_SEQUENCED: Final = {"writer": Any, "sequence": Any, "in_order": Any}
_GROUP: Final = {"group": Any, "reference": Any, "partition": Any}
_EPOCH: Final = {"writer": Writer, "epoch": Any, "parts": Any}
_ROWS: Final = {"table": Any, "op": Op, "rows": bytes, "key_columns": Any, "ts_ms": Any}
_IMAGES: Final = {"before": bytes | None, "unrouted": Unrouted}

MAX_RECORD_BYTES = Call[int]("max_record_bytes", Any, {})
MAX_TIMESTAMP_AHEAD_SECONDS = Call[float]("max_timestamp_ahead_seconds", Any, {})
STATS = Call[LogStats]("stats", LogStats, {})

GET_TOPIC = Call[Topic](
    "topic", Topic, {**_TOPIC, "topic_id": Any}, optional=frozenset({"topic_id"})
)
TOPICS = Call[tuple[Topic, ...]]("topics", tuple[Topic, ...], {})
CREATE_TOPIC = Call[Topic](
    "create_topic",
    Topic,
    {"name": Any, "settings": TopicSettings, "if_not_exists": Any},
    lambda arguments: bool(arguments["if_not_exists"]),
)
ADD_ROUTE = Call[Topic]("add_route", Topic, {**_TOPIC, "route": Route}, _never)
DROP_ROUTE = Call[Topic](
    "drop_route", Topic, {**_TOPIC, "table": Any, "ops": frozenset[Op] | None}, _never
)
SET_RETENTION = Call[Topic]("set_retention", Topic, {**_TOPIC, "retention": Retention})
SET_PARTITIONS = Call[Topic]("set_partitions", Topic, {**_TOPIC, "partitions": Any})
CLEAR_TOPIC = Call[Swept]("clear_topic", Swept, _TOPIC, _never, is_long=True)
DROP_TOPIC = Call[Swept]("drop_topic", Swept, {**_TOPIC, "if_exists": Any}, _never, is_long=True)

APPEND = Call[Appended](
    "append",
    Appended,
    {**_EPOCH, "begin_anywhere": Any, "at_ms": Any, "note": Any},
    is_long=True,
)
LAST_EPOCH = Call[Appended | None]("last_epoch", Appended | None, {"writer": Writer})
FORGET_WRITER = Call[bool]("forget_writer", Any, {"writer": Writer}, is_long=True)
PUBLISH = Call[tuple[Placed, ...]](
    "publish",
    tuple[Placed, ...],
    {**_TOPIC, "records": tuple[Record, ...], **_SEQUENCED},
    _with_sequence,
)
PUBLISH_ROWS = Call[tuple[Placed, ...]](
    "publish_rows", tuple[Placed, ...], {**_ROWS, **_IMAGES, **_SEQUENCED}, _with_sequence
)
LAST_SEQUENCE = Call[int | None]("last_sequence", Any, {"writer": Any})

OFFSETS = Call[tuple[PartitionOffsets, ...]]("offsets", tuple[PartitionOffsets, ...], _TOPIC)
ALL_OFFSETS = Call[tuple[PartitionOffsets, ...]]("all_offsets", tuple[PartitionOffsets, ...], {})
RECORD_TIMES = Call[tuple[int | None, ...]]("record_times", tuple[int | None, ...], {"places": Any})
RESOLVE = Call[int]("resolve", Any, {**_TOPIC, "partition": Any, "start": Start})

LOOK_FOR_DAMAGE = Call[DamagedOffsets | None](
    "look_for_damage", DamagedOffsets | None, {**_TOPIC, "partition": Any, "offset": Any}
)
DAMAGE = Call[tuple[DamagedOffsets, ...]]("damage", tuple[DamagedOffsets, ...], _TOPIC)
HOLES = Call[tuple[Hole, ...]]("holes", tuple[Hole, ...], _TOPIC)
SKIP_TO = Call[tuple[Hole, ...]](
    "skip_to", tuple[Hole, ...], {**_TOPIC, "partition": Any, "to_offset": Any, "by": str}
)

GROUP_POSITION = Call[GroupPosition | None]("group_position", GroupPosition | None, _GROUP)
GROUP_POSITIONS = Call[tuple[GroupPosition, ...]](
    "group_positions", tuple[GroupPosition, ...], {"group": str | None, "reference": Any}
)
GROUP_MEMBERS = Call[tuple[GroupMember, ...]](
    "group_members", tuple[GroupMember, ...], {"group": str | None}
)
ACK = Call[GroupPosition]("ack", GroupPosition, {**_GROUP, "upto_offset": Any, "side": Side})
SEEK = Call[GroupPosition](
    "seek",
    GroupPosition,
    {**_GROUP, "position": Any, "expected_version": Any, "side": Side},
    _never,
)
BEGIN_GROUP = Call[tuple[GroupPosition, ...]](
    "begin_group",
    tuple[GroupPosition, ...],
    {"group": Any, "reference": Any, "positions": dict[int, int]},
)
REMEMBER_KAFKA = Call[GroupPosition](
    "remember_kafka",
    GroupPosition,
    {**_GROUP, "seen": KafkaSeen, "expected_version": Any, "position": Any},
    lambda arguments: arguments["position"] is None,
)
SETTLE_GROUP = Call[Settled](
    "settle_group", Settled, {**_GROUP, "timeout_seconds": float}, is_long=True
)
DELETE_GROUP = Call[int](
    "delete_group", Any, {"group": Any, "reference": Any, "side": Side}, _never
)

_PARTITION: Final = {**_TOPIC, "partition": Any}

MIRROR = Call[Mirror | None]("mirror", Mirror | None, _PARTITION)
MIRRORS = Call[tuple[Mirror, ...]]("mirrors", tuple[Mirror, ...], _TOPIC)
BEGIN_MIRROR = Call[Mirror](
    "begin_mirror", Mirror, {**_PARTITION, "target": MirrorTarget, "version": Any}, _never
)
CHANGE_MIRROR = Call[int]("change_mirror", Any, {**_PARTITION, "change": MirrorChange}, _never)
FORGET_MIRROR = Call[bool]("forget_mirror", Any, _PARTITION)
MIRROR_MODES = Call[MirrorModes]("mirror_modes", MirrorModes, {})
SET_MIRROR_MODE = Call[tuple[str, ...]](
    "set_mirror_mode", tuple[str, ...], {**_TOPIC, "mode": MirrorMode}
)
TELL_MIRROR = Call[None]("tell_mirror", Any, {"reports": tuple[MirrorReport, ...], "anew": Any})
MIRROR_REPORTS = Call[tuple[MirrorReport, ...]]("mirror_reports", tuple[MirrorReport, ...], _TOPIC)
MIRROR_PRODUCER = Call[MirrorProducer | None](
    "mirror_producer", MirrorProducer | None, {"cluster_id": Any}
)
KEEP_MIRROR_PRODUCER = Call[MirrorProducer](
    "keep_mirror_producer", MirrorProducer, {"producer": MirrorProducer}
)

ENFORCE_RETENTION = Call[RetentionRun](
    "enforce_retention", RetentionRun, _TOPIC, _never, is_long=True
)

CHECKPOINT = Call[str]("checkpoint", Any, {}, is_long=True)

CALLS: Final[Mapping[str, Call[Any]]] = {
    call.name: call for call in list(globals().values()) if isinstance(call, Call)
}
"""All of them by name."""
