"""Does statements on a log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duolog.clock import SystemClock
from duolog.sql import groups, topics
from duolog.sql.grammar import parse_one
from duolog.sql.select.limits import QueryLimits
from duolog.sql.statements import Ack, Consume, ResetGroup, Select

if TYPE_CHECKING:
    from duolog.avro.reading import ValueReader
    from duolog.clock import Clock
    from duolog.log.access import LogAccess
    from duolog.sql.result import SqlResult
    from duolog.sql.statements import Statement

_NO_LIMITS = QueryLimits()


def run(
    log: LogAccess,
    sql: str,
    *,
    reader: ValueReader | None = None,
    clock: Clock | None = None,
    limits: QueryLimits = _NO_LIMITS,
) -> SqlResult:
    """Do one statement. Raises InvalidSql before anything is done.

    `reader` decodes topics in Avro; without it their keys and values are bytes.
    """
    statement = parse_one(sql)
    return execute(log, statement, sql, reader=reader, clock=clock, limits=limits)


def execute(
    log: LogAccess,
    statement: Statement,
    sql: str = "",
    *,
    reader: ValueReader | None = None,
    clock: Clock | None = None,
    limits: QueryLimits = _NO_LIMITS,
) -> SqlResult:
    """Do a statement that `parse` has made of `sql`."""
    match statement:
        case Select():
            from duolog.sql.select.query import select

            if not sql:
                sql, statement = statement.text, Select(statement.text)
            clock = clock or SystemClock()
            return select(log, statement, sql, reader=reader, clock=clock, limits=limits)
        case Consume():
            return groups.consume(log, statement, reader)
        case Ack():
            return groups.ack(log, statement)
        case ResetGroup():
            return groups.reset(log, statement)
    return topics.define(log, statement)
