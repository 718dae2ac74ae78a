"""Records of one Kafka partition, read in pieces and put into the log.

By whole columns as far as that goes, and by a client library from there on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa

from duolog.bridge.kafka.audit.kafka_reader import KafkaReader
from duolog.bridge.kafka.audit.stretches import Edges
from duolog.bridge.kafka.restore.numbering import Numbering
from duolog.bridge.kafka.restore.plain_reader import PlainReader
from duolog.errors import InvalidRecord
from duolog.log.batch import RECORD_SCHEMA
from duolog.log.refill import PartitionRefill

_FIRST_RECORDS: Final = 64  # nobody knows yet how large they are; 1 MiB each is 64 MiB
_MOST_RECORDS: Final = 20_000
_PIECE_BYTES: Final = 32 << 20


class Pieces:
    """How many offsets are read at once, so that a piece has about so many bytes. Pure."""

    def __init__(self) -> None:
        self.records = _FIRST_RECORDS

    def saw(self, records: int, size_bytes: int) -> None:
        """What the last piece had; the next one has at most four times as many."""
        fitting = _MOST_RECORDS if not records else _PIECE_BYTES * records // max(1, size_bytes)
        self.records = max(1, min(fitting, 4 * self.records, _MOST_RECORDS))


def refill_partition(
    plain: PlainReader,
    reader: KafkaReader,
    place: tuple[str, int],
    edges: Edges,
    numbering: Numbering,
    refill: PartitionRefill,
    advance: Callable[[int], object],
) -> None:
    """Everything that Kafka keeps of a partition up to its end."""
    at = edges.start
    for piece in plain.read(*place, edges.start, edges.next_offset):
        numbering.take(piece.offsets)
        refill.add(_as_stored(piece.columns, place, piece.offsets))
        advance(int(piece.offsets[-1]) + 1 - at)
        at = int(piece.offsets[-1]) + 1
    pieces = Pieces()
    while at < edges.next_offset:
        stop = min(at + pieces.records, edges.next_offset)
        read = reader.read(*place, at, stop)
        numbering.take(read.offsets)
        if len(read):
            refill.add(_as_stored(read.columns, place, read.offsets))
        pieces.saw(len(read), read.columns.nbytes)
        advance(stop - at)
        at = stop
    numbering.end(edges.next_offset)


def _as_stored(columns: Any, place: tuple[str, int], offsets: np.ndarray[Any, Any]) -> Any:
    """With what Kafka does not have: it knows no operation, table or kind of payload."""
    times = columns.column("ts").to_numpy(zero_copy_only=False)
    if (times < 0).any():
        raise InvalidRecord(
            f"Kafka topic '{place[0]}' partition {place[1]} has a record without a time at offset "
            f"{int(offsets[np.argmax(times < 0)]):,}; a log cannot hold it."
        )
    rows = columns.num_rows
    none = pa.array(np.zeros(rows, np.int8))
    known = {
        **dict(zip(columns.schema.names, columns.columns, strict=True)),
        "op": none,
        "table": pa.nulls(rows, RECORD_SCHEMA.field("table").type),
        "payload": none,
    }
    return pa.RecordBatch.from_arrays(
        [known[name] for name in RECORD_SCHEMA.names], schema=RECORD_SCHEMA
    )
