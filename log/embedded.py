"""A log that this process owns and works on itself."""

from __future__ import annotations

import atexit
import os
import shutil
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Protocol, Self
from weakref import WeakSet

from duolog.errors import DuologError, InvalidSetting, NotWritten, UnknownTopic
from duolog.log.access import DEFAULT_FETCH_BYTES, DEFAULT_FETCH_RECORDS, Place, TopicRef
from duolog.log.appends import Appender
from duolog.log.backup import BackupNote, write_backup, write_checkpoint
from duolog.log.cache import BatchCache
from duolog.log.catalogue import Catalogue, partition_of, partitions_of
from duolog.log.checked import store_checked
from duolog.log.commits import Committer, Nothing
from duolog.log.damage import Known
from duolog.log.damage_model import DamagedOffsets, Hole
from duolog.log.definitions import ChangeCatalogue, ClearTopic, DropTopic, GrowTopic
from duolog.log.epochs import CommittedEpochs
from duolog.log.expiry import Expiry
from duolog.log.fetched import Fetched, FetchedEncoded
from duolog.log.forgetting import forget_writer
from duolog.log.forked import Forked, check_may_open, leave_to_parent_in_child
from duolog.log.group_use import GroupUses, IdleGroup
from duolog.log.groups import Groups
from duolog.log.groups_seen import KafkaSeen
from duolog.log.heads import Listener
from duolog.log.identity import Identity, check_format, establish
from duolog.log.joining import Joining
from duolog.log.location import check_location
from duolog.log.lost_files import left_files, remove_kept
from duolog.log.mark import Mark
from duolog.log.merging import BackgroundMerger
from duolog.log.mirror_model import Mirror, MirrorChange, MirrorProducer, MirrorTarget
from duolog.log.mirror_modes import MirrorMode, MirrorModes, MirrorReport
from duolog.log.mirroring import Mirrors
from duolog.log.model import (
    Appended,
    Format,
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
    TopicPartition,
    TopicSettings,
    Unrouted,
    Writer,
)
from duolog.log.names import MAX_PARTITIONS, check_epoch, check_topic_name, check_writer
from duolog.log.open_files import allow_many_files, is_too_many, too_many_open_files
from duolog.log.options import LogOptions
from duolog.log.owner import (
    UNFINISHED,
    HostHint,
    Ownership,
    file_of_another,
    sync_folder,
    take_ownership,
)
from duolog.log.part import Part
from duolog.log.publishing import Publisher, Then
from duolog.log.reads import Reader, damaged_offsets
from duolog.log.record_check import records_of
from duolog.log.refill import PartitionRefill
from duolog.log.retention import enforce_retention
from duolog.log.routed import routed_records
from duolog.log.routing.codec import Codec, Codecs
from duolog.log.routing.given_rows import RowsBeforeGiven
from duolog.log.routing.plan import RoutingPlan
from duolog.log.routing.prepare import BUILT_IN, PreparedTable, prepare
from duolog.log.schemas import SchemaDocuments
from duolog.log.skipping import SkipDamage, load_holes
from duolog.log.staging import LocalStaging, staging_folder, sweep_all
from duolog.log.state import State
from duolog.log.store import Store, WriteFailed, named_failure
from duolog.log.taking import checked_places
from duolog.log.topic_ids import check_topic_id
from duolog.log.whole import Whole, check_whole


class Attendance(Protocol):
    """Whoever serves the log knows who reads for a group. Asked from any thread."""

    def members(self, group: str | None) -> tuple[GroupMember, ...]:
        """The members of a group, or of all."""

    def check_no_members(self, group: str, topic_id: int | None, what: str) -> None:
        """Raises GroupHasMembers: it cannot be done so long as there are some."""


CodecsFor = Callable[[SchemaDocuments], Codecs]


def open_log(
    path: str | os.PathLike[str],
    *,
    create: bool = True,
    options: LogOptions | None = None,
    codecs_for: CodecsFor = lambda _: BUILT_IN,
    ownership: Ownership | None = None,
) -> EmbeddedLog:
    """Own and open the log in a directory; use it as a context manager, or close it.

    `codecs_for` gives the formats that rows can be written in, for the log's schema documents.
    Whoever has the ownership already hands it over: it is released with the log, or when this
    raises.
    """
    options = options or LogOptions()
    allow_many_files()
    folder = check_location(path)
    with ExitStack() as undo:
        if ownership is not None:
            undo.callback(ownership.release)
        check_may_open(folder)
        if ownership is None:
            ownership = take_ownership(
                folder, wait_seconds=options.lock_wait_seconds, clock=options.clock, create=create
            )
            undo.callback(ownership.release)
        try:
            check_format(folder)
            ownership.close_to_others()
            mark = Mark(folder / "mark")
            undo.callback(mark.close)
            store = Store(folder / "db", mark, options)
            store.open()
            undo.callback(store.close)
            ownership.close_to_others()  # also what was made there
            if not mark.sequence:
                sync_folder(folder)  # `mark` and `db` are new in it
            state = State(folder, store, options, BatchCache(options.cache_bytes))
            state.is_in_place = ownership.is_in_place
            identity = establish(store, folder)
            state.load()
            store_checked(store, state.checked)
        except WriteFailed as failure:
            raise named_failure(failure, folder) from failure
        except OSError as error:
            raise _not_opened(folder, error) from error
        remove_kept(left_files(folder / "staging"))  # the log is open: it needs none of them
        sweep_all(folder, CommittedEpochs(store), options.clock.now_ms())
        if (folder / UNFINISHED).exists():  # of a restore that has come to its end, all but this
            shutil.rmtree(folder / UNFINISHED, ignore_errors=True)
        undo.pop_all()
    return EmbeddedLog(state, identity, ownership, mark, codecs_for)


def _not_opened(folder: Path, error: OSError) -> DuologError:
    if is_too_many(error):
        return too_many_open_files(f"The log in {folder} could not be opened")
    if isinstance(error, PermissionError) and isinstance(error.filename, str):
        return file_of_another(Path(error.filename), folder)
    return NotWritten(
        f"The log in {folder} could not be opened: {error.strerror or error}. Look at its disk and "
        "open it again; nothing was changed."
    )


_open_here: WeakSet[EmbeddedLog] = WeakSet()


@atexit.register
def _close_all() -> None:
    """Python ends threads of ours that are inside RocksDB in a way that aborts the process."""
    for log in tuple(_open_here):
        with suppress(Exception):
            log.close()


class EmbeddedLog:
    """The embedded form of `LogAccess`. Safe to use from many threads."""

    def __init__(
        self,
        state: State,
        identity: Identity,
        ownership: Ownership,
        mark: Mark,
        codecs_for: CodecsFor,
    ) -> None:
        self._state = state
        self._ownership = ownership
        self._mark = mark
        self._committer = Committer(state)
        self._most_partitions = MAX_PARTITIONS
        self._publisher = Publisher(state, self._committer)
        self._joining = Joining(state)
        self._appender = Appender(state, self._joining)
        self._reader = Reader(state)
        self._merger = BackgroundMerger(state, self._committer)
        self._groups = Groups(state, self._committer)
        self._group_uses = GroupUses(state, self._committer, state.options.clock)
        self._mirrors = Mirrors(state, self._committer, identity.log_id)
        self._expiry = Expiry(state, self._committer)
        self._attendance: Attendance | None = None
        self.schema_documents = SchemaDocuments(state, self._committer)
        self._codecs = codecs_for(self.schema_documents)
        self._when_closed = ExitStack()
        self._one_checkpoint = threading.Lock()
        self.identity = identity
        self._is_forked = False
        leave_to_parent_in_child(self)
        _open_here.add(self)

    def leave_to_parent(self) -> None:
        """In a forked child: whatever is asked raises LogForked, and closing changes nothing."""
        self._left_to_parent = (self._state, self._ownership, self._mark)
        forked: Any = Forked(self._state.folder)
        self._state = self._committer = self._publisher = self._appender = self._reader = forked
        self._groups = self._mirrors = self._expiry = self.schema_documents = forked
        self._group_uses = forked
        self._codecs = self._ownership = self._mark = self._one_checkpoint = forked
        self._attendance = self._joining = self._merger = forked
        self._is_forked = True

    @property
    def log_id(self) -> str:
        return self.identity.log_id

    @property
    def max_record_bytes(self) -> int:
        return self._state.options.max_record_bytes

    @property
    def max_timestamp_ahead_seconds(self) -> float:
        return self._state.options.max_timestamp_ahead_seconds

    @property
    def folder(self) -> Path:
        return self._state.folder

    @property
    def options(self) -> LogOptions:
        return self._state.options

    # -- topics and routes

    def create_topic(
        self,
        name: str,
        settings: TopicSettings | None = None,
        *,
        if_not_exists: bool = False,
    ) -> Topic:
        wanted = settings or TopicSettings()

        def change(catalogue: Catalogue, now_ms: int) -> tuple[Catalogue, Topic]:
            known = catalogue.by_name.get(check_topic_name(name))
            if if_not_exists and known is not None and known.name == name:
                return catalogue, known
            changed, topic = catalogue.with_topic(name, wanted, now_ms)
            self._check_partitions(topic)
            return changed, topic

        return self._change(change)

    def codec(self, kind: Format) -> Codec:
        """How rows are written in a format here."""
        return self._codecs[kind]

    def topic(self, reference: TopicRef, *, topic_id: int | None = None) -> Topic:
        return check_topic_id(self._state.catalogue.topic(reference), topic_id)

    def topics(self) -> tuple[Topic, ...]:
        return tuple(sorted(self._state.catalogue.by_id.values(), key=lambda topic: topic.name))

    def add_route(self, reference: TopicRef, route: Route) -> Topic:
        return self._change(lambda catalogue, now: catalogue.with_route(reference, route, now))

    def drop_route(
        self, reference: TopicRef, table: str, ops: frozenset[Op] | None = None
    ) -> Topic:
        return self._change(
            lambda catalogue, now: catalogue.without_route(reference, table, ops, now)
        )

    def set_retention(self, reference: TopicRef, retention: Retention) -> Topic:
        return self._change(
            lambda catalogue, now: catalogue.with_retention(reference, retention, now)
        )

    def set_partitions(self, reference: TopicRef, partitions: int) -> Topic:
        def change(catalogue: Catalogue, now_ms: int) -> tuple[Catalogue, Topic]:
            changed, topic = catalogue.with_partitions(reference, partitions, now_ms)
            if changed is not catalogue:
                self._check_partitions(topic)
            return changed, topic

        job = GrowTopic(change)
        self._committer.run(job)
        return job.topic

    def limit_partitions(self, most: int) -> None:
        """Let topics be made with so many, and grow to so many; those that have more go on."""
        self._most_partitions = most

    def _check_partitions(self, topic: Topic) -> None:
        if topic.partitions > self._most_partitions:
            raise InvalidSetting(
                f"A host gives a topic at most {self._most_partitions} partitions "
                f"(max_partitions in [topics]); '{topic.name}' would have {topic.partitions}. Ask "
                "for fewer, or raise it."
            )

    def clear_topic(self, reference: TopicRef) -> Swept:
        job = ClearTopic(reference)
        self._committer.run(job)
        return job.swept

    def drop_topic(self, reference: TopicRef, *, if_exists: bool = False) -> Swept:
        job = DropTopic(reference)
        try:
            self._committer.run(job)
        except UnknownTopic:
            if not if_exists:
                raise
        return job.swept

    def routing_plan(self) -> RoutingPlan:
        return self._state.catalogue.plan

    def _change(self, change: Callable[[Catalogue, int], tuple[Catalogue, Topic]]) -> Topic:
        job = ChangeCatalogue(change)
        self._committer.run(job)
        return job.topic

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
        return self._appender.append(
            writer, epoch, parts, begin_anywhere=begin_anywhere, at_ms=at_ms, note=note
        )

    def last_epoch(self, writer: Writer) -> Appended | None:
        return self._appender.last_epoch(writer)

    def forget_writer(self, writer: Writer) -> bool:
        return forget_writer(self._state, self._committer, writer)

    def staging(self, writer: Writer, epoch: int) -> LocalStaging:
        return LocalStaging(self.staging_folder(writer, epoch))

    def staging_folder(self, writer: Writer, epoch: int) -> Path:
        """Where parts of this epoch may be staged as files; swept once it is committed."""
        check_epoch(epoch)
        return staging_folder(self._state.folder, check_writer(writer), epoch)

    def publish(
        self,
        reference: TopicRef,
        records: Sequence[Record] | Record,
        *,
        writer: str | None = None,
        sequence: int | None = None,
        in_order: bool = False,
    ) -> tuple[Placed, ...]:
        topic = self.topic(reference)
        targets = [(topic, record) for record in records_of(records)]
        return self._publisher.publish(targets, writer, sequence, in_order=in_order)

    def publish_then(
        self,
        reference: TopicRef,
        records: Sequence[Record],
        then: Then,
        *,
        writer: str | None = None,
        sequence: int | None = None,
        in_order: bool = False,
    ) -> None:
        """Publish without waiting: for an event loop, which has no thread to spare. `then` is told
        in the committer's thread. What can be refused at once is raised.
        """
        topic = self.topic(reference)
        targets = [(topic, record) for record in records_of(records)]
        self._publisher.submit(targets, writer, sequence, then, in_order=in_order)

    def committer_answers(self, then: Callable[[None, BaseException | None], object]) -> None:
        """Call back from the committer's thread, when it is not held up in a write."""
        self._committer.submit(Nothing(then))

    def last_sequence(self, writer: str) -> int | None:
        return self._publisher.last_sequence(writer)

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
        targets = routed_records(
            self._state.catalogue,
            self._codecs,
            table,
            op,
            rows,
            key_columns,
            ts_ms=self._time_of_rows(writer, sequence) if ts_ms is None else ts_ms,
            before=before,
            unrouted=unrouted,
        )
        return self._publisher.publish(targets, writer, sequence, in_order=in_order)

    def _time_of_rows(self, writer: str | None, sequence: int | None) -> int:
        """Now; or when they came first, if they come again: payloads may carry the time."""
        known = self._publisher.published(writer, sequence)
        if known is not None:
            with suppress(DuologError):  # it is gone: nobody knows when it came
                for record in self.fetch(*known.where, known.offset, max_records=1):
                    return record.ts_ms
        return self._state.options.clock.now_ms()

    def prepare_rows(self, table: str, schema: Any, key_columns: Sequence[str]) -> PreparedTable:
        return prepare(self.routing_plan(), table, schema, tuple(key_columns), self._codecs)

    # -- reading

    def offsets(self, reference: TopicRef) -> tuple[PartitionOffsets, ...]:
        topic = self.topic(reference)
        heads = [(where, self._reader.head(topic, where)) for where in partitions_of(topic)]
        return tuple(
            PartitionOffsets(
                topic.name,
                where.partition,
                head.start,
                head.next_offset,
                head.bytes,
                head.last_ts_ms,
            )
            for where, head in heads
        )

    def all_offsets(self) -> tuple[PartitionOffsets, ...]:
        found: list[PartitionOffsets] = []
        for topic in self.topics():
            with suppress(UnknownTopic):  # dropped meanwhile
                found += self.offsets(topic.id)
        return tuple(found)

    def record_times(self, places: Sequence[Place]) -> tuple[int | None, ...]:
        asked = checked_places(places)
        wanted: defaultdict[tuple[TopicRef, int], set[int]] = defaultdict(set)
        for reference, partition, offset in asked:
            wanted[reference, partition].add(offset)
        found: dict[tuple[TopicRef, int], dict[int, int]] = {}
        for (reference, partition), offsets in wanted.items():
            with suppress(UnknownTopic):  # it may have been dropped
                topic = self.topic(reference)
                times = self._reader.record_times(topic, partition, offsets)
                found[reference, partition] = times
        return tuple(
            found.get((reference, partition), {}).get(offset)
            for reference, partition, offset in asked
        )

    def resolve(self, reference: TopicRef, partition: int, start: Start) -> int:
        return self._reader.resolve(self.topic(reference), partition, start)

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
        topic = self.topic(reference)
        return self._reader.fetch(
            topic, partition, offset, max_records, max_bytes, skip_damaged=skip_damaged
        )

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
        topic = self.topic(reference)
        return self._reader.fetch_encoded(
            topic, partition, offset, max_records, max_bytes, skip_damaged=skip_damaged
        )

    def look_for_damage(
        self, reference: TopicRef, partition: int, offset: int
    ) -> DamagedOffsets | None:
        topic = self.topic(reference)
        found = self._reader.look_for_damage(topic, partition, offset)
        return None if found is None else damaged_offsets(topic.name, partition, *found)

    def when_damage_is_found(self, heard: Callable[[DamagedOffsets], object]) -> None:
        """From here on call this for damage that is met for the first time, in the thread that
        meets it.
        """

        def tell(where: TopicPartition, known: Known) -> None:
            topic = self._state.catalogue.by_id.get(where.topic_id)
            if topic is not None:
                damage = damaged_offsets(
                    topic.name, where.partition, known.damage, known.found_at_ms
                )
                heard(damage)

        self._state.damage.when_new = tell

    def damage(self, reference: TopicRef | None = None) -> tuple[DamagedOffsets, ...]:
        topic = self._maybe(reference)
        return self._reader.known_damage(self.topics() if topic is None else (topic,))

    def holes(self, reference: TopicRef | None = None) -> tuple[Hole, ...]:
        state = self._state
        return load_holes(state.store, state.catalogue, state.heads, self._maybe(reference))

    def skip_to(
        self, reference: TopicRef, partition: int, to_offset: int, *, by: str = ""
    ) -> tuple[Hole, ...]:
        job = SkipDamage(self.topic(reference), partition, to_offset, by)
        self._committer.run(job)
        return job.holes

    def wait_for_append(
        self,
        positions: Mapping[tuple[str, int], int] | Mapping[tuple[int, int], int],
        timeout_seconds: float | None = None,
    ) -> bool:
        wanted = {
            partition_of(self.topic(reference), partition): offset
            for (reference, partition), offset in positions.items()
        }

        def check_topics() -> None:
            for where in wanted:
                self.topic(where.topic_id)  # raises when it was dropped meanwhile

        return self._state.heads.wait(wanted, timeout_seconds, check_topics)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call back after each append, from the thread that appended; returns how to stop it."""
        return self._state.heads.listen(listener)

    def listen_to_positions(self, listener: Callable[[], None]) -> Callable[[], None]:
        """The same of group positions that were stored."""
        return self._state.moves.listen(listener)

    # -- groups

    def attend(self, attendance: Attendance) -> None:
        """From here on somebody knows the members of groups."""
        self._attendance = attendance

    def wait_for_positions(self, stored: int, timeout_seconds: float | None = None) -> int:
        return self._state.moves.wait(stored, timeout_seconds)

    def group_members(self, group: str | None = None) -> tuple[GroupMember, ...]:
        return () if self._attendance is None else self._attendance.members(group)

    def group_position(
        self, group: str, reference: TopicRef, partition: int
    ) -> GroupPosition | None:
        position = self._groups.position(group, self.topic(reference), partition)
        if position is not None:  # whoever asks for one of them reads for the group
            self._group_uses.note(group)
        return position

    def group_positions(
        self, group: str | None = None, reference: TopicRef | None = None
    ) -> tuple[GroupPosition, ...]:
        return self._groups.positions(group, self._maybe(reference))

    def ack(
        self,
        group: str,
        reference: TopicRef,
        upto_offset: int,
        partition: int | None = None,
        *,
        side: Side = Side.NATIVE,
    ) -> GroupPosition:
        acknowledged = self._groups.ack(group, self.topic(reference), partition, upto_offset, side)
        self._group_uses.note(group)  # it may have moved nothing
        return acknowledged

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
        topic = self.topic(reference)
        if self._attendance is not None:
            self._attendance.check_no_members(group, topic.id, "moved")
        return self._groups.seek(group, topic, partition, position, expected_version, side)

    def begin_group(
        self, group: str, reference: TopicRef, positions: Mapping[int, int]
    ) -> tuple[GroupPosition, ...]:
        return self._groups.begin(group, self.topic(reference), positions)

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
        topic = self.topic(reference)
        return self._groups.remember_kafka(
            group, topic, partition, seen, expected_version, position
        )

    def settle_group(
        self,
        group: str,
        reference: TopicRef,
        partition: int | None = None,
        *,
        timeout_seconds: float = 30.0,  # noqa: ARG002 - nobody here could change it meanwhile
    ) -> Settled:
        topic = self.topic(reference)
        if partition is not None:
            self._groups.position(group, topic, partition)  # there is such a partition
        mirrored = {each.partition for each in self._mirrors.all(topic)}
        if not mirrored if partition is None else partition not in mirrored:
            return Settled()
        return Settled("no host mirrors the log now; one that does brings both sides together")

    def delete_group(
        self,
        group: str,
        reference: TopicRef | None = None,
        *,
        side: Side = Side.NATIVE,  # noqa: ARG002 - a host that mirrors asks
    ) -> int:
        topic = self._maybe(reference)
        if self._attendance is not None:
            self._attendance.check_no_members(group, None if topic is None else topic.id, "deleted")
        return self._groups.delete(group, topic)

    def note_group_use(self, group: str) -> None:
        """Somebody reads for a group, though nothing is acknowledged. Stored later."""
        self._group_uses.note(group)

    def store_group_uses(self, at_least_every_ms: float) -> None:
        """Make durable when groups were used, where what is stored is older than that."""
        self._group_uses.store(at_least_every_ms)

    def idle_groups(self, before_ms: float, group: str | None = None) -> tuple[IdleGroup, ...]:
        """Groups, of all or of one, for which nobody has read or acknowledged since then."""
        return self._group_uses.idle(before_ms, group)

    def expire_groups(self, groups: Sequence[str], before_ms: float) -> int:
        """Forget such groups, but for those in topics that are mirrored; how many these were."""
        return self._group_uses.expire(groups, before_ms)

    # -- the mirror in Kafka

    def mirror(self, reference: TopicRef, partition: int) -> Mirror | None:
        return self._mirrors.of(self.topic(reference), partition)

    def mirrors(self, reference: TopicRef | None = None) -> tuple[Mirror, ...]:
        return self._mirrors.all(self._maybe(reference))

    def begin_mirror(
        self, reference: TopicRef, partition: int, target: MirrorTarget, *, version: int = 0
    ) -> Mirror:
        return self._mirrors.begin(self.topic(reference), partition, target, version)

    def change_mirror(self, reference: TopicRef, partition: int, change: MirrorChange) -> int:
        return self._mirrors.change(self.topic(reference), partition, change)

    def forget_mirror(self, reference: TopicRef, partition: int) -> bool:
        return self._mirrors.forget(self.topic(reference), partition)

    def mirror_modes(self) -> MirrorModes:
        return self._mirrors.modes()

    def set_mirror_mode(self, reference: TopicRef | None, mode: MirrorMode) -> tuple[str, ...]:
        return self._mirrors.set_mode(self._maybe(reference), mode)

    def tell_mirror(self, reports: tuple[MirrorReport, ...], *, anew: bool = False) -> None:
        self._mirrors.tell(reports, anew=anew)

    def mirror_reports(self, reference: TopicRef | None = None) -> tuple[MirrorReport, ...]:
        return self._mirrors.told(self._maybe(reference))

    def mirror_producer(self, cluster_id: str) -> MirrorProducer | None:
        return self._mirrors.producer(cluster_id)

    def keep_mirror_producer(self, producer: MirrorProducer) -> MirrorProducer:
        return self._mirrors.keep_producer(producer)

    def _maybe(self, reference: TopicRef | None) -> Topic | None:
        return None if reference is None else self.topic(reference)

    # -- upkeep

    def enforce_retention(
        self,
        reference: TopicRef | None = None,
        *,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> RetentionRun:
        if reference is not None:
            topics: tuple[Topic, ...] = (self.topic(reference),)
        else:
            topics = self.topics()
            self._expiry.run_when_due(cancelled)
        return enforce_retention(self._state, self._committer, topics, cancelled)

    def merge_small_batches(self, reference: TopicRef, partition: int) -> int:
        """Merge the small batches at a partition's end now; how many there are fewer.

        The log does it by itself when a partition has got many.
        """
        return self._merger.merge(partition_of(self.topic(reference), partition))

    def stats(self) -> LogStats:
        counters, cache = self._state.counters, self._state.cache
        topics = self.topics()
        heads = [self._state.heads.get(where) for topic in topics for where in partitions_of(topic)]
        return LogStats(
            routes_cached=sum(len(topic.routes) for topic in topics),
            counters_restored=counters.counters_restored,
            cache_hits=cache.hits,
            cache_misses=cache.misses,
            duplicates_dropped=counters.duplicates_dropped,
            records_appended=counters.records_appended,
            syncs=self._state.store.syncs,
            positions_stored=self._state.moves.count,
            publishers_remembered=counters.remembered.publishers,
            batch_writers_remembered=counters.remembered.batch_writers,
            stream_writers_remembered=counters.remembered.streams,
            publishers_expired=counters.publishers_expired,
            batch_writers_expired=counters.batch_writers_expired,
            topics=len(topics),
            partitions=len(heads),
            records=sum(head.records for head in heads),
            bytes=sum(head.bytes for head in heads),
            groups=len(self._state.positions.groups()),
        )

    def join_small_tables(self) -> int:
        """Make one table of some small ones, about 64 MiB; how many, 0 when there are none."""
        self._state.check_in_place()
        return self._joining.step()

    def sweep_staged(self) -> int:
        """Remove staged parts that nobody needs any more; how many folders went."""
        self._state.check_in_place()
        committed = CommittedEpochs(self._state.store)
        return sweep_all(self._state.folder, committed, self._state.options.clock.now_ms())

    def secret(self) -> str:
        """What a host of this log proves itself by, and knows users of this machine by."""
        return self._ownership.secret()

    def announce(self, address: str) -> None:
        """Say where this log's host can be asked, for as long as the log is open."""
        self._ownership.announce(HostHint(address, self.log_id))

    def backup(self, folder: str | os.PathLike[str]) -> Path:
        """Write a consistent copy into a new folder, while the log is in use."""
        self._state.check_in_place()
        return write_backup(self._state, check_location(folder))

    def checkpoint(self) -> str:
        self._state.check_in_place()
        note = BackupNote(self.log_id, self._state.options.clock.now_ms())
        with self._one_checkpoint:
            return write_checkpoint(self._state, note)

    def check_whole(self, advance: Callable[[int], object] = lambda _: None) -> Whole:
        """Read all of it, and raise DamagedLog where something is not as it was written.

        `advance` is told of the bytes as they are read.
        """
        return check_whole(self._state, advance)

    def refill(self, reference: TopicRef, partition: int, start: int) -> PartitionRefill:
        """Put records back into an empty partition, whose first one has this offset."""
        where = partition_of(self.topic(reference), partition)
        return PartitionRefill(self._state, where, start)

    def is_in_place(self) -> bool:
        """Whether the log's folder is still the one that was opened; else nothing is written."""
        return self._ownership.is_in_place()

    @property
    def closed(self) -> bool:
        return self._is_forked or self._state.store.closed

    def call_when_closed(self, close: Callable[[], object]) -> None:
        """Close something else together with the log."""
        self._when_closed.callback(close)

    def close(self) -> None:
        """Finish what is being written, and let the next owner in. Closing again does nothing."""
        if self.closed:
            return
        self._when_closed.close()
        self._merger.close()
        self._committer.close()
        if not self.is_in_place():
            self._state.store.leave_alone()
        self._state.store.close()
        self._mark.close()
        self._ownership.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
