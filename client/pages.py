"""A host's answer as batches, and batches as records."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from duolog.client.model import LeftOut, Page, Piece, Seat
from duolog.client.records import ConsumedRecord, RecordTable
from duolog.errors import HostMismatch
from duolog.log.model import Format

if TYPE_CHECKING:
    from duolog.client.values import Values


class ArrowBatch:
    """Records of one partition in a row, as they came. Decoded when they are asked for."""

    def __init__(
        self,
        topic: str,
        partition: int,
        format_: Format,
        columns: pa.RecordBatch,
        topic_id: int | None = None,
    ):
        self.topic = topic
        self.topic_id = topic_id
        self.partition = partition
        self.format = format_
        self.columns = columns
        self.first_offset = int(columns.column("offset")[0].as_py())
        self.next_offset = self.first_offset + int(columns.num_rows)
        self.values: list[Any] | None = None
        self._rows: list[tuple[Any, ...]] | None = None

    def __len__(self) -> int:
        return self.next_offset - self.first_offset

    @property
    def is_avro(self) -> bool:
        """Whether decoding may have to wait for a registry."""
        return self.format is Format.AVRO

    def decode(self, values: Values) -> None:
        """Make the values. May ask a registry; what it raises then is no fault of a record."""
        if self.values is None:
            self.values = values.of(self)

    def records(self, piece: Piece) -> list[ConsumedRecord]:
        """The records of a piece of this batch, which has been decoded."""
        if self._rows is None:
            # Each column at once: a dict a row, as to_pylist makes of the batch, takes three times.
            self._rows = list(zip(*map(_plain, self.columns.columns[2:]), strict=True))
        values = self.values or []
        made: list[ConsumedRecord] = []
        for offset in range(piece.start, piece.stop):
            at = offset - self.first_offset
            ts_ms, key, payload, op, table, mode, headers = self._rows[at]
            one = piece
            if piece.stop - piece.start > 1:
                one = piece.cut(offset, offset + 1)
            made.append(
                ConsumedRecord(
                    self.topic,
                    self.partition,
                    offset,
                    ts_ms,
                    key,
                    payload,
                    tuple((each["name"], each["value"]) for each in headers) if headers else (),
                    op,
                    table,
                    mode,
                    piece.attempt,
                    values[at],
                    one,
                    self.topic_id,
                )
            )
        return made

    def slice(self, piece: Piece) -> pa.RecordBatch:
        return self.columns.slice(piece.start - self.first_offset, piece.stop - piece.start)


def page_of(url: str, content: bytes, format_: Format | None) -> Page:
    """What an answer holds. `format_` goes before what the topic says of its values."""
    try:
        with pa.ipc.open_stream(pa.py_buffer(content)) as stream:
            batches = list(stream)
            said = {name.decode(): text for name, text in stream.schema.metadata.items()}
        topic = said["topic"].decode()
        next_offsets = {int(each): at for each, at in json.loads(said["next_offsets"]).items()}
        format_ = format_ or Format(said["value_format"].decode())
        made = [
            (int(each.column("partition_id")[0].as_py()), each) for each in batches if each.num_rows
        ]
        seat = _seat(said) if "member_id" in said else None
        left_out, damaged = _left_out(said, "left_out"), _left_out(said, "damaged")
        topic_id = int(said["topic_id"]) if "topic_id" in said else None
        found = [
            (number, ArrowBatch(topic, number, format_, each, topic_id)) for number, each in made
        ]
    except (pa.ArrowException, OSError, KeyError, ValueError, AttributeError) as error:
        raise HostMismatch(
            f"What answers at {url} sends records that cannot be read ({type(error).__name__}: "
            f"{error}). Use the same Duolog on both sides, and check what lies between."
        ) from error
    return Page(topic, next_offsets, found, seat, topic_id, left_out, damaged)


def _left_out(said: Mapping[str, bytes], name: str) -> list[LeftOut]:
    return [
        LeftOut(
            int(each["partition_id"]),
            int(each["first_offset"]),
            int(each["next_offset"]),
            bool(each.get("damaged", True)),
            str(each["reason"]),
        )
        for each in json.loads(said.get(name, b"[]"))
    ]


def _seat(said: Mapping[str, bytes]) -> Seat:
    assigned = frozenset(map(int, json.loads(said["assigned"])))
    generation = int(said["generation"])
    return Seat(said["member_id"].decode(), generation, assigned, is_stale=False)


def records_of(pieces: Sequence[Piece]) -> list[ConsumedRecord]:
    """The records of pieces whose batches have been decoded."""
    return [record for piece in pieces for record in piece.batch.records(piece)]


def tables_of(
    pieces: Sequence[Piece], with_values: Callable[[pa.Table, Format], pa.Table]
) -> list[RecordTable]:
    """A table a topic."""
    made = []
    ordered = sorted(pieces, key=lambda piece: piece.batch.topic)
    for topic, group in groupby(ordered, key=lambda piece: piece.batch.topic):
        of_topic = tuple(group)
        table = pa.Table.from_batches([piece.batch.slice(piece) for piece in of_topic])
        table = with_values(table.replace_schema_metadata(None), of_topic[0].batch.format)
        made.append(RecordTable(topic, table, of_topic, of_topic[0].batch.topic_id))
    return made


def _plain(column: pa.Array) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        return list(column.cast(pa.int64()).to_pylist())
    if pa.types.is_dictionary(column.type):
        words = column.dictionary.to_pylist()
        return [words[at] for at in np.asarray(column.indices)]
    return list(column.to_pylist())
