"""The grammar of what changes topics: CREATE and ALTER TOPIC. Names, numbers and clauses too."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from duolog.errors import InvalidFilter, InvalidSql
from duolog.log.model import Op, PayloadMode, TopicSettings
from duolog.log.routing.filter.parse import parse_filter, parse_partition_by
from duolog.sql import options
from duolog.sql.reader import shown
from duolog.sql.statements import (
    UNCHANGED,
    AddSource,
    ClearRetention,
    CreateTopic,
    DropSource,
    SetPartitions,
    SetRetention,
    SkipDamage,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from duolog.sql.reader import Reader
    from duolog.sql.statements import Definition

_OPS = {op.name: op for op in (Op.INSERT, Op.UPDATE, Op.DELETE)}
_MAX_NUMBER = 2**63 - 1
_CLAUSES = (("PARTITION", "BY"), ("COLUMNS", "("), ("WITH", "("))

Parsed = TypeVar("Parsed")


def create(reader: Reader) -> CreateTopic:
    """CREATE TOPIC, from behind these words."""
    if_not_exists = reader.accept("IF", "NOT", "EXISTS") is not None
    topic = name(reader, "topic")
    settings = TopicSettings()
    for clause in clauses(reader, "ALIAS", "PARTITIONS", "WITH"):
        match clause:
            case "ALIAS":
                settings = replace(settings, alias=name(reader, "alias"))
            case "PARTITIONS":
                settings = replace(settings, partitions=whole(reader, "a number of partitions"))
            case _:
                found = options.read_options(reader, options.TOPIC_OPTIONS)
                settings = options.topic_settings(reader, settings, found)
    return CreateTopic(topic, settings, if_not_exists)


def alter(reader: Reader) -> Definition:
    """ALTER TOPIC, from behind these words."""
    topic = name(reader, "topic")
    match reader.choice(("ADD", "DROP", "SET", "CLEAR", "SKIP")):
        case "ADD":
            reader.expect("SOURCE")
            return _add_source(reader, topic)
        case "DROP":
            reader.expect("SOURCE")
            table = name(reader, "table")
            return DropSource(topic, table, _ops(reader) if reader.accept("ON") else None)
        case "CLEAR":
            reader.expect("RETENTION")
            return ClearRetention(topic)
        case "SKIP":
            reader.expect("DAMAGED", "PARTITION")
            partition = whole(reader, "a partition's number")
            reader.expect("TO", "OFFSET")
            return SkipDamage(topic, partition, whole(reader, "an offset"))
    if reader.choice(("RETENTION", "PARTITIONS")) == "PARTITIONS":
        return SetPartitions(topic, whole(reader, "a number of partitions"))
    reader.expect("WITH")
    found = options.read_options(reader, options.RETENTION_OPTIONS)
    seconds, max_bytes, waits = (found.get(each) for each in options.RETENTION_OPTIONS)
    return SetRetention(
        topic,
        UNCHANGED if seconds is None else options.number_of(reader, seconds),
        UNCHANGED if max_bytes is None else options.whole_of(reader, max_bytes),
        UNCHANGED if waits is None else options.truth_of(reader, waits),
    )


def _add_source(reader: Reader, topic: str) -> AddSource:
    table = name(reader, "table")
    reader.expect("ON")
    source = AddSource(topic, table, _ops(reader))
    for clause in clauses(reader, "WHERE", "PARTITION", "COLUMNS", "WITH"):
        match clause:
            case "WHERE":
                where = _of_filter_language(reader, "a condition behind WHERE", parse_filter)
                source = replace(source, where=where)
            case "PARTITION":
                reader.expect("BY")
                parts = _of_filter_language(
                    reader, "columns behind PARTITION BY", parse_partition_by
                )
                source = replace(source, partition_by=parts)
            case "COLUMNS":
                reader.expect("(")
                columns = tuple(name(reader, "column") for _ in reader.commas())
                reader.expect(")")
                source = replace(source, columns=columns)
            case _:
                found = options.read_options(reader, ("payload",))
                payload = found.get("payload")
                mode = PayloadMode.FULL if not payload else options.payload_of(reader, payload)
                source = replace(source, payload=mode)
    return source


def _ops(reader: Reader) -> frozenset[Op]:
    found: set[Op] = set()
    for _ in reader.commas():
        word = reader.next
        op = _OPS[reader.choice(_OPS)]
        if op in found:
            raise reader.error(word, f"{word.keyword} is here twice.")
        found.add(op)
    return frozenset(found)


def _of_filter_language(reader: Reader, what: str, parse: Callable[[str], Parsed]) -> Parsed:
    """What stands up to the next clause. Its own mistakes point into the whole text."""
    first = reader.next
    depth = 0
    while reader.next.kind != "end":
        ahead = reader.next.keyword, reader.after_next.keyword
        if not depth and (ahead in _CLAUSES or ahead[0] == "WHERE"):
            break
        depth += {"(": 1, ")": -1}.get(reader.take().keyword, 0)
    if reader.next is first:
        raise reader.error(first, f"Expected {what}, found {shown(first)}.")
    try:
        return parse(reader.text[first.position : reader.last.end])
    except InvalidFilter as mistake:
        position = first.position + (mistake.position or 0)
        raise InvalidSql(mistake.reason, text=reader.text, position=position) from None


def clauses(reader: Reader, *words: str) -> Iterator[str]:
    """The clauses that follow, in any order, each once; up to the end of the statement."""
    left = list(words)
    while reader.next.kind != "end":
        word = reader.next
        if word.keyword in words and word.keyword not in left:
            raise reader.error(word, f"{word.keyword} is here twice.")
        if word.keyword not in left:
            raise out_of_place(reader, *left)
        left.remove(word.keyword)
        yield reader.take().keyword


def out_of_place(reader: Reader, *possible: str) -> InvalidSql:
    """Something stands where the statement could end."""
    word = reader.next
    if word.keyword == "-" and reader.last.kind == "name":
        return reader.error(word, 'A name with a - in it is put into quotes: "my-topic".')
    if possible:
        return reader.expected(*possible, "the end")
    return reader.error(word, f"{shown(word)} has no place here. A semicolon ends a statement.")


def name(reader: Reader, what: str) -> str:
    """A name: a word, words with dots between them, or quoted. Case counts."""
    parts = [_part(reader, what)]
    while reader.accept("."):
        parts.append(_part(reader, what))
    return ".".join(parts)


def _part(reader: Reader, what: str) -> str:
    word = reader.take()
    if word.kind not in ("name", "quoted", "text"):
        quotes = ' A name with other characters is put into quotes: "my-name".'
        hint = quotes if word.kind in ("number", "symbol") else ""
        raise reader.error(word, f"Expected the {what}'s name here, found {shown(word)}.{hint}")
    return word.text


def whole(reader: Reader, what: str) -> int:
    """A whole number from 0."""
    word = reader.take()
    number = int(word.text) if word.kind == "number" and word.text.isdigit() else None
    if number is None or number > _MAX_NUMBER:
        raise reader.error(word, f"Expected {what} here, found {shown(word)}.")
    return number
