"""From text to statements. Every mistake points at its word.

    CREATE TOPIC [IF NOT EXISTS] t [ALIAS 'a'] [PARTITIONS n] [WITH (name = value, …)]
    ALTER TOPIC t ADD SOURCE ns.table ON INSERT|UPDATE|DELETE[, …]
        [WHERE expr] [PARTITION BY expr, …] [COLUMNS (columns)]
        [WITH (payload = 'key'|'full'|'diff')]
    ALTER TOPIC t DROP SOURCE ns.table [ON op, …] | SET RETENTION WITH (…) | CLEAR RETENTION
        | SET PARTITIONS n | SKIP DAMAGED PARTITION p TO OFFSET n
    DROP TOPIC [IF EXISTS] t
    CLEAR TOPIC t
    CONSUME FROM t [TOPIC_ID i] [GROUP 'g'] [PARTITION p] [FROM place] [LIMIT n] [AUTO ACK]
        [SKIP DAMAGED]
    ACK t [TOPIC_ID i] GROUP 'g' [PARTITION p] UPTO OFFSET n [WAIT SETTLED]
    RESET CONSUMER GROUP 'g' ON t [PARTITION p] TO place
    SELECT …            and WITH … SELECT …, for DataFusion

A place is EARLIEST, LATEST, an offset, or TIMESTAMP and a text or milliseconds since 1970. What
stands in brackets may come in any order. Names are words, words with dots between, or quoted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from duolog.errors import InvalidSql
from duolog.sql import grammar_groups, grammar_topics
from duolog.sql.reader import Reader
from duolog.sql.statements import ClearTopic, DropTopic, Select
from duolog.sql.words import split

if TYPE_CHECKING:
    from duolog.sql.statements import Statement

_STATEMENTS = ("SELECT", "CREATE", "ALTER", "DROP", "CLEAR", "CONSUME", "ACK", "RESET", "WITH")


def parse(text: str) -> tuple[Statement, ...]:
    """The statements of a text, which semicolons separate; at least one. Raises InvalidSql."""
    found = tuple(_statement(Reader(text, words)) for words in split(text))
    if not found:
        raise InvalidSql(
            "There is no statement here. Statements begin with "
            f"{', '.join(_STATEMENTS[:-2])} or {_STATEMENTS[-2]}."
        )
    return found


def parse_one(text: str) -> Statement:
    """The statement of a text that is to have just one."""
    statements = parse(text)
    if len(statements) > 1:
        second = split(text)[1][0]
        raise InvalidSql("One statement at a time.", text=text, position=second.position)
    return statements[0]


def _statement(reader: Reader) -> Statement:
    statement = _read(reader)
    if reader.next.kind != "end":
        raise grammar_topics.out_of_place(reader)
    return statement


def _read(reader: Reader) -> Statement:
    first = reader.next
    match reader.choice(_STATEMENTS):
        case "CREATE":
            reader.expect("TOPIC")
            return grammar_topics.create(reader)
        case "ALTER":
            reader.expect("TOPIC")
            return grammar_topics.alter(reader)
        case "DROP":
            reader.expect("TOPIC")
            if_exists = reader.accept("IF", "EXISTS") is not None
            return DropTopic(grammar_topics.name(reader, "topic"), if_exists)
        case "CLEAR":
            reader.expect("TOPIC")
            return ClearTopic(grammar_topics.name(reader, "topic"))
        case "CONSUME":
            reader.expect("FROM")
            return grammar_groups.consume(reader)
        case "ACK":
            return grammar_groups.ack(reader)
        case "RESET":
            reader.expect("CONSUMER", "GROUP")
            return grammar_groups.reset(reader)
    while reader.next.kind != "end":
        reader.take()
    return Select(reader.text[first.position : reader.last.end], first.position)
