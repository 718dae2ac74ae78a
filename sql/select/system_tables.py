"""What SELECT shows of the log itself: topics, their sources and partitions, groups, mirrors."""

from __future__ import annotations

from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from duolog.log.mirrored import mirrored_partitions
from duolog.log.model import by_topic
from duolog.log.offset_map import OffsetMap
from duolog.log.timestamps import LATEST_TIME_MS
from duolog.sql.select.python_table import PythonTable, without_columns
from duolog.sql.text import route_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from duolog.clock import Clock
    from duolog.log.access import LogAccess, Place
    from duolog.log.model import GroupPosition, PartitionOffsets, Topic

_MOMENT = pa.timestamp("ms", "UTC")

TOPICS = pa.schema(
    [
        ("topic", pa.string()),
        ("id", pa.int64()),
        ("alias", pa.string()),
        ("partitions", pa.int32()),
        ("records", pa.int64()),
        ("bytes", pa.int64()),
        ("sources", pa.int32()),  # how many: system.sources has them
        ("retention_seconds", pa.float64()),
        ("retention_max_bytes", pa.int64()),
        ("retention_waits_for_mirror", pa.bool_()),
        ("dedup_window_seconds", pa.float64()),
        ("key_format", pa.string()),
        ("value_format", pa.string()),
        ("envelope", pa.string()),
        ("kafka_topic", pa.string()),
        ("created_at", _MOMENT),
        ("updated_at", _MOMENT),
        ("topic_id", pa.int64()),  # the same as id
        ("name", pa.string()),  # the same as topic
        ("routes", pa.list_(pa.string())),  # as ADD SOURCE takes them
    ]
)
SOURCES = pa.schema(
    [
        ("topic", pa.string()),
        ("source", pa.string()),
        ("ops", pa.list_(pa.string())),
        ("condition", pa.string()),
        ("partition_by", pa.list_(pa.string())),
        ("payload", pa.string()),
        ("columns", pa.list_(pa.string())),  # null: all
    ]
)
PARTITIONS = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("start_offset", pa.int64()),
        ("next_offset", pa.int64()),
        ("last_offset", pa.int64()),
        ("records", pa.int64()),
        ("bytes", pa.int64()),
        ("last_ts", _MOMENT),
        ("state", pa.string()),  # ok, or where damaged batches are
        ("skipped", pa.int64()),  # offsets of holes
    ]
)
TOPIC_OFFSETS = pa.schema(
    [
        ("group_id", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("position", pa.int64()),
        ("upto_offset", pa.int64()),
        ("start_offset", pa.int64()),
        ("next_offset", pa.int64()),
        ("lag", pa.int64()),
        ("lag_seconds", pa.float64()),  # how long the first record has waited that is not read
        ("changed_at", _MOMENT),
        ("changed_by", pa.string()),
        ("kafka_position", pa.int64()),  # what Kafka was last seen to hold
        ("kafka_expected", pa.int64()),  # Kafka's offset for the position
        ("pending", pa.bool_()),  # whether the two are different places
        ("topic_id", pa.int64()),
        ("partition_id", pa.int32()),  # the same as partition
        ("last_acked_offset", pa.int64()),  # null for a group that has only begun there
        ("updated_at", _MOMENT),  # the same as changed_at
    ]
)
GROUP_MEMBERS = pa.schema(
    [
        ("group_id", pa.string()),
        ("topic", pa.string()),
        ("member_id", pa.string()),
        ("kind", pa.string()),  # native or kafka
        ("client_id", pa.string()),
        ("host", pa.string()),
        ("partitions", pa.list_(pa.int32())),
        ("generation", pa.int64()),  # of a native member's partitions
    ]
)
MIRROR = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("kafka_topic", pa.string()),
        ("cluster_id", pa.string()),
        ("phase", pa.string()),
        ("trouble", pa.string()),  # why it does not get on, as its worker says
        ("mirrored_offset", pa.int64()),  # Kafka has everything before it
        ("next_offset", pa.int64()),
        ("behind", pa.int64()),
        ("skipped", pa.int64()),
        ("kafka_offset", pa.int64()),  # after the last of these records there
        ("runs", pa.int32()),
    ]
)


_FIRST_ROWS = 256  # a query with a LIMIT may need no more
_ROWS = 4096


class SystemTable(PythonTable):
    """One of SYSTEM_TABLES, made row by row while a query reads it."""

    def __init__(self, name: str, seen: LogSeen, check: Callable[[], None]) -> None:
        schema, self._rows = SYSTEM_TABLES[name]
        super().__init__(schema)
        self._seen = seen
        self._check = check

    def read(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        schema = self.projected(names)
        rows = self._rows(self._seen)
        size = _FIRST_ROWS
        while not self._stopped and (page := list(islice(rows, size))):
            self._check()
            if "lag_seconds" in names:
                self._seen.add_lag_seconds(page)
            shown = pa.RecordBatch.from_pylist(page, schema=schema) if names else None
            yield without_columns(len(page)) if shown is None else shown
            size = _ROWS


class LogSeen:
    """The log itself, as one query sees it: each thing is asked for once, and only if it is shown.

    What it asks does not grow in number with the topics and groups that there are.
    """

    def __init__(self, log: LogAccess, clock: Clock) -> None:
        self.log = log
        self._clock = clock
        self._times: dict[Place, int | None] = {}  # of records that groups stand at

    @cached_property
    def topics(self) -> tuple[Topic, ...]:
        return self.log.topics()

    @cached_property
    def heads(self) -> Mapping[str, Sequence[PartitionOffsets]]:
        return by_topic(self.log.all_offsets())

    @cached_property
    def positions(self) -> Mapping[tuple[str, str], Mapping[int, GroupPosition]]:
        """By group and topic, and in there by partition."""
        found: dict[tuple[str, str], dict[int, GroupPosition]] = {}
        for each in self.log.group_positions():
            found.setdefault((each.group, each.topic), {})[each.partition] = each
        return found

    @cached_property
    def offset_maps(self) -> Mapping[tuple[str, int], OffsetMap]:
        return {
            (each.topic, each.partition): OffsetMap.of_mirror(each) for each in self.log.mirrors()
        }

    def add_lag_seconds(self, rows: Iterable[dict[str, Any]]) -> None:
        """How long the first record has waited that a group has not read, for all rows at once."""
        places = {
            number: (row["topic_id"], row["partition"], row["next_offset"] - row["lag"])
            for number, row in enumerate(rows)
            if row["lag"] and row["topic_id"] is not None
        }
        unknown = list(dict.fromkeys(each for each in places.values() if each not in self._times))
        if unknown:
            found = self.log.record_times(unknown)
            self._times.update(zip(unknown, found, strict=True))
        now_ms = self._clock.now_ms()
        for number, row in enumerate(rows):
            made_ms = self._times[places[number]] if number in places else now_ms
            row["lag_seconds"] = None if made_ms is None else max(0.0, (now_ms - made_ms) / 1000)


def topic_row(topic: Topic, heads: Sequence[PartitionOffsets]) -> dict[str, Any]:
    """A topic's row in system.topics."""
    settings = topic.settings
    return {
        "topic": topic.name,
        "id": topic.id,
        "alias": topic.alias,
        "partitions": topic.partitions,
        "records": sum(head.next_offset - head.start for head in heads),
        "bytes": sum(head.bytes for head in heads),
        "sources": len(topic.routes),
        "retention_seconds": settings.retention.seconds,
        "retention_max_bytes": settings.retention.max_bytes,
        "retention_waits_for_mirror": settings.retention.waits_for_mirror,
        "dedup_window_seconds": settings.dedup_window_seconds,
        "key_format": settings.key_format.value,
        "value_format": settings.value_format.value,
        "envelope": settings.envelope.value,
        "kafka_topic": settings.kafka_topic,
        "created_at": topic.created_at_ms,
        "updated_at": topic.updated_at_ms,
        "topic_id": topic.id,
        "name": topic.name,
        "routes": [route_text(route) for route in topic.routes],
    }


def _topics(seen: LogSeen) -> Iterator[dict[str, Any]]:
    for topic in seen.topics:
        yield topic_row(topic, seen.heads.get(topic.name, ()))


def _sources(seen: LogSeen) -> Iterator[dict[str, Any]]:
    for topic in seen.topics:
        for route in topic.routes:
            yield {
                "topic": topic.name,
                "source": route.table,
                "ops": [op.word for op in sorted(route.ops)],
                "condition": None if route.filter is None else route.filter.text,
                "partition_by": list(route.partition_texts),
                "payload": route.payload.word,
                "columns": None if route.columns is None else list(route.columns),
            }


def _partitions(seen: LogSeen) -> Iterator[dict[str, Any]]:
    states: dict[tuple[str, int], list[str]] = {}
    for damage in seen.log.damage():
        states.setdefault((damage.topic, damage.partition), []).append(damage.state)
    skipped: dict[tuple[str, int], int] = {}
    for hole in seen.log.holes():
        place = hole.topic, hole.partition
        skipped[place] = skipped.get(place, 0) + hole.count
    for topic, heads in seen.heads.items():
        for head in heads:
            yield {
                "topic": topic,
                "partition": head.partition,
                "start_offset": head.start,
                "next_offset": head.next_offset,
                "last_offset": head.last_offset,
                "records": head.next_offset - head.start,
                "bytes": head.bytes,
                "last_ts": None if head.last_offset is None else _moment(head.last_ts_ms),
                "state": ", ".join(states.get((topic, head.partition), [])) or "ok",
                "skipped": skipped.get((topic, head.partition), 0),
            }


def _moment(ts_ms: int) -> int:
    """A batch of an old log may claim any number of 64 bits; Arrow has 63."""
    return min(ts_ms, LATEST_TIME_MS)


def _topic_offsets(seen: LogSeen) -> Iterator[dict[str, Any]]:
    """Each group in all partitions of each topic in which it has a position."""
    ids = {each.name: each.id for each in seen.topics}
    for (group, topic), positions in seen.positions.items():
        for head in seen.heads.get(topic, ()):
            position = positions.get(head.partition)
            yield {
                **_progress(group, head, position),
                **_in_kafka(position, seen.offset_maps.get((topic, head.partition))),
                "topic_id": ids.get(topic),
            }


def _progress(group: str, head: PartitionOffsets, position: GroupPosition | None) -> dict[str, Any]:
    """All but the lag in seconds, which takes a look at records."""
    reads_on = max(head.start, 0 if position is None else position.position)
    return {
        "group_id": group,
        "topic": head.topic,
        "partition": head.partition,
        "position": None if position is None else position.position,
        "upto_offset": None if position is None else position.upto_offset,
        "start_offset": head.start,
        "next_offset": head.next_offset,
        "lag": max(0, head.next_offset - reads_on),
        "changed_at": None if position is None else position.changed_at_ms,
        "changed_by": None if position is None else position.changed_by.value,
        "partition_id": head.partition,
        "last_acked_offset": None if position is None else position.last_acked_offset,
        "updated_at": None if position is None else position.changed_at_ms,
    }


def _in_kafka(position: GroupPosition | None, offsets: OffsetMap | None) -> dict[str, Any]:
    if position is None or offsets is None:
        return {"kafka_position": None, "kafka_expected": None, "pending": None}
    seen = position.kafka
    held = None if seen is None else seen.held
    is_there = held is not None and offsets.is_same_place(position.position, held)
    return {
        "kafka_position": held,
        "kafka_expected": offsets.to_kafka(position.position),
        # A group that was never seen in Kafka may be one that is left alone.
        "pending": None if seen is None else not (is_there or seen.one_way),
    }


def _group_members(seen: LogSeen) -> Iterator[dict[str, Any]]:
    for member in seen.log.group_members():
        yield {
            "group_id": member.group,
            "topic": member.topic,
            "member_id": member.member_id,
            "kind": member.kind.value,
            "client_id": member.client_id,
            "host": member.host,
            "partitions": list(member.partitions),
            "generation": member.generation,
        }


def _mirror(seen: LogSeen) -> Iterator[dict[str, Any]]:
    for each in mirrored_partitions(seen.log):
        yield {
            "topic": each.topic,
            "partition": each.partition,
            "kafka_topic": each.kafka_topic,
            "cluster_id": None if each.mirror is None else each.mirror.target.cluster_id,
            "phase": each.phase,
            "trouble": each.trouble,
            "mirrored_offset": each.mirrored_offset,
            "next_offset": each.next_offset,
            "behind": each.behind,
            "skipped": 0 if each.mirror is None else each.mirror.skipped,
            "kafka_offset": None if each.mirror is None else each.mirror.next_kafka_offset,
            "runs": 0 if each.mirror is None else len(each.mirror.runs),
        }


SYSTEM_TABLES: dict[str, tuple[pa.Schema, Callable[[LogSeen], Iterator[dict[str, Any]]]]] = {
    "topics": (TOPICS, _topics),
    "sources": (SOURCES, _sources),
    "partitions": (PARTITIONS, _partitions),
    "topic_offsets": (TOPIC_OFFSETS, _topic_offsets),
    "group_members": (GROUP_MEMBERS, _group_members),
    "mirror": (MIRROR, _mirror),
}
