"""A log that another process owns, asked through its host: on this machine, or behind a url."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from duolog.avro.registered_codec import RegisteredCodec
from duolog.avro.registry.asking import AskedRegistry
from duolog.errors import LogClosed
from duolog.log.access import DEFAULT_FETCH_BYTES, DEFAULT_FETCH_RECORDS, Place, TopicRef
from duolog.log.damage_model import DamagedOffsets, Hole
from duolog.log.fetched import Fetched, FetchedEncoded
from duolog.log.groups_seen import KafkaSeen
from duolog.log.mirror_model import Mirror, MirrorChange, MirrorProducer, MirrorTarget
from duolog.log.mirror_modes import MirrorMode, MirrorModes, MirrorReport
from duolog.log.model import (
    Appended,
    Format,
    GroupMember,
    GroupPosition,
    HeldBack,
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
from duolog.log.names import check_epoch, check_writer
from duolog.log.part import Part
from duolog.log.record_check import checked_record, records_of
from duolog.log.routing.given_rows import RowsBeforeGiven, given_rows
from duolog.log.routing.plan import RoutingPlan
from duolog.log.routing.prepare import BUILT_IN, PreparedTable, prepare
from duolog.log.staging import (
    LocalStaging,
    StagingPlace,
    check_staged_name,
    epoch_name,
    staged_name,
    staging_folder,
)
from duolog.reach import calls
from duolog.reach.calls import Answered, Call
from duolog.reach.connection import HostConnection
from duolog.reach.exchange import Request
from duolog.reach.options import RemoteOptions
from duolog.reach.protocol import PREFIX
from duolog.reach.reading import RemoteReader
from duolog.reach.registry import RegistryOverHost
from duolog.reach.rows import rows_before_to_bytes, rows_to_bytes
from duolog.reach.upload import UploadStaging
from duolog.reach.wire import from_wire, to_wire

if TYPE_CHECKING:
    import pyarrow as pa

    from duolog.avro.registry.port import Registry

LONGEST_WAIT_SECONDS: Final = 20.0
"""A longer wait is several requests, so that one that nobody waits for any more soon ends."""

_JSON: Final = {"Content-Type": "application/json"}


class RemoteLog:
    """The hosted and the remote form of `LogAccess`. Safe to use from many threads.

    With a folder, parts are staged there, on the disk that host and tasks share; without one they
    are uploaded. Made by `reach`, which has shaken hands with the host.
    """

    def __init__(
        self,
        connection: HostConnection,
        options: RemoteOptions,
        avro: Mapping[str, str],
        folder: Path | None = None,
    ) -> None:
        self._connection = connection
        self._options = options
        self._folder = folder
        self._reader = RemoteReader(connection, options.cache_bytes, self.look_for_damage)
        self._codec = self._codec_of(avro)
        self._when_closed = ExitStack()
        self._when_closed.callback(connection.close)
        self._when_closed.callback(self._codec.close)
        self._max_record_bytes: int | None = None
        self._closed = False

    @property
    def log_id(self) -> str:
        return self._connection.endpoint.log_id or ""

    @property
    def max_record_bytes(self) -> int:
        if self._max_record_bytes is None:
            self._max_record_bytes = self._call(calls.MAX_RECORD_BYTES)
        return self._max_record_bytes

    @property
    def max_timestamp_ahead_seconds(self) -> float:
        return self._call(calls.MAX_TIMESTAMP_AHEAD_SECONDS)

    # -- topics and routes

    def create_topic(
        self, name: str, settings: TopicSettings | None = None, *, if_not_exists: bool = False
    ) -> Topic:
        return self._call(
            calls.CREATE_TOPIC,
            name=name,
            settings=settings or TopicSettings(),
            if_not_exists=if_not_exists,
        )

    def topic(self, reference: TopicRef, *, topic_id: int | None = None) -> Topic:
        named = {} if topic_id is None else {"topic_id": topic_id}
        return self._call(calls.GET_TOPIC, reference=reference, **named)

    def topics(self) -> tuple[Topic, ...]:
        return self._call(calls.TOPICS)

    def add_route(self, reference: TopicRef, route: Route) -> Topic:
        return self._call(calls.ADD_ROUTE, reference=reference, route=route)

    def drop_route(
        self, reference: TopicRef, table: str, ops: frozenset[Op] | None = None
    ) -> Topic:
        return self._call(calls.DROP_ROUTE, reference=reference, table=table, ops=ops)

    def set_retention(self, reference: TopicRef, retention: Retention) -> Topic:
        return self._call(calls.SET_RETENTION, reference=reference, retention=retention)

    def set_partitions(self, reference: TopicRef, partitions: int) -> Topic:
        return self._call(calls.SET_PARTITIONS, reference=reference, partitions=partitions)

    def clear_topic(self, reference: TopicRef) -> Swept:
        return self._call(calls.CLEAR_TOPIC, reference=reference)

    def drop_topic(self, reference: TopicRef, *, if_exists: bool = False) -> Swept:
        return self._call(calls.DROP_TOPIC, reference=reference, if_exists=if_exists)

    def routing_plan(self) -> RoutingPlan:
        return RoutingPlan.of(self.topics())

    def prepare_rows(
        self, table: str, schema: pa.Schema, key_columns: Sequence[str]
    ) -> PreparedTable:
        codecs = {**BUILT_IN, Format.AVRO: self._codec}
        return prepare(self.routing_plan(), table, schema, tuple(key_columns), codecs)

    def registry(self, avro: Mapping[str, str]) -> Registry:
        """The registry that these options name, or the one that lives in the log."""
        codec = self._codec_of(avro)
        self._when_closed.callback(codec.close)
        return codec.schemas().registry

    def _codec_of(self, avro: Mapping[str, str]) -> RegisteredCodec:
        return RegisteredCodec(lambda: AskedRegistry(RegistryOverHost(self._connection)), avro)

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
        room = self._options.inline_bytes
        messages = []
        for part in parts:
            sent = part
            if part.path is not None:
                sent = replace(part, path=self._staged_name(part.path))
            elif len(part.body or b"") <= room:
                room -= len(part.body or b"")
            else:
                sent = self._staged(part, writer, epoch)
            messages.append(sent.message().decode())
        return self._call(
            calls.APPEND,
            writer=writer,
            epoch=epoch,
            parts=messages,
            begin_anywhere=begin_anywhere,
            at_ms=at_ms,
            note=note,
        )

    def _staged_name(self, path: str) -> str:
        if self._folder is not None and Path(path).is_absolute():
            return staged_name(self._folder, path)
        return check_staged_name(path)

    def _staged(self, part: Part, writer: Writer, epoch: int) -> Part:
        """The same part as a staged file, named as the host knows it."""
        file = self.staging(writer, epoch).begin()
        try:
            file.write(part.body or b"")
            path = self._staged_name(file.finish())
        except BaseException:
            file.abort()
            raise
        return replace(part, body=None, path=path)

    def last_epoch(self, writer: Writer) -> Appended | None:
        return self._call(calls.LAST_EPOCH, writer=writer)

    def forget_writer(self, writer: Writer) -> bool:
        return self._call(calls.FORGET_WRITER, writer=writer)

    def staging(self, writer: Writer, epoch: int) -> StagingPlace:
        check_writer(writer)
        check_epoch(epoch)
        if self._folder is not None:
            return LocalStaging(staging_folder(self._folder, writer, epoch))
        endpoint = self._connection.endpoint
        return UploadStaging(endpoint, epoch_name(writer, epoch), self._options)

    def publish(
        self,
        reference: TopicRef,
        records: Sequence[Record] | Record,
        *,
        writer: str | None = None,
        sequence: int | None = None,
        in_order: bool = False,
    ) -> tuple[Placed, ...]:
        # Checked here too, so that what is wrong is refused by one name wherever the log is.
        checked = tuple(map(checked_record, records_of(records)))
        return self._call(
            calls.PUBLISH,
            reference=reference,
            records=checked,
            writer=writer,
            sequence=sequence,
            in_order=in_order,
        )

    def last_sequence(self, writer: str) -> int | None:
        return self._call(calls.LAST_SEQUENCE, writer=writer)

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
        given = given_rows(table, op, rows, before, key_columns)
        return self._call(
            calls.PUBLISH_ROWS,
            table=table,
            op=op,
            rows=rows_to_bytes(given.after),
            before=rows_before_to_bytes(given),
            unrouted=unrouted,
            key_columns=key_columns,
            ts_ms=ts_ms,
            writer=writer,
            sequence=sequence,
            in_order=in_order,
        )

    # -- reading

    def offsets(self, reference: TopicRef) -> tuple[PartitionOffsets, ...]:
        return self._call(calls.OFFSETS, reference=reference)

    def all_offsets(self) -> tuple[PartitionOffsets, ...]:
        return self._call(calls.ALL_OFFSETS)

    def record_times(self, places: Sequence[Place]) -> tuple[int | None, ...]:
        return self._call(calls.RECORD_TIMES, places=places)

    def resolve(self, reference: TopicRef, partition: int, start: Start) -> int:
        return self._call(calls.RESOLVE, reference=reference, partition=partition, start=start)

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
        self._check_open()
        return self._reader.fetch(
            reference, partition, offset, max_records, max_bytes, skip_damaged=skip_damaged
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
        self._check_open()
        return self._reader.fetch_encoded(
            reference, partition, offset, max_records, max_bytes, skip_damaged=skip_damaged
        )

    def look_for_damage(
        self, reference: TopicRef, partition: int, offset: int
    ) -> DamagedOffsets | None:
        return self._call(
            calls.LOOK_FOR_DAMAGE, reference=reference, partition=partition, offset=offset
        )

    def damage(self, reference: TopicRef | None = None) -> tuple[DamagedOffsets, ...]:
        return self._call(calls.DAMAGE, reference=reference)

    def holes(self, reference: TopicRef | None = None) -> tuple[Hole, ...]:
        return self._call(calls.HOLES, reference=reference)

    def skip_to(
        self, reference: TopicRef, partition: int, to_offset: int, *, by: str = ""
    ) -> tuple[Hole, ...]:
        return self._call(
            calls.SKIP_TO, reference=reference, partition=partition, to_offset=to_offset, by=by
        )

    def wait_for_append(
        self,
        positions: Mapping[tuple[str, int], int] | Mapping[tuple[int, int], int],
        timeout_seconds: float | None = None,
    ) -> bool:
        self._check_open()
        wanted = [[reference, partition, at] for (reference, partition), at in positions.items()]
        asked = {"positions": to_wire(wanted)}
        return bool(self._wait("wait for an append", asked, timeout_seconds, until=bool))

    def _wait(
        self,
        what: str,
        asked: Mapping[str, Any],
        timeout_seconds: float | None,
        until: Callable[[Any], bool],
    ) -> Any:
        """The host's answer when it is as wanted, or the last one in time."""
        end = math.inf if timeout_seconds is None else time.monotonic() + timeout_seconds
        while True:
            seconds = max(0.0, min(LONGEST_WAIT_SECONDS, end - time.monotonic()))
            request = Request(
                "POST",
                f"{PREFIX}/wait",
                what,
                body=json.dumps({**asked, "seconds": seconds}).encode(),
                headers=_JSON,
                extra_seconds=seconds,
            )
            answer = self._connection.json(request, may_repeat=True)
            if until(answer) or time.monotonic() >= end:
                return answer

    # -- groups

    def group_position(
        self, group: str, reference: TopicRef, partition: int
    ) -> GroupPosition | None:
        return self._call(
            calls.GROUP_POSITION, group=group, reference=reference, partition=partition
        )

    def group_positions(
        self, group: str | None = None, reference: TopicRef | None = None
    ) -> tuple[GroupPosition, ...]:
        return self._call(calls.GROUP_POSITIONS, group=group, reference=reference)

    def wait_for_positions(self, stored: int, timeout_seconds: float | None = None) -> int:
        self._check_open()
        asked = {"positions_stored": stored}
        what = "wait for positions"
        return int(self._wait(what, asked, timeout_seconds, until=lambda now: now != stored))

    def group_members(self, group: str | None = None) -> tuple[GroupMember, ...]:
        return self._call(calls.GROUP_MEMBERS, group=group)

    def ack(
        self,
        group: str,
        reference: TopicRef,
        upto_offset: int,
        partition: int | None = None,
        *,
        side: Side = Side.NATIVE,
    ) -> GroupPosition:
        return self._call(
            calls.ACK,
            group=group,
            reference=reference,
            upto_offset=upto_offset,
            partition=partition,
            side=side,
        )

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
        return self._call(
            calls.SEEK,
            group=group,
            reference=reference,
            partition=partition,
            position=position,
            expected_version=expected_version,
            side=side,
        )

    def begin_group(
        self, group: str, reference: TopicRef, positions: Mapping[int, int]
    ) -> tuple[GroupPosition, ...]:
        return self._call(calls.BEGIN_GROUP, group=group, reference=reference, positions=positions)

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
        return self._call(
            calls.REMEMBER_KAFKA,
            group=group,
            reference=reference,
            partition=partition,
            seen=seen,
            expected_version=expected_version,
            position=position,
        )

    def settle_group(
        self,
        group: str,
        reference: TopicRef,
        partition: int | None = None,
        *,
        timeout_seconds: float = 30.0,
    ) -> Settled:
        return self._call(
            calls.SETTLE_GROUP,
            group=group,
            reference=reference,
            partition=partition,
            timeout_seconds=timeout_seconds,
        )

    def delete_group(
        self, group: str, reference: TopicRef | None = None, *, side: Side = Side.NATIVE
    ) -> int:
        return self._call(calls.DELETE_GROUP, group=group, reference=reference, side=side)

    # -- the mirror in Kafka

    def mirror(self, reference: TopicRef, partition: int) -> Mirror | None:
        return self._call(calls.MIRROR, reference=reference, partition=partition)

    def mirrors(self, reference: TopicRef | None = None) -> tuple[Mirror, ...]:
        return self._call(calls.MIRRORS, reference=reference)

    def begin_mirror(
        self, reference: TopicRef, partition: int, target: MirrorTarget, *, version: int = 0
    ) -> Mirror:
        return self._call(
            calls.BEGIN_MIRROR,
            reference=reference,
            partition=partition,
            target=target,
            version=version,
        )

    def change_mirror(self, reference: TopicRef, partition: int, change: MirrorChange) -> int:
        return self._call(
            calls.CHANGE_MIRROR, reference=reference, partition=partition, change=change
        )

    def forget_mirror(self, reference: TopicRef, partition: int) -> bool:
        return self._call(calls.FORGET_MIRROR, reference=reference, partition=partition)

    def mirror_modes(self) -> MirrorModes:
        return self._call(calls.MIRROR_MODES)

    def set_mirror_mode(self, reference: TopicRef | None, mode: MirrorMode) -> tuple[str, ...]:
        return self._call(calls.SET_MIRROR_MODE, reference=reference, mode=mode)

    def tell_mirror(self, reports: tuple[MirrorReport, ...], *, anew: bool = False) -> None:
        self._call(calls.TELL_MIRROR, reports=reports, anew=anew)

    def mirror_reports(self, reference: TopicRef | None = None) -> tuple[MirrorReport, ...]:
        return self._call(calls.MIRROR_REPORTS, reference=reference)

    def mirror_producer(self, cluster_id: str) -> MirrorProducer | None:
        return self._call(calls.MIRROR_PRODUCER, cluster_id=cluster_id)

    def keep_mirror_producer(self, producer: MirrorProducer) -> MirrorProducer:
        return self._call(calls.KEEP_MIRROR_PRODUCER, producer=producer)

    # -- upkeep

    def enforce_retention(
        self,
        reference: TopicRef | None = None,
        *,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> RetentionRun:
        """Here `cancelled` is asked before each topic."""
        topics = self.topics() if reference is None else (self.topic(reference),)
        swept: dict[str, Swept] = {}
        held: dict[str, HeldBack] = {}
        for topic in topics:
            if not topic.retention.is_limited:
                continue
            if cancelled():
                return RetentionRun(swept, True, held)
            run = self._call(calls.ENFORCE_RETENTION, reference=topic.id)
            swept.update(run.by_topic)
            held.update(run.held_back)
        return RetentionRun(swept, held_back=held)

    def checkpoint(self) -> str:
        return self._call(calls.CHECKPOINT)

    def stats(self) -> LogStats:
        """The host's counters, but for those of the cache, which is the one on this side."""
        counted = self._call(calls.STATS)
        cache = self._reader.cache
        return replace(counted, cache_hits=cache.hits, cache_misses=cache.misses)

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """Let go of the host, which goes on. Closing again does nothing."""
        self._closed = True
        self._when_closed.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _call(self, call: Call[Answered], **arguments: Any) -> Answered:
        self._check_open()
        request = Request(
            "POST",
            f"{PREFIX}/call/{call.name}",
            call.name.replace("_", " "),
            body=json.dumps(to_wire(arguments)).encode(),
            headers=_JSON,
        )
        answer = self._connection.json(request, may_repeat=call.may_repeat(arguments))
        result: Answered = from_wire(call.answer, answer)
        return result

    def _check_open(self) -> None:
        if self._closed:
            raise LogClosed("The log has been closed.")
