"""What SELECT shows of the log itself: topics, their sources and partitions, groups, mirrors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from duolog.errors import OffsetOutOfRange
from duolog.log.mirrored import mirrored_partitions
from duolog.log.offset_map import OffsetMap
from duolog.log.timestamps import LATEST_TIME_MS
from duolog.sql.text import route_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from duolog.clock import Clock
    from duolog.log.access import LogAccess
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


def system_table(name: str, log: LogAccess, clock: Clock) -> pa.Table | None:
    """A system table as it is now; None if there is no such table."""
    if name not in SYSTEM_TABLES:
        return None
    schema, rows = SYSTEM_TABLES[name]
    return pa.Table.from_pylist(list(rows(log, clock)), schema=schema)


def topic_row(log: LogAccess, topic: Topic) -> dict[str, Any]:
    """A topic's row in system.topics."""
    settings, heads = topic.settings, log.offsets(topic.id)
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


def _topics(log: LogAccess, _: Clock) -> Iterator[dict[str, Any]]:
    for topic in log.topics():
        yield topic_row(log, topic)


def _sources(log: LogAccess, _: Clock) -> Iterator[dict[str, Any]]:
    for topic in log.topics():
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


def _partitions(log: LogAccess, _: Clock) -> Iterator[dict[str, Any]]:
    states: dict[tuple[str, int], list[str]] = {}
    for damage in log.damage():
        states.setdefault((damage.topic, damage.partition), []).append(damage.state)
    skipped: dict[tuple[str, int], int] = {}
    for hole in log.holes():
        place = hole.topic, hole.partition
        skipped[place] = skipped.get(place, 0) + hole.count
    for topic in log.topics():
        for head in log.offsets(topic.id):
            yield {
                "topic": topic.name,
                "partition": head.partition,
                "start_offset": head.start,
                "next_offset": head.next_offset,
                "last_offset": head.last_offset,
                "records": head.next_offset - head.start,
                "bytes": head.bytes,
                "last_ts": None if head.last_offset is None else _moment(head.last_ts_ms),
                "state": ", ".join(states.get((topic.name, head.partition), [])) or "ok",
                "skipped": skipped.get((topic.name, head.partition), 0),
            }


def _moment(ts_ms: int) -> int:
    """A batch of an old log may claim any number of 64 bits; Arrow has 63."""
    return min(ts_ms, LATEST_TIME_MS)


def _topic_offsets(log: LogAccess, clock: Clock) -> Iterator[dict[str, Any]]:
    """Each group in all partitions of each topic in which it has a position."""
    known = {(each.group, each.topic, each.partition): each for each in log.group_positions()}
    ids = {each.name: each.id for each in log.topics()}
    heads: dict[str, tuple[PartitionOffsets, ...]] = {}
    maps = {(each.topic, each.partition): OffsetMap.of_mirror(each) for each in log.mirrors()}
    for group, topic in dict.fromkeys((group, topic) for group, topic, _ in known):
        if topic not in heads:
            heads[topic] = log.offsets(topic)
        for head in heads[topic]:
            position = known.get((group, topic, head.partition))
            yield {
                **_progress(log, clock, group, head, position),
                **_in_kafka(position, maps.get((topic, head.partition))),
                "topic_id": ids.get(topic),
            }


def _progress(
    log: LogAccess,
    clock: Clock,
    group: str,
    head: PartitionOffsets,
    position: GroupPosition | None,
) -> dict[str, Any]:
    reads_on = max(head.start, 0 if position is None else position.position)
    lag = max(0, head.next_offset - reads_on)
    return {
        "group_id": group,
        "topic": head.topic,
        "partition": head.partition,
        "position": None if position is None else position.position,
        "upto_offset": None if position is None else position.upto_offset,
        "start_offset": head.start,
        "next_offset": head.next_offset,
        "lag": lag,
        "lag_seconds": _waiting_seconds(log, clock, head, reads_on) if lag else 0.0,
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


def _waiting_seconds(
    log: LogAccess, clock: Clock, head: PartitionOffsets, offset: int
) -> float | None:
    try:
        first = log.fetch(head.topic, head.partition, offset, max_records=1, skip_damaged=True)
    except OffsetOutOfRange:  # retention was quicker
        return None
    for record in first:
        return max(0.0, (clock.now_ms() - record.ts_ms) / 1000)
    return None


def _group_members(log: LogAccess, _: Clock) -> Iterator[dict[str, Any]]:
    for member in log.group_members():
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


def _mirror(log: LogAccess, _: Clock) -> Iterator[dict[str, Any]]:
    for each in mirrored_partitions(log):
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


SYSTEM_TABLES: dict[
    str, tuple[pa.Schema, Callable[[LogAccess, Clock], Iterator[dict[str, Any]]]]
] = {
    "topics": (TOPICS, _topics),
    "sources": (SOURCES, _sources),
    "partitions": (PARTITIONS, _partitions),
    "topic_offsets": (TOPIC_OFFSETS, _topic_offsets),
    "group_members": (GROUP_MEMBERS, _group_members),
    "mirror": (MIRROR, _mirror),
}
