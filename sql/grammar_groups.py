"""The grammar of what moves groups: CONSUME, ACK, RESET CONSUMER GROUP."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from duolog.log.model import AtOffset, AtTimestamp, Earliest, Latest
from duolog.sql.grammar_topics import clauses, name, whole
from duolog.sql.reader import shown
from duolog.sql.statements import MAX_LIMIT, Ack, Consume, ResetGroup

if TYPE_CHECKING:
    from duolog.log.model import Start
    from duolog.sql.reader import Reader

_A_PARTITION = "a partition's number"
_AN_OFFSET = "an offset"
_AN_ID = "a topic's id"


def consume(reader: Reader) -> Consume:
    """CONSUME FROM, from behind these words."""
    statement = Consume(name(reader, "topic"))
    words = ("TOPIC_ID", "GROUP", "PARTITION", "FROM", "LIMIT", "AUTO", "SKIP")
    for clause in clauses(reader, *words):
        match clause:
            case "TOPIC_ID":
                statement = replace(statement, topic_id=whole(reader, _AN_ID))
            case "GROUP":
                statement = replace(statement, group=name(reader, "group"))
            case "PARTITION":
                statement = replace(statement, partition=whole(reader, _A_PARTITION))
            case "FROM":
                statement = replace(statement, start=_place(reader))
            case "LIMIT":
                statement = replace(statement, limit=_limit(reader))
            case "SKIP":
                reader.expect("DAMAGED")
                statement = replace(statement, skip_damaged=True)
            case _:
                auto = reader.last
                reader.expect("ACK")
                statement = replace(statement, auto_ack=True)
    if statement.auto_ack and statement.group is None:
        raise reader.error(auto, "AUTO ACK moves a group: say which, GROUP 'g'.")
    return statement


def ack(reader: Reader) -> Ack:
    """ACK, from behind this word."""
    topic = name(reader, "topic")
    group: str | None = None
    upto_offset: int | None = None
    partition: int | None = None
    settled = False
    topic_id: int | None = None
    for clause in clauses(reader, "TOPIC_ID", "GROUP", "PARTITION", "UPTO", "WAIT"):
        match clause:
            case "TOPIC_ID":
                topic_id = whole(reader, _AN_ID)
            case "GROUP":
                group = name(reader, "group")
            case "PARTITION":
                partition = whole(reader, _A_PARTITION)
            case "WAIT":
                reader.expect("SETTLED")
                settled = True
            case _:
                reader.expect("OFFSET")
                upto_offset = whole(reader, _AN_OFFSET)
    if group is None:
        raise reader.error(reader.next, "Whose acknowledgement is it? GROUP 'g' is missing.")
    if upto_offset is None:
        raise reader.error(reader.next, "Up to where? UPTO OFFSET n is missing.")
    return Ack(topic, group, upto_offset, partition, settled, topic_id)


def reset(reader: Reader) -> ResetGroup:
    """RESET CONSUMER GROUP, from behind these words."""
    group = name(reader, "group")
    reader.expect("ON")
    topic = name(reader, "topic")
    partition: int | None = None
    to: Start | None = None
    for clause in clauses(reader, "PARTITION", "TO"):
        if clause == "PARTITION":
            partition = whole(reader, _A_PARTITION)
        else:
            to = _place(reader)
    if to is None:
        raise reader.error(
            reader.next, "Where to? TO EARLIEST, LATEST, an offset or TIMESTAMP '…' is missing."
        )
    return ResetGroup(group, topic, to, partition)


def _limit(reader: Reader) -> int:
    word = reader.next
    limit = whole(reader, "a number of records")
    if not 1 <= limit <= MAX_LIMIT:
        raise reader.error(word, f"LIMIT is 1 to {MAX_LIMIT:,}: ask again for what comes then.")
    return limit


def _place(reader: Reader) -> Start:
    if reader.accept("EARLIEST"):
        return Earliest()
    if reader.accept("LATEST"):
        return Latest()
    if reader.accept("TIMESTAMP"):
        return AtTimestamp(_moment(reader))
    if reader.accept("OFFSET") or reader.next.kind == "number":
        return AtOffset(whole(reader, _AN_OFFSET))
    raise reader.expected("EARLIEST", "LATEST", "TIMESTAMP", "an offset")


def _moment(reader: Reader) -> int:
    """Milliseconds since 1970. A text without a zone is UTC, as in SELECT."""
    word = reader.next
    if word.kind == "number":
        return whole(reader, "milliseconds since 1970")
    reader.take()
    try:
        moment = datetime.fromisoformat(word.text.strip() if word.kind == "text" else "")
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    except (ValueError, OverflowError):
        raise reader.error(
            word,
            f"Expected a time like '2026-01-31T12:00:00Z' or milliseconds since 1970, found "
            f"{shown(word)}.",
        ) from None
    return max(0, (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000)
