"""A statement as SQL again. It parses back to the same statement."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from duolog.log.model import (
    DEFAULT_START,
    AtOffset,
    AtTimestamp,
    Earliest,
    Latest,
    PayloadMode,
    TopicSettings,
)
from duolog.log.routing.filter.text import literal
from duolog.log.routing.filter.text import to_sql as expression_to_sql
from duolog.log.routing.filter.tree import Column
from duolog.sql.options import TOPIC_OPTIONS, Value
from duolog.sql.statements import (
    DEFAULT_LIMIT,
    UNCHANGED,
    Ack,
    AddSource,
    ClearRetention,
    ClearTopic,
    Consume,
    CreateTopic,
    DropSource,
    DropTopic,
    ResetGroup,
    Select,
    SetPartitions,
    SetRetention,
    SkipDamage,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from duolog.log.model import Expression, Op, Route, Start
    from duolog.sql.statements import Statement

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")


def to_sql(statement: Statement) -> str:
    """The statement as one would type it."""
    match statement:
        case CreateTopic(topic, settings, if_not_exists):
            words = ["CREATE TOPIC", "IF NOT EXISTS" if if_not_exists else "", _name(topic)]
            words += _settings(settings)
        case AddSource():
            words = _add_source(statement)
        case DropSource(topic, table, ops):
            words = ["ALTER TOPIC", _name(topic), "DROP SOURCE", _name(table)]
            words += [] if ops is None else ["ON", _ops(ops)]
        case SetRetention(topic, seconds, max_bytes, waits_for_mirror):
            options = {
                "retention_seconds": seconds,
                "retention_max_bytes": max_bytes,
                "retention_waits_for_mirror": waits_for_mirror,
            }
            said = {name: value for name, value in options.items() if value is not UNCHANGED}
            words = ["ALTER TOPIC", _name(topic), "SET RETENTION", _with(said)]
        case ClearRetention(topic):
            words = ["ALTER TOPIC", _name(topic), "CLEAR RETENTION"]
        case SetPartitions(topic, partitions):
            words = ["ALTER TOPIC", _name(topic), "SET PARTITIONS", str(partitions)]
        case DropTopic(topic, if_exists):
            words = ["DROP TOPIC", "IF EXISTS" if if_exists else "", _name(topic)]
        case ClearTopic(topic):
            words = ["CLEAR TOPIC", _name(topic)]
        case SkipDamage(topic, number, to_offset):
            words = ["ALTER TOPIC", _name(topic), f"SKIP DAMAGED PARTITION {number}"]
            words += [f"TO OFFSET {to_offset}"]
        case Consume(topic, group, partition, start, limit, auto_ack, skip_damaged, topic_id):
            words = ["CONSUME FROM", _name(topic), *_topic_id(topic_id)]
            words += [] if group is None else ["GROUP", literal(group)]
            words += _partition(partition)
            words += [] if start == DEFAULT_START else ["FROM", _place(start)]
            words += [] if limit == DEFAULT_LIMIT else ["LIMIT", str(limit)]
            words += ["AUTO ACK"] if auto_ack else []
            words += ["SKIP DAMAGED"] if skip_damaged else []
        case Ack(topic, group, upto_offset, partition, settled, topic_id):
            words = ["ACK", _name(topic), *_topic_id(topic_id), "GROUP", literal(group)]
            words += _partition(partition)
            words += ["UPTO OFFSET", str(upto_offset)]
            words += ["WAIT SETTLED"] if settled else []
        case ResetGroup(group, topic, to, partition):
            words = ["RESET CONSUMER GROUP", literal(group), "ON", _name(topic)]
            words += [*_partition(partition), "TO", _place(to)]
        case Select(text):
            words = [text]
    return " ".join(word for word in words if word)


def _settings(settings: TopicSettings) -> Iterable[str]:
    if settings.alias is not None:
        yield f"ALIAS {literal(settings.alias)}"
    if settings.partitions != 1:
        yield f"PARTITIONS {settings.partitions}"
    values, usual = _options(settings), _options(TopicSettings())
    yield _with({name: values[name] for name in TOPIC_OPTIONS if values[name] != usual[name]})


def _options(settings: TopicSettings) -> dict[str, Value]:
    named = {name: getattr(settings, name, None) for name in TOPIC_OPTIONS}
    retention = settings.retention
    kept: dict[str, Value] = {
        "retention_seconds": retention.seconds,
        "retention_max_bytes": retention.max_bytes,
        "retention_waits_for_mirror": retention.waits_for_mirror,
    }
    return {**named, **kept}


def _add_source(statement: AddSource) -> list[str]:
    return ["ALTER TOPIC", _name(statement.topic), "ADD SOURCE", route_text(statement.route)]


def route_text(route: Route) -> str:
    """A route as ADD SOURCE takes it."""
    words = [_name(route.table), "ON", _ops(route.ops)]
    if route.filter is not None:
        text = route.filter.text
        # A comment at its end must not swallow the clauses behind it.
        words += ["WHERE", f"{text}\n" if "--" in text else text]
    if route.partition_by:
        words += ["PARTITION BY", ", ".join(map(_partition_part, route.partition_by))]
    if route.columns is not None:
        words += ["COLUMNS", f"({', '.join(map(_name, route.columns))})"]
    if route.payload is not PayloadMode.FULL:
        words.append(_with({"payload": route.payload.word}))
    return " ".join(words)


def _partition_part(part: str | Expression) -> str:
    return expression_to_sql(Column("row", (part,))) if isinstance(part, str) else part.text


def _ops(ops: frozenset[Op]) -> str:
    return ", ".join(op.name for op in sorted(ops))


def _partition(partition: int | None) -> list[str]:
    return [] if partition is None else ["PARTITION", str(partition)]


def _topic_id(topic_id: int | None) -> list[str]:
    return [] if topic_id is None else ["TOPIC_ID", str(topic_id)]


def _place(start: Start) -> str:
    match start:
        case Earliest():
            return "EARLIEST"
        case Latest():
            return "LATEST"
        case AtOffset(offset):
            return str(offset)
        case AtTimestamp(ts_ms):
            return f"TIMESTAMP {ts_ms}"


def _with(options: Mapping[str, Value]) -> str:
    said = ", ".join(f"{name} = {literal(value)}" for name, value in options.items())
    return f"WITH ({said})" if said else ""


def _name(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else '"' + name.replace('"', '""') + '"'
