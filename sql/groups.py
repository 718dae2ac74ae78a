"""Does what reads for groups and moves them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from duolog.errors import DamagedBatch, Undecodable
from duolog.log.first_positions import known_or_first
from duolog.sql.result import SqlResult
from duolog.sql.select.record_columns import Page, RecordColumns

if TYPE_CHECKING:
    from collections.abc import Iterable

    from duolog.avro.reading import ValueReader
    from duolog.log.access import LogAccess
    from duolog.log.fetched import Fetched
    from duolog.log.model import Topic
    from duolog.sql.statements import Ack, Consume, ResetGroup

MAX_BYTES = 8 << 20
"""CONSUME answers fewer records than its LIMIT, if these have more."""

_ACKNOWLEDGED = pa.schema(
    [
        ("group_id", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("acknowledged_offset", pa.int64()),
        ("position", pa.int64()),
        ("topic_id", pa.int64()),
    ]
)
_SETTLED = _ACKNOWLEDGED.append(pa.field("settled", pa.bool_())).append(
    pa.field("pending", pa.string())
)
_MOVED = pa.schema(
    [
        ("group_id", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("was", pa.int64()),
        ("position", pa.int64()),
    ]
)


def consume(log: LogAccess, statement: Consume, reader: ValueReader | None) -> SqlResult:
    """Records from where the group is, or from the start that was named; does not wait.

    All partitions in turns, or the one that was named. AUTO ACK acknowledges what is answered.
    """
    topic = log.topic(statement.topic, topic_id=statement.topic_id)
    pages = _read(log, topic, statement)
    columns = RecordColumns(topic, reader)
    tables = [_shown(columns, topic, page) for page in pages]
    result = SqlResult.of(_together(tables, columns))
    if statement.auto_ack and statement.group is not None:
        last = {page.partition: page.next_offset - 1 for page in pages}
        for partition, offset in last.items():
            log.ack(statement.group, topic.id, offset, partition)
    return result


def _read(log: LogAccess, topic: Topic, statement: Consume) -> list[Fetched]:
    numbers = range(topic.partitions) if statement.partition is None else (statement.partition,)
    positions = _positions(log, topic, statement, numbers)
    pages: list[Fetched] = []
    damaged: DamagedBatch | None = None
    left, bytes_left = statement.limit, MAX_BYTES
    while positions and left > 0 and bytes_left > 0:
        share = max(1, left // len(positions))
        for partition in list(positions):
            if left <= 0 or bytes_left <= 0:
                break
            try:
                page = log.fetch(
                    topic.id,
                    partition,
                    positions[partition],
                    max_records=min(share, left),
                    max_bytes=bytes_left,
                    skip_damaged=statement.skip_damaged,
                )
            except DamagedBatch as damage:  # what is before it and in others comes first
                damaged = damaged or damage
                del positions[partition]
                continue
            if not page.count:
                del positions[partition]
                continue
            positions[partition] = page.next_offset
            pages.append(page)
            left -= page.count
            bytes_left -= sum(int(batch.records.nbytes) for batch in page.batches)
    if damaged is not None and not pages:
        raise damaged
    return pages


def _positions(
    log: LogAccess, topic: Topic, statement: Consume, partitions: Iterable[int]
) -> dict[int, int]:
    """Where to begin in each partition."""
    if statement.group is None:
        return {each: log.resolve(topic.id, each, statement.start) for each in partitions}
    starts = dict.fromkeys(partitions, statement.start)
    known = known_or_first(log, statement.group, topic.id, starts)
    heads = log.offsets(topic.id)
    # What retention has removed meanwhile is not there to be read.
    return {each: max(at.position, heads[each].start) for each, at in known.items()}


def _shown(columns: RecordColumns, topic: Topic, fetched: Fetched) -> pa.Table:
    records = fetched.table().combine_chunks()
    first = fetched.batches[0].base_offset
    page = Page(topic.name, fetched.partition, first, records)
    shown = {}
    for field in columns.fields:
        try:
            shown[field.name] = columns.column(page, field.name)
        except Undecodable:  # a consumer has to get past it: as bytes, then
            shown[field.name] = records.column(field.name)
    return pa.table(shown)


def _together(tables: list[pa.Table], columns: RecordColumns) -> pa.Table:
    """One table. Where a column is text in some and bytes in others, it is bytes."""
    if not tables:
        return pa.schema(columns.fields).empty_table()
    schema = pa.schema(columns.fields)
    for name in ("key", "value"):
        if any(pa.types.is_binary(table.schema.field(name).type) for table in tables):
            at = schema.get_field_index(name)
            schema = schema.set(at, pa.field(name, pa.binary()))
    return pa.concat_tables([table.cast(schema) for table in tables])


def ack(log: LogAccess, statement: Ack) -> SqlResult:
    """Where the group is then; and whether in Kafka too, if that was to be waited for."""
    topic = log.topic(statement.topic, topic_id=statement.topic_id)
    position = log.ack(statement.group, topic.id, statement.upto_offset, statement.partition)
    row = {
        "group_id": position.group,
        "topic": position.topic,
        "partition": position.partition,
        "acknowledged_offset": position.upto_offset,
        "position": position.position,
        "topic_id": topic.id,
    }
    if not statement.settled:
        return SqlResult.of_rows(_ACKNOWLEDGED, [row])
    settled = log.settle_group(position.group, topic.id, position.partition)
    said = {"settled": settled.is_settled, "pending": settled.pending or None}
    return SqlResult.of_rows(_SETTLED, [{**row, **said}])


def reset(log: LogAccess, statement: ResetGroup) -> SqlResult:
    """Where the group was and is, in each partition; all are looked up before one is moved."""
    topic = log.topic(statement.topic)
    numbers = range(topic.partitions) if statement.partition is None else (statement.partition,)
    moves = []
    for partition in numbers:
        known = log.group_position(statement.group, topic.id, partition)
        moves.append((partition, known, log.resolve(topic.id, partition, statement.to)))
    for partition, known, offset in moves:
        version = 0 if known is None else known.version
        log.seek(statement.group, topic.id, partition, offset, expected_version=version)
    return SqlResult.of_rows(
        _MOVED,
        [
            {
                "group_id": statement.group,
                "topic": topic.name,
                "partition": partition,
                "was": None if known is None else known.position,
                "position": offset,
            }
            for partition, known, offset in moves
        ],
    )
