"""Which topic takes rows that cannot be written. It is made when a write is planned."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from duolog.connector.dead_letters import DeadLetters
from duolog.connector.options import SinkOptions
from duolog.connector.table_rows import TableRows
from duolog.connector.topic_rows import TopicRows
from duolog.errors import InvalidSetting, UnknownTopic
from duolog.log.model import Topic, Writer

if TYPE_CHECKING:
    from duolog.log.access import LogAccess

_LONGEST_TOPIC = 249
_SUFFIX = "-dlq"


def dead_letters(
    options: SinkOptions, log: LogAccess, writer: Writer, rows: TopicRows | TableRows
) -> DeadLetters:
    """Where bad rows of this write go."""
    target = rows.topic.name if isinstance(rows, TopicRows) and rows.topic is not None else None
    name = options.dlq_topic or default_name(target, options.table)
    topic = _topic(log, name)
    _check_apart(topic, rows)
    return DeadLetters(
        topic,
        writer.name,
        options.table,
        target,
        log.max_record_bytes,
        log.max_timestamp_ahead_seconds,
    )


def default_name(topic: str | None, table: str | None) -> str:
    """A topic of the target's own; `rows-dlq` for rows that name their topics."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", topic or table or "rows").strip("_")
    return (name or "rows")[: _LONGEST_TOPIC - len(_SUFFIX)] + _SUFFIX


def _topic(log: LogAccess, name: str) -> Topic:
    try:
        return log.topic(name)
    except UnknownTopic:
        return log.create_topic(name, if_not_exists=True)


def _check_apart(topic: Topic, rows: TopicRows | TableRows) -> None:
    if isinstance(rows, TopicRows):
        taken = {rows.topic.id} if rows.topic is not None else set()
    else:
        taken = {prepared.topic.id for prepared in rows.table.routes}
    if topic.id in taken:
        raise InvalidSetting(
            f"Topic '{topic.name}' is to take the rows that cannot be written, and takes the good "
            "ones too. Name another one in dlqTopic."
        )
