"""One protocol for a log, wherever it is: in this process, at a host, or behind a url.

Whatever takes a log takes this. One contract suite runs on every form of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self

from duolog.log.damage_model import DamagedOffsets, Hole
from duolog.log.fetched import Fetched, FetchedEncoded
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
from duolog.log.part import Part
from duolog.log.routing.given_rows import RowsBeforeGiven
from duolog.log.routing.plan import RoutingPlan
from duolog.log.staging import StagingPlace

if TYPE_CHECKING:
    import pyarrow as pa

    from duolog.log.routing.prepare import PreparedTable

TopicRef = str | int
"""A topic's name, alias or id."""

Place = tuple[TopicRef, int, int]
"""A topic, a partition, an offset."""

DEFAULT_FETCH_RECORDS = 100_000
DEFAULT_FETCH_BYTES = 8 << 20


class LogAccess(Protocol):
    """A topic log. Whatever returns has happened durably; whatever raises is a DuologError."""

    @property
    def log_id(self) -> str:
        """This log and no other; a copy has another."""

    @property
    def max_record_bytes(self) -> int:
        """Larger records are refused: key, value, headers and table together."""

    @property
    def max_timestamp_ahead_seconds(self) -> float:
        """Records whose time is further ahead of the clock of the log's owner are refused."""

    # -- topics and routes

    def create_topic(
        self, name: str, settings: TopicSettings = ..., *, if_not_exists: bool = False
    ) -> Topic: ...
    def topic(self, reference: TopicRef, *, topic_id: int | None = None) -> Topic:
        """The topic; TopicRecreated when it has another id than the one that is named.

        Whoever goes on with the id that this answers never gets to another topic of its name.
        """

    def topics(self) -> tuple[Topic, ...]: ...
    def add_route(self, reference: TopicRef, route: Route) -> Topic: ...
    def drop_route(
        self, reference: TopicRef, table: str, ops: frozenset[Op] | None = None
    ) -> Topic: ...
    def set_retention(self, reference: TopicRef, retention: Retention) -> Topic: ...
    def set_partitions(self, reference: TopicRef, partitions: int) -> Topic:
        """Give it more partitions. Keys may move to other partitions from then on.

        Groups that have a position in the topic begin with the first records of the new ones.
        """

    def clear_topic(self, reference: TopicRef) -> Swept:
        """Remove all records. Offsets go on, routes and positions stay."""

    def drop_topic(self, reference: TopicRef, *, if_exists: bool = False) -> Swept:
        """Remove the topic with its records, times and positions."""

    def routing_plan(self) -> RoutingPlan:
        """All routes, to be taken along to where changes are routed."""

    def prepare_rows(
        self, table: str, schema: pa.Schema, key_columns: Sequence[str]
    ) -> PreparedTable:
        """The routes of a table, settled for rows of this schema, to be taken along to tasks.

        Here schemas are registered; what a route or a format cannot take is refused.
        """

    # -- writing

    def append(
        self,
        writer: Writer,
        epoch: int,
        parts: Sequence[Part],
        *,
        begin_anywhere: bool = False,
        at_ms: int | None = None,
        note: str = "",
    ) -> Appended:
        """Write one epoch, all of it or nothing.

        The same epoch again answers what it got the first time if its content is the same, and is
        refused if it is not. A stream's epochs follow one another from 0 (or, told so, from
        anywhere); a batch writer's only grow. `at_ms` says when the epoch was made, for
        `last_epoch` to tell a writer that has to make it again, and so does `note` with whatever
        else it wants to know then (1,000 characters).
        """

    def last_epoch(self, writer: Writer) -> Appended | None: ...
    def forget_writer(self, writer: Writer) -> bool:
        """Forget a writer that will not come again. What it wrote stays."""

    def staging(self, writer: Writer, epoch: int) -> StagingPlace:
        """Where tasks stage parts of this epoch. What is in it goes once the epoch is committed."""

    def publish(
        self,
        reference: TopicRef,
        records: Sequence[Record] | Record,
        *,
        writer: str | None = None,
        sequence: int | None = None,
        in_order: bool = False,
    ) -> tuple[Placed, ...]:
        """Write single records, all or none.

        With a writer and a sequence it is safe to send them again: the first record has this
        sequence, each other one the next, and one that was written before is only looked up,
        however the records are grouped. The last 1,024 sequences of a writer are remembered, and
        all of its last call.

        Sequences may come in any order and leave some out. Told `in_order`, SequenceGap refuses one
        that does not follow the highest, and SequenceOutOfOrder one below it that was never
        published. A writer that the log does not know may begin anywhere.
        """

    def last_sequence(self, writer: str) -> int | None:
        """The highest sequence that a publisher has used; None when the log does not know it, or
        has forgotten it.
        """

    def publish_rows(
        self,
        table: str,
        op: Op,
        rows: Any,
        key_columns: Sequence[str],
        *,
        before: RowsBeforeGiven | None = None,
        unrouted: Unrouted = Unrouted.FAIL,
        ts_ms: int | None = None,
        writer: str | None = None,
        sequence: int | None = None,
        in_order: bool = False,
    ) -> tuple[Placed, ...]:
        """Write rows of a table (dicts or Arrow) to every topic with a route for them.

        `before` has the rows before an update or delete, one for each, and None where it is not
        known; without it a delete's `rows` are the old rows. Changes that no route takes are
        refused, unless `unrouted` drops them.

        Sequences count the records that the routes make: the next one is `sequence` plus the
        number of places returned. Send the same rows in the same groups again, and with the same
        `ts_ms` (when the change was made), which some envelopes carry in the value.
        """

    # -- reading

    def offsets(self, reference: TopicRef) -> tuple[PartitionOffsets, ...]: ...
    def all_offsets(self) -> tuple[PartitionOffsets, ...]:
        """Of all topics, by name and partition: one call, however many there are."""

    def record_times(self, places: Sequence[Place]) -> tuple[int | None, ...]:
        """When the records at these places were made, in the order in which they are named.

        Where nothing can be read at an offset, of the next record that can be. None where there is
        no record: behind the end, before the start, in a topic that is gone.
        """

    def resolve(self, reference: TopicRef, partition: int, start: Start) -> int:
        """The offset at which a read from there begins."""

    def fetch(
        self,
        reference: TopicRef,
        partition: int,
        offset: int,
        *,
        max_records: int = DEFAULT_FETCH_RECORDS,
        max_bytes: int = DEFAULT_FETCH_BYTES,
        skip_damaged: bool = False,
    ) -> Fetched:
        """Records from an offset on, at least one if there is one. Does not wait.

        At a batch that cannot be decoded: DamagedBatch, or with `skip_damaged` what is behind it.
        `left_out` then says what was passed over.
        """

    def fetch_encoded(
        self,
        reference: TopicRef,
        partition: int,
        offset: int,
        *,
        max_records: int = DEFAULT_FETCH_RECORDS,
        max_bytes: int = DEFAULT_FETCH_BYTES,
        skip_damaged: bool = False,
    ) -> FetchedEncoded:
        """Whole batches as they are stored, at least one if there is one. Does not wait.

        Holes are among them. Most damage is found by whoever decodes; what is found before comes
        as a hole with `skip_damaged`, and as DamagedBatch without.

        The first may begin before the offset and the last may reach beyond `max_records`;
        `max_bytes` counts what is stored. To be decoded by whoever wants the records.
        """

    def look_for_damage(
        self, reference: TopicRef, partition: int, offset: int
    ) -> DamagedOffsets | None:
        """Whether the batch that holds an offset can be decoded by its owner, who remembers it."""

    def damage(self, reference: TopicRef | None = None) -> tuple[DamagedOffsets, ...]:
        """The damage that readers have met since the log was opened, and that is still there."""

    def holes(self, reference: TopicRef | None = None) -> tuple[Hole, ...]:
        """What was skipped of what the log keeps."""

    def skip_to(
        self, reference: TopicRef, partition: int, to_offset: int, *, by: str = ""
    ) -> tuple[Hole, ...]:
        """Give up the records of the damaged batches before an offset: the one that ends there,
        those directly before it, and those that are known. What can be read stays.

        Offsets stay used, and all readers pass over them. `by` is remembered with the hole. The
        same again answers the same holes.
        """

    def wait_for_append(
        self,
        positions: Mapping[tuple[str, int], int] | Mapping[tuple[int, int], int],
        timeout_seconds: float | None = None,
    ) -> bool:
        """Wait until one of these partitions has a record at or after its offset."""

    # -- groups

    def group_position(
        self, group: str, reference: TopicRef, partition: int
    ) -> GroupPosition | None: ...
    def group_positions(
        self, group: str | None = None, reference: TopicRef | None = None
    ) -> tuple[GroupPosition, ...]: ...
    def wait_for_positions(self, stored: int, timeout_seconds: float | None = None) -> int:
        """Wait until the number of positions that were stored, as `stats` has it, is another one
        than this; what it is then, or still is when the time is up.
        """

    def group_members(self, group: str | None = None) -> tuple[GroupMember, ...]:
        """Who reads for a group now, of all groups if none is given. A log that nobody serves has
        no members.
        """

    def ack(
        self,
        group: str,
        reference: TopicRef,
        upto_offset: int,
        partition: int | None = None,
        *,
        side: Side = Side.NATIVE,
    ) -> GroupPosition:
        """Everything up to and including this offset is done. Never moves a group back."""

    def seek(
        self,
        group: str,
        reference: TopicRef,
        partition: int,
        position: int,
        *,
        expected_version: int | None = None,
        side: Side = Side.NATIVE,
    ) -> GroupPosition:
        """Move a group anywhere; with a version, only if nobody moved it since (0: it has none).

        Through a host that mirrors, Kafka's offset goes there too, and not while the group has
        members there.
        """

    def begin_group(
        self, group: str, reference: TopicRef, positions: Mapping[int, int]
    ) -> tuple[GroupPosition, ...]:
        """Store where a group begins, in those of these partitions where it has no position.

        A position that is there stays. Gives the group's position in each of them, durable. So
        whoever reads first says where a group begins, and a restart changes nothing about it. It
        is no acknowledgement: what Kafka holds for the group goes before it.
        """

    def remember_kafka(
        self,
        group: str,
        reference: TopicRef,
        partition: int,
        seen: KafkaSeen,
        *,
        expected_version: int,
        position: int | None = None,
    ) -> GroupPosition:
        """Store what Kafka was last seen at, and in the same write move the group after it.

        Only if nobody moved the group since. The version grows with a move, not with a memory.
        """

    def settle_group(
        self,
        group: str,
        reference: TopicRef,
        partition: int | None = None,
        *,
        timeout_seconds: float = 30.0,
    ) -> Settled:
        """Wait until the group is at one place here and in Kafka, in one partition or in all.

        At once where nothing is mirrored. Never raises for what Kafka does: that is pending.
        """

    def delete_group(
        self, group: str, reference: TopicRef | None = None, *, side: Side = Side.NATIVE
    ) -> int:
        """Forget where a group was; how many positions that were.

        Through a host that mirrors, also in Kafka, and not while it has members there.
        """

    # -- the mirror in Kafka

    def mirror(self, reference: TopicRef, partition: int) -> Mirror | None:
        """What is remembered of a partition's mirror."""

    def mirrors(self, reference: TopicRef | None = None) -> tuple[Mirror, ...]:
        """Of all partitions that have one, of one topic if given."""

    def begin_mirror(
        self, reference: TopicRef, partition: int, target: MirrorTarget, *, version: int = 0
    ) -> Mirror:
        """Begin a mirror, in place of the one that has this version (0: there is none)."""

    def change_mirror(self, reference: TopicRef, partition: int, change: MirrorChange) -> int:
        """Change runs and skips, if nobody has since the version was read; the new version."""

    def forget_mirror(self, reference: TopicRef, partition: int) -> bool: ...
    def mirror_modes(self) -> MirrorModes:
        """What is wanted of each topic's mirror."""

    def set_mirror_mode(self, reference: TopicRef | None, mode: MirrorMode) -> tuple[str, ...]:
        """Pause, resume or detach the mirror of a topic, or of all; the topics that it changed.

        Detaching forgets what is remembered of it, and what groups were last seen at in Kafka.
        Resuming a mirror that copies in Kafka have halted leaves those where they are.
        """

    def tell_mirror(self, reports: tuple[MirrorReport, ...], *, anew: bool = False) -> None:
        """A mirror's worker says how partitions are; anew: what was said before does not hold.

        Nothing is stored. It is forgotten when nobody has told anything for 15 s.
        """

    def mirror_reports(self, reference: TopicRef | None = None) -> tuple[MirrorReport, ...]:
        """What a worker has said last of its partitions, of one topic if given."""

    def mirror_producer(self, cluster_id: str) -> MirrorProducer | None:
        """The producer id that this log, and no copy of it, has in a cluster."""

    def keep_mirror_producer(self, producer: MirrorProducer) -> MirrorProducer:
        """Keep a producer id, unless there is one for its cluster; the one that is kept."""

    # -- upkeep

    def enforce_retention(
        self,
        reference: TopicRef | None = None,
        *,
        cancelled: Callable[[], bool] = ...,
    ) -> RetentionRun:
        """Remove what a topic, or each one, is not to keep any longer.

        In the process that owns the log, and of all topics: also forget publishers and batch
        writers that have not written for `writer_expiration_seconds`. It looks for them once an
        hour, and forgets those who were idle at two looks.
        """

    def stats(self) -> LogStats: ...
    def checkpoint(self) -> str:
        """Make a consistent copy in the log's own folder, for a backup to fetch; its name.

        It takes the place of the one before.
        """

    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...
