"""Does what changes topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from duolog.errors import UnknownTopic
from duolog.log.model import Retention
from duolog.sql.result import SqlResult
from duolog.sql.select.system_tables import TOPICS, topic_row
from duolog.sql.statements import (
    UNCHANGED,
    AddSource,
    ClearRetention,
    ClearTopic,
    CreateTopic,
    DropSource,
    DropTopic,
    SetPartitions,
    SetRetention,
    SkipDamage,
)

if TYPE_CHECKING:
    from duolog.log.access import LogAccess
    from duolog.log.model import Swept, Topic
    from duolog.sql.statements import Definition

_SWEPT = pa.schema(
    [("topic", pa.string()), ("messages_deleted", pa.int64()), ("bytes_freed", pa.int64())]
)

_SKIPPED = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("first_offset", pa.int64()),
        ("next_offset", pa.int64()),
        ("skipped_by", pa.string()),
        ("skipped_at", pa.timestamp("ms", "UTC")),
        ("reason", pa.string()),
    ]
)


def define(log: LogAccess, statement: Definition) -> SqlResult:
    """The topic as it is then, as in system.topics; or what went with it."""
    match statement:
        case DropTopic() | ClearTopic():
            return _remove(log, statement)
        case SkipDamage():
            return _skip(log, statement)
        case CreateTopic(name, settings, if_not_exists):
            topic = log.create_topic(name, settings, if_not_exists=if_not_exists)
        case AddSource(reference):
            topic = log.add_route(reference, statement.route)
        case DropSource(reference, table, ops):
            topic = log.drop_route(reference, table, ops)
        case SetRetention(reference):
            topic = log.set_retention(reference, _retention(log.topic(reference), statement))
        case ClearRetention(reference):
            topic = log.set_retention(reference, Retention())
        case SetPartitions(reference, partitions):
            topic = log.set_partitions(reference, partitions)
    return SqlResult.of_rows(TOPICS, [topic_row(topic, log.offsets(topic.id))])


def _retention(topic: Topic, statement: SetRetention) -> Retention:
    now = topic.retention
    return Retention(
        now.seconds if statement.seconds is UNCHANGED else statement.seconds,
        now.max_bytes if statement.max_bytes is UNCHANGED else statement.max_bytes,
        now.waits_for_mirror
        if statement.waits_for_mirror is UNCHANGED
        else statement.waits_for_mirror,
    )


def _skip(log: LogAccess, statement: SkipDamage) -> SqlResult:
    holes = log.skip_to(statement.topic, statement.partition, statement.to_offset, by="sql")
    return SqlResult.of_rows(
        _SKIPPED,
        [
            {
                "topic": hole.topic,
                "partition": hole.partition,
                "first_offset": hole.first_offset,
                "next_offset": hole.next_offset,
                "skipped_by": hole.by,
                "skipped_at": hole.at_ms,
                "reason": hole.reason,
            }
            for hole in holes
        ],
    )


def _remove(log: LogAccess, statement: DropTopic | ClearTopic) -> SqlResult:
    try:
        topic = log.topic(statement.topic)
    except UnknownTopic:
        if isinstance(statement, DropTopic) and statement.if_exists:
            return SqlResult.of_rows(_SWEPT, [])
        raise
    swept: Swept = (
        log.clear_topic(topic.id) if isinstance(statement, ClearTopic) else log.drop_topic(topic.id)
    )
    return SqlResult.of_rows(
        _SWEPT,
        [
            {
                "topic": topic.name,
                "messages_deleted": swept.messages_deleted,
                "bytes_freed": swept.bytes_freed,
            }
        ],
    )
