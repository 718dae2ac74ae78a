"""Rows as Spark's Kafka sink takes them: records of topics, column by column.

| column    | type                                    |                                            |
|-----------|-----------------------------------------|--------------------------------------------|
| value     | string, binary                          | must be there; null is a tombstone         |
| key       | string, binary                          | null or missing: partitions take turns     |
| topic     | string                                  | name or alias; the option wins             |
| partition | a whole number                          | null or missing: by the key, as Kafka does |
| headers   | array<struct<key string, value binary>> |                                            |
| timestamp | timestamp                               | null or missing: now                       |

Other columns are left out, as Spark's sink does. Runs in Spark tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from duolog.connector.bad_rows import Bad, sift
from duolog.connector.dead_letters import DeadLetterBox
from duolog.connector.headers import is_headers, record_headers
from duolog.connector.staged_part import StagedPart
from duolog.errors import InvalidRows, UnknownTopic
from duolog.log.batch import RECORD_SCHEMA
from duolog.log.model import Op, PayloadMode, Topic
from duolog.log.routing.kinds import is_binary, is_string, without_view
from duolog.log.routing.murmur2 import partition_of_keys
from duolog.log.timestamps import LATEST_TIME_MS

Placed = tuple[Topic, int, Any]  # topic, partition, records of batch.RECORD_SCHEMA


def _is_bytes(kind: pa.DataType) -> bool:
    return is_string(without_view(kind)) or is_binary(without_view(kind))


def _is_text(kind: pa.DataType) -> bool:
    return is_string(without_view(kind))


_COLUMNS: Mapping[str, tuple[Callable[[pa.DataType], bool], str]] = {
    "topic": (_is_text, "string"),
    "partition": (pa.types.is_integer, "int"),
    "key": (_is_bytes, "string or binary"),
    "value": (_is_bytes, "string or binary"),
    "headers": (is_headers, "array<struct<key string, value binary>>"),
    "timestamp": (pa.types.is_timestamp, "timestamp"),
}


@dataclass(frozen=True, slots=True)
class TopicRows:
    """What such rows are written to. Picklable."""

    columns: tuple[str, ...]  # those that are used
    topic: Topic | None  # none: each row names its own
    topics: Mapping[str, Topic]  # by name and alias, when rows name them

    @classmethod
    def of(cls, schema: pa.Schema, topic: Topic | None, topics: tuple[Topic, ...]) -> TopicRows:
        """Rows with these columns, to one topic or to those that they name."""
        columns = used_columns(schema.names, has_topic=topic is not None)
        _check(schema, columns, topic)
        by_name: dict[str, Topic] = {}
        if topic is None:
            by_name = {known.alias: known for known in topics if known.alias}
            by_name.update((known.name, known) for known in topics)
        return cls(columns, topic, by_name)

    def write(
        self,
        rows: pa.RecordBatch,
        part: StagedPart,
        box: DeadLetterBox | None,
        *,
        now_ms: int,
        turn: int,
    ) -> None:
        """Put the records of these rows into the part; with a box, bad rows go there."""
        if box is None:
            for placed in self.records(rows, now_ms=now_ms, turn=turn):
                part.add(*placed)
            return

        def attempt(some: pa.RecordBatch) -> list[Placed]:
            made = list(self.records(some, now_ms=now_ms, turn=turn))
            for _, _, records in made:
                box.check_fit(records)
            return made

        for found in sift(rows, attempt, lambda some: self.suspects(some, box.latest_ms)):
            if isinstance(found, Bad):
                box.add(found, "row")
                continue
            for placed in found:
                part.add(*placed)

    def suspects(
        self, rows: pa.RecordBatch, latest_ms: int = LATEST_TIME_MS
    ) -> npt.NDArray[np.int64]:
        """Numbers for rows whose topic or partition is not there, or whose time is too late."""
        words = np.zeros(len(rows), np.int64)
        if self.topic is not None:
            limits = np.full(len(rows), self.topic.partitions)
        else:
            named = rows.column("topic").cast(pa.string()).dictionary_encode()
            topics = [self.topics.get(word.as_py()) for word in named.dictionary]
            words = pc.fill_null(named.indices.cast(pa.int64()), len(topics)).to_numpy()
            limits = np.array([0 if t is None else t.partitions for t in (*topics, None)])[words]
        wanted = np.zeros(len(rows), np.int64)
        if "partition" in self.columns:
            wanted = pc.fill_null(rows.column("partition").cast(pa.int64()), 0).to_numpy()
        wrong = (wanted < 0) | (wanted >= limits)
        numbers = np.zeros(len(rows), np.int64)
        places = np.stack((words[wrong], wanted[wrong]), axis=1)
        _, number = np.unique(places, axis=0, return_inverse=True)
        numbers[wrong] = 1 + number.reshape(-1)
        if "timestamp" in self.columns:
            late = pc.greater(_whole_ms(rows.column("timestamp")), latest_ms)
            is_late = pc.fill_null(late, False).to_numpy(zero_copy_only=False)
            numbers[is_late & ~wrong] = numbers.max() + 1
        return numbers

    def records(self, rows: pa.RecordBatch, *, now_ms: int, turn: int) -> Iterator[Placed]:
        """The records of these rows, in their order within each partition."""
        named = {name: rows.column(name) for name in self.columns}
        columns = {
            "ts": _times(named.get("timestamp"), len(rows), now_ms),
            "key": _bytes(named.get("key"), len(rows)),
            "value": _bytes(named["value"], len(rows)),
            "headers": record_headers(named.get("headers"), len(rows)),
            "op": pa.array(np.full(len(rows), int(Op.NONE), np.int8)),
            "table": pa.nulls(len(rows), pa.string()),
            "payload": pa.array(np.full(len(rows), int(PayloadMode.NONE), np.int8)),
        }
        records = pa.RecordBatch.from_arrays(
            [columns[name] for name in RECORD_SCHEMA.names], schema=RECORD_SCHEMA
        )
        if not len(rows):
            return
        for topic, share, wanted in self._by_topic(records, named):
            places = _places(topic, share.column("key"), wanted, turn)
            for partition, placed in _by_number(share, places):
                yield topic, partition, placed

    def _by_topic(
        self, records: pa.RecordBatch, named: Mapping[str, pa.Array]
    ) -> Iterator[tuple[Topic, pa.RecordBatch, pa.Array | None]]:
        """The topics with their records and the partitions that are asked for."""
        partition = named.get("partition")
        if self.topic is not None:
            yield self.topic, records, partition
            return
        words = named["topic"].cast(pa.string()).dictionary_encode()
        if words.null_count:
            raise InvalidRows(
                f"Column 'topic' is null in row {_first(words.is_null())} of a batch, and no topic "
                "is set for all rows. Fill the column, or set option 'topic'."
            )
        numbers = words.indices.to_numpy()
        topics = [self._known(word.as_py()) for word in words.dictionary]
        for number, topic in enumerate(topics):
            if len(topics) == 1:
                yield topic, records, partition
                return
            chosen = pa.array(np.flatnonzero(numbers == number))
            yield topic, records.take(chosen), partition and partition.take(chosen)

    def _known(self, name: str) -> Topic:
        topic = self.topics.get(name)
        if topic is None:
            raise UnknownTopic(
                f"Column 'topic' names '{name}', which is no topic of this log (there are "
                f"{', '.join(sorted(self.topics)[:5]) or 'none'}). Make it first, or mend the rows."
            )
        return topic


def used_columns(names: Collection[str], *, has_topic: bool) -> tuple[str, ...]:
    """Those of a frame's columns that are written, where all rows go to one topic or not."""
    return tuple(name for name in _COLUMNS if name in names and not (name == "topic" and has_topic))


def _check(schema: pa.Schema, columns: tuple[str, ...], topic: Topic | None) -> None:
    shown = ", ".join(schema.names)
    if "value" not in columns:
        raise InvalidRows(
            f"The rows have no column 'value' (they have {shown}). Name the column to be written "
            "so, or set option 'table' if these are rows of a table."
        )
    if topic is None and "topic" not in columns:
        raise InvalidRows(
            f"Nothing says which topic these rows are for (they have {shown}). Set option 'topic', "
            "or add a column 'topic'; for rows of a table, set option 'table'."
        )
    for name in columns:
        if schema.names.count(name) > 1:
            raise InvalidRows(f"The rows have more than one column '{name}'. Rename one.")
        fits, wanted = _COLUMNS[name]
        kind = schema.field(name).type
        if not fits(kind):
            raise InvalidRows(
                f"Column '{name}' is of type {kind}; it must be {wanted}. Cast it, or rename it if "
                "it means something else."
            )


def _bytes(column: pa.Array | None, rows: int) -> pa.BinaryArray:
    return pa.nulls(rows, pa.binary()) if column is None else column.cast(pa.binary())


def _times(column: pa.Array | None, rows: int, now_ms: int) -> pa.Int64Array:
    if column is None:
        return pa.array(np.full(rows, now_ms, np.int64))
    times = pc.fill_null(_whole_ms(column), now_ms)
    if pc.any(pc.less(times, 0)).as_py():
        raise InvalidRows(
            f"Column 'timestamp' is before 1970 in row {_first(pc.less(times, 0))} of a batch, "
            "which no record can have. Mend it, or leave the column out."
        )
    return times


def _whole_ms(column: pa.Array) -> pa.Int64Array:
    # Not rounded to the nearest one: a record must not be later than its row.
    return column.cast(pa.timestamp("ms", column.type.tz), safe=False).cast(pa.int64())


def _places(
    topic: Topic, keys: pa.BinaryArray, wanted: pa.Array | None, turn: int
) -> npt.NDArray[np.int32]:
    """The partition of each record."""
    if wanted is None or wanted.null_count == len(wanted):
        return partition_of_keys(keys, topic.partitions, turn=turn)
    outside = pc.or_(pc.less(wanted, 0), pc.greater_equal(wanted, topic.partitions))
    if pc.any(outside).as_py():
        row = _first(outside)
        raise InvalidRows(
            f"Column 'partition' is {wanted[row].as_py()} in row {row} of a batch, but topic "
            f"'{topic.name}' has partitions 0 to {topic.partitions - 1}. Mend it, leave it null so "
            "that the key decides, or give the topic more partitions."
        )
    given = pc.fill_null(wanted, -1).cast(pa.int32()).to_numpy()
    if not wanted.null_count:
        return np.asarray(given)
    return np.where(given < 0, partition_of_keys(keys, topic.partitions, turn=turn), given)


def _by_number(
    records: pa.RecordBatch, places: npt.NDArray[np.int32]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The records of each partition, in their order."""
    # numpy sorts 16 bits by radix, several times faster; a topic has at most 65,536 partitions.
    order = np.argsort(places.astype(np.uint16), kind="stable")
    numbers, begins = np.unique(places[order], return_index=True)
    if len(numbers) > 1:
        records = records.take(pa.array(order))
    ends = [*begins[1:].tolist(), len(records)]
    for number, begin, end in zip(numbers.tolist(), begins.tolist(), ends, strict=True):
        yield number, records.slice(begin, end - begin)


def _first(flags: pa.BooleanArray) -> int:
    return int(pc.index(flags, True).as_py())
