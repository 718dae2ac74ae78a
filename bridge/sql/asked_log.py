"""The log as a process that answers queries has it: it asks its host for each read.

It can ask for nothing else, and the host answers only for the topics that the query's sender may
use. So nothing that a query does to its process reaches the log.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Protocol, cast

from duolog.avro.registry.port import RegisteredSchema, SchemaText
from duolog.log.access import DEFAULT_FETCH_BYTES
from duolog.reach import calls
from duolog.reach.frames import from_frames
from duolog.reach.reading import RemoteReader
from duolog.reach.wire import from_wire, to_wire

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from duolog.log.access import Place, TopicRef
    from duolog.log.damage_model import DamagedOffsets, Hole
    from duolog.log.fetched import Fetched, FetchedEncoded
    from duolog.log.mirror_model import Mirror
    from duolog.log.mirror_modes import MirrorModes, MirrorReport
    from duolog.log.model import GroupMember, GroupPosition, PartitionOffsets, Start, Topic
    from duolog.reach.calls import Answered, Call
    from duolog.reach.connection import HostConnection

_CACHE_BYTES = 32 << 20


class Ask(Protocol):
    """Asks the host: JSON comes back as its value, batches as bytes, an error is raised."""

    def __call__(self, call: str, arguments: dict[str, Any]) -> Any: ...


class _Reader(RemoteReader):
    def __init__(self, ask: Ask) -> None:
        super().__init__(cast("HostConnection", None), _CACHE_BYTES, self._look)
        self._ask = ask

    def _look(self, reference: TopicRef, partition: int, offset: int) -> DamagedOffsets | None:
        asked = {"reference": reference, "partition": partition, "offset": offset}
        call = calls.LOOK_FOR_DAMAGE
        found: DamagedOffsets | None = from_wire(call.answer, self._ask(call.name, asked))
        return found

    def fetch_encoded(
        self,
        reference: TopicRef,
        partition: int,
        offset: int,
        max_records: int,
        max_bytes: int,
        *,
        skip_damaged: bool = False,
        **held: int,
    ) -> FetchedEncoded:
        limits = {"max_records": max_records, "max_bytes": max_bytes, **held}
        if skip_damaged:
            limits["skip_damaged"] = True
        wanted = {"reference": reference, "partition": partition, "offset": offset, **limits}
        return from_frames(self._ask("fetch", wanted))


class AskedLog:
    """The part of `LogAccess` that SELECT needs, for one query."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._reader = _Reader(ask)

    def topic(self, reference: TopicRef) -> Topic:
        return self._call(calls.GET_TOPIC, reference=reference)

    def topics(self) -> tuple[Topic, ...]:
        return self._call(calls.TOPICS)

    def offsets(self, reference: TopicRef) -> tuple[PartitionOffsets, ...]:
        return self._call(calls.OFFSETS, reference=reference)

    def all_offsets(self) -> tuple[PartitionOffsets, ...]:
        return self._call(calls.ALL_OFFSETS)

    def record_times(self, places: Sequence[Place]) -> tuple[int | None, ...]:
        return self._call(calls.RECORD_TIMES, places=places)

    def resolve(self, reference: TopicRef, partition: int, start: Start) -> int:
        return self._call(calls.RESOLVE, reference=reference, partition=partition, start=start)

    def group_positions(
        self, group: str | None = None, reference: TopicRef | None = None
    ) -> tuple[GroupPosition, ...]:
        return self._call(calls.GROUP_POSITIONS, group=group, reference=reference)

    def group_members(self, group: str | None = None) -> tuple[GroupMember, ...]:
        return self._call(calls.GROUP_MEMBERS, group=group)

    def mirrors(self, reference: TopicRef | None = None) -> tuple[Mirror, ...]:
        return self._call(calls.MIRRORS, reference=reference)

    def mirror_modes(self) -> MirrorModes:
        return self._call(calls.MIRROR_MODES)

    def mirror_reports(self, reference: TopicRef | None = None) -> tuple[MirrorReport, ...]:
        return self._call(calls.MIRROR_REPORTS, reference=reference)

    def fetch(
        self,
        reference: TopicRef,
        partition: int,
        offset: int,
        *,
        max_records: int,
        max_bytes: int = DEFAULT_FETCH_BYTES,
        skip_damaged: bool = False,
    ) -> Fetched:
        limits = max_records, max_bytes
        return self._reader.fetch(reference, partition, offset, *limits, skip_damaged=skip_damaged)

    def damage(self, reference: TopicRef | None = None) -> tuple[DamagedOffsets, ...]:
        return self._call(calls.DAMAGE, reference=reference)

    def holes(self, reference: TopicRef | None = None) -> tuple[Hole, ...]:
        return self._call(calls.HOLES, reference=reference)

    def _call(self, call: Call[Answered], **arguments: Any) -> Answered:
        answered: Answered = from_wire(call.answer, self._ask(call.name, to_wire(arguments)))
        return answered


class AskedSchemas:
    """The part of `Registry` that decoding needs. What it was told it keeps: ids are for ever."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._known: dict[int | UUID, SchemaText] = {}
        self._guard = threading.Lock()

    def schema_by_id(self, schema_id: int) -> SchemaText:
        return self._schema(schema_id, "schema_by_id", {"schema_id": schema_id})

    def schema_by_guid(self, guid: UUID) -> SchemaText:
        return self._schema(guid, "schema_by_guid", {"guid": str(guid)})

    def version(self, subject: str, version: int) -> RegisteredSchema:
        asked = {"subject": subject, "version": version}
        found: RegisteredSchema = from_wire(RegisteredSchema, self._ask("schema_version", asked))
        return found

    def _schema(self, key: int | UUID, call: str, arguments: dict[str, Any]) -> SchemaText:
        with self._guard:
            known = self._known.get(key)
        if known is None:
            known = from_wire(SchemaText, self._ask(call, arguments))
            with self._guard:
                self._known[key] = known
        return known
