"""A topic as it is shown: a line of a table, a page of its own, a JSON object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duolog import output
from duolog.cli import shown
from duolog.log.model import PartitionOffsets, Retention, Topic, words

if TYPE_CHECKING:
    from duolog.log import LogAccess
    from duolog.log.damage_model import DamagedOffsets, Hole

HEADINGS = ["topic", "alias", ">partitions", ">records", ">size", "kept", ">routes"]

Offsets = tuple[PartitionOffsets, ...]


def row(topic: Topic, offsets: Offsets) -> list[str]:
    """One line among others, for HEADINGS."""
    return [
        topic.name,
        topic.alias or "",
        shown.count(topic.partitions),
        shown.count(records(offsets)),
        shown.size(_bytes(offsets)),
        _kept(topic.retention),
        shown.count(len(topic.routes)),
    ]


def show(log: LogAccess, topic: Topic, *, as_json: bool) -> None:
    """All about one topic."""
    offsets = log.offsets(topic.id)
    damage, holes = log.damage(topic.id), log.holes(topic.id)
    if as_json:
        output.json_line(
            {
                **summary(topic, offsets),
                "offsets": list(map(_offsets, offsets)),
                "damaged": list(map(_damage_fields, damage)),
                "skipped": list(map(hole_fields, holes)),
            }
        )
        return
    settings = topic.settings
    window = settings.dedup_window_seconds
    output.fields(
        [
            ("topic", topic.name),
            ("alias", topic.alias or ""),
            ("id", str(topic.id)),
            ("records", f"{shown.count(records(offsets))}, {shown.size(_bytes(offsets))}"),
            ("kept", _kept(settings.retention)),
            ("formats", f"key {settings.key_format}, value {settings.value_format}"),
            ("envelope", settings.envelope),
            ("repeats", f"left out within {shown.duration(window)}" if window else ""),
            ("created", shown.moment(topic.created_at_ms)),
            ("changed", shown.moment(topic.updated_at_ms)),
        ]
    )
    output.blank()
    output.table(
        [">partition", ">start", ">next", ">records", ">size", "last record"],
        [
            [
                str(each.partition),
                shown.count(each.start),
                shown.count(each.next_offset),
                shown.count(each.next_offset - each.start),
                shown.size(each.bytes),
                shown.moment(each.last_ts_ms),
            ]
            for each in offsets
        ],
    )
    if damage:
        output.blank()
        output.table(
            [">partition", "state", "found", "why"],
            [
                [str(each.partition), each.state, shown.moment(each.found_at_ms), each.reason]
                for each in damage
            ],
        )
    if holes:
        output.blank()
        output.table(
            [">partition", "skipped", "when", "by", "why"],
            [
                [
                    str(each.partition),
                    f"offsets {each.first_offset}-{each.next_offset - 1}",
                    shown.moment(each.at_ms),
                    each.by,
                    each.reason,
                ]
                for each in holes
            ],
        )
    if topic.routes:
        output.blank()
        output.table(
            ["source", "on", "payload", "columns", "where", "partition by"],
            [
                [
                    route.table,
                    words(route.ops),
                    route.payload.word or "",
                    "(all)" if route.columns is None else ", ".join(route.columns),
                    "" if route.filter is None else route.filter.text,
                    ", ".join(route.partition_texts) or "(key)",
                ]
                for route in topic.routes
            ],
        )


def summary(topic: Topic, offsets: Offsets) -> dict[str, Any]:
    """The JSON object of a topic, but for its partitions one by one."""
    settings = topic.settings
    return {
        "topic": topic.name,
        "id": topic.id,
        "alias": topic.alias,
        "partitions": topic.partitions,
        "records": records(offsets),
        "bytes": _bytes(offsets),
        "retention_seconds": settings.retention.seconds,
        "retention_max_bytes": settings.retention.max_bytes,
        "retention_waits_for_mirror": settings.retention.waits_for_mirror,
        "dedup_window_seconds": settings.dedup_window_seconds,
        "key_format": settings.key_format,
        "value_format": settings.value_format,
        "envelope": settings.envelope,
        "json_int64_as_string": settings.json_int64_as_string,
        "created_at_ms": topic.created_at_ms,
        "updated_at_ms": topic.updated_at_ms,
        "routes": [
            {
                "table": route.table,
                "on": [op.word for op in sorted(route.ops)],
                "where": None if route.filter is None else route.filter.text,
                "payload": route.payload.word,
                "partition_by": list(route.partition_texts),
                "columns": None if route.columns is None else list(route.columns),
            }
            for route in topic.routes
        ],
    }


def _damage_fields(damage: DamagedOffsets) -> dict[str, Any]:
    return {
        "partition": damage.partition,
        "state": damage.state,
        "first_offset": damage.first_offset,
        "next_offset": damage.next_offset,
        "reason": damage.reason,
        "found_at_ms": damage.found_at_ms,
    }


def hole_fields(hole: Hole) -> dict[str, Any]:
    """The JSON object of what was skipped."""
    return {
        "topic": hole.topic,
        "partition": hole.partition,
        "first_offset": hole.first_offset,
        "next_offset": hole.next_offset,
        "skipped_by": hole.by,
        "skipped_at_ms": hole.at_ms,
        "reason": hole.reason,
        "batch_bytes": hole.batch_bytes,
    }


def records(offsets: Offsets) -> int:
    """How many records a topic holds."""
    return sum(each.next_offset - each.start for each in offsets)


def _bytes(offsets: Offsets) -> int:
    return sum(each.bytes for each in offsets)


def _offsets(each: PartitionOffsets) -> dict[str, Any]:
    return {
        "partition": each.partition,
        "start_offset": each.start,
        "next_offset": each.next_offset,
        "last_offset": each.last_offset,
        "bytes": each.bytes,
        "last_ts": each.last_ts_ms,
    }


def _kept(retention: Retention) -> str:
    limits = []
    if retention.seconds is not None:
        limits.append(shown.duration(retention.seconds))
    if retention.max_bytes is not None:
        limits.append(shown.size(retention.max_bytes))
    return ", ".join(limits) or "for ever"
