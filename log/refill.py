"""One partition's records put back from elsewhere, at the offsets that they had.

For a log that is being restored, which nobody reads yet: each piece is written with its head, and
the caller has all of it synced once, at the end.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from duolog.errors import Conflict, InvalidRecord
from duolog.log.arrow_metadata import WrongBatch
from duolog.log.batch import MAX_UNPACKED_BYTES, TARGET_BYTES, encode, read_header, unpacked
from duolog.log.heads import pack_head
from duolog.log.keys import partition_key, record_key, time_key
from duolog.log.model import Head, TopicPartition
from duolog.log.record_check import check_time
from duolog.log.state import State
from duolog.log.store import WriteBatch
from duolog.log.times import BatchSize, pack_batch_size

_MOST_ROWS: Final = 50_000  # in one batch


class PartitionRefill:
    """Records of one empty partition, in their order."""

    def __init__(self, state: State, where: TopicPartition, start: int) -> None:
        self._state = state
        self._where = where
        self._incarnation = state.store.recoveries
        if state.heads.get(where) != Head():
            raise Conflict(f"Partition {where.partition} has records already; refill an empty one.")
        batch = WriteBatch()
        self._move(Head(start, start), batch)

    @property
    def next_offset(self) -> int:
        return self._state.heads.get(self._where).next_offset

    def add(self, records: Any) -> None:
        """The next records, a pa.RecordBatch of RECORD_SCHEMA; InvalidRecord if it is not whole.

        They may have any time that a log can hold: what was written once is put back as it was.
        """
        if not records.num_rows:
            return
        try:
            records.validate(full=True)
        except pa.ArrowException as error:
            raise self._refused(error) from None
        bounds = pc.min_max(records.column("ts"))
        check_time(bounds["min"].as_py())
        check_time(bounds["max"].as_py())
        rows, size = records.num_rows, max(1, records.nbytes)
        share = max(1, min(_MOST_ROWS, rows * TARGET_BYTES // size))
        for first in range(0, rows, share):
            encoded = encode(records.slice(first, share))
            try:
                unpacked(encoded, MAX_UNPACKED_BYTES)
            except WrongBatch as wrong:
                raise self._refused(wrong) from None
            self._add(encoded)

    def _refused(self, wrong: Exception) -> InvalidRecord:
        return InvalidRecord(
            f"Records for partition {self._where.partition} from offset {self.next_offset} on "
            f"could not be read again: {wrong}. Look at what they come from."
        )

    def _add(self, encoded: bytes) -> None:
        head = self._state.heads.get(self._where)
        header = read_header(encoded)
        last_ts_ms = max(head.last_ts_ms, header.max_ts_ms)
        batch = WriteBatch()
        batch.put("records", record_key(self._where, head.next_offset), encoded)
        batch.put(
            "times",
            time_key(self._where, last_ts_ms, head.next_offset),
            pack_batch_size(BatchSize(header.count, len(encoded))),
        )
        upto = head.next_offset + header.count
        self._move(Head(head.start, upto, head.bytes + len(encoded), last_ts_ms), batch)

    def _move(self, head: Head, batch: WriteBatch) -> None:
        batch.put("heads", partition_key(self._where), pack_head(head))
        self._state.store.wait_for_room()
        self._state.store.write(batch, self._incarnation)
        self._state.heads.publish({self._where: head})

    def sync(self) -> None:
        """Make all of it durable."""
        self._state.store.sync(self._incarnation)
