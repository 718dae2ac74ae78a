"""The columns that every topic has, made of a page of the log.

Keys and values are text where the topic's format is JSON, or Avro, which is shown as JSON; else
they are bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from duolog.errors import DuologError, Undecodable
from duolog.log.batch import RECORD_SCHEMA
from duolog.log.model import Format, Op, PayloadMode
from duolog.log.routing.codec import Part

if TYPE_CHECKING:
    from duolog.avro.reading import ValueReader
    from duolog.log.model import Topic

_OPS = pa.array([op.word for op in Op], pa.string())
_PAYLOADS = pa.array([mode.word for mode in PayloadMode], pa.string())
_PARTS = {"key": Part.KEY, "value": Part.VALUE}


@dataclass(frozen=True, slots=True, eq=False)
class Page:
    """Records of one partition in their order, as the log keeps them."""

    topic: str
    partition: int
    first_offset: int
    records: pa.Table  # of FETCHED_SCHEMA, in one piece

    def undecodable(self, row: int, reason: str) -> Undecodable:
        """Something is wrong with one record, to be raised."""
        offset = self.records.column("offset")[row].as_py()
        return Undecodable(
            f"Offset {offset} of topic '{self.topic}' partition {self.partition}: {reason}"
        )

    def somewhere(self, error: DuologError) -> Undecodable:
        """Something is wrong with one of these records; rows are counted from the first."""
        return Undecodable(
            f"Topic '{self.topic}' partition {self.partition}, from offset {self.first_offset} "
            f"on: {error}"
        )


class RecordColumns:
    """What every record of a topic has, as SQL shows it."""

    def __init__(self, topic: Topic, reader: ValueReader | None) -> None:
        settings = topic.settings
        self._reader = reader
        self._topic_id = topic.id
        self._formats = {"key": settings.key_format, "value": settings.value_format}
        kinds = {name: self._kind(name) for name in self._formats}
        self.fields = (
            pa.field("partition", pa.int32(), nullable=False),
            pa.field("offset", pa.int64(), nullable=False),
            pa.field("ts", pa.timestamp("ms", "UTC"), nullable=False),
            pa.field("op", pa.string()),
            pa.field("table", pa.string()),
            pa.field("payload", pa.string()),
            pa.field("key", kinds["key"]),
            pa.field("value", kinds["value"]),
            RECORD_SCHEMA.field("headers"),
            pa.field("topic_id", pa.int64(), nullable=False),
        )

    def column(self, page: Page, name: str) -> pa.Array:
        """One of them."""
        match name:
            case "partition":
                return pa.array([page.partition], pa.int32()).take(_zeros(page.records.num_rows))
            case "topic_id":
                return pa.array([self._topic_id], pa.int64()).take(_zeros(page.records.num_rows))
            case "ts":
                return _one(page, "ts").cast(pa.timestamp("ms", "UTC"))
            case "op":
                return _OPS.take(_one(page, "op"))
            case "payload":
                return _PAYLOADS.take(_one(page, "payload"))
            case "key" | "value":
                return self._content(page, name)
        return _one(page, name)

    def _kind(self, name: str) -> pa.DataType:
        return pa.string() if self._is_text(name) else pa.binary()

    def _is_text(self, name: str) -> bool:
        kind = self._formats[name]
        return kind is Format.JSON or (kind is Format.AVRO and self._reader is not None)

    def _content(self, page: Page, name: str) -> pa.Array:
        stored = _one(page, name)
        if not self._is_text(name):
            return stored
        if self._formats[name] is Format.AVRO and self._reader is not None:
            try:
                stored = self._reader.as_json(stored, _one(page, "headers"), _PARTS[name])
            except Undecodable as error:
                raise page.somewhere(error) from error
        try:
            return stored.cast(pa.string())
        except pa.ArrowInvalid:
            row = _first_that_is_no_text(stored)
            raise page.undecodable(
                row,
                f"the {name} is not UTF-8, as JSON would be. Leave this offset out, or read it "
                "with CONSUME.",
            ) from None


def _one(page: Page, name: str) -> pa.Array:
    column = page.records.column(name)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _zeros(count: int) -> pa.Array:
    return pa.nulls(count, pa.int8()).fill_null(0)


def _first_that_is_no_text(column: pa.BinaryArray) -> int:
    for row, content in enumerate(column.to_pylist()):
        try:
            (content or b"").decode()
        except UnicodeDecodeError:
            return row
    return 0
