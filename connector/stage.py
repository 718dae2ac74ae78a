"""Phase one, in tasks: rows in, one staged part out.

Nothing is committed here, and no offset is given out. A task that is run twice stages two parts;
only the message of the run that counts reaches the driver.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from duolog.connector.staged_part import StagedPart
from duolog.connector.table_rows import TableRows
from duolog.connector.topic_rows import TopicRows
from duolog.errors import DuologError, InvalidRequest, NotFound
from duolog.log.model import Writer
from duolog.log.staging import staging_folder


@dataclass(frozen=True, slots=True)
class Staged:
    """What a task tells the driver."""

    part: bytes = b""  # a Part's message
    rows: int = 0
    row_bytes: int = 0
    unrouted: int = 0
    left_over: bytes | None = None  # of the feed
    ts_ms: int = 0  # what rows without a time of their own took
    refusal: DuologError | None = None  # rows that no other try would make right


@dataclass(frozen=True, slots=True)
class LastEpoch:
    """The writer's last one when the plan was made, and the time that its rows took."""

    epoch: int
    ts_ms: int


@dataclass(frozen=True, slots=True)
class StagePlan:
    """All that a task needs to know. Picklable, and needs only pyarrow and numpy."""

    folder: Path  # of the log
    writer: Writer
    rows: TopicRows | TableRows
    now_ms: int
    last: LastEpoch | None = None

    def stage(self, batches: Iterable[pa.RecordBatch], *, epoch: int, turn: int) -> Staged:
        """Stage one task's rows. `turn` is the task's number: keyless records spread by it."""
        try:
            return self._staged(batches, epoch, epoch + turn)
        except (InvalidRequest, NotFound) as refusal:
            # Told, not raised: Spark would run the task again and again, and wrap the error.
            return Staged(refusal=refusal)

    def ts_ms(self, epoch: int) -> int:
        """The time for rows without one: a repeat takes that of the first try.

        Some envelopes carry it in the value, and a repeat with other values would be refused.
        """
        if self.last is not None and self.last.epoch == epoch:
            return self.last.ts_ms
        return self.now_ms

    def _staged(self, batches: Iterable[pa.RecordBatch], epoch: int, turn: int) -> Staged:
        folder = staging_folder(self.folder, self.writer, epoch)
        part = StagedPart(folder)
        try:
            if isinstance(self.rows, TopicRows):
                return self._of_topics(self.rows, batches, part, self.ts_ms(epoch), turn)
            return self._of_table(self.rows, batches, part, self.ts_ms(epoch), turn, folder)
        except BaseException:
            part.abort()
            raise

    def _of_topics(
        self,
        topic_rows: TopicRows,
        batches: Iterable[pa.RecordBatch],
        part: StagedPart,
        ts_ms: int,
        turn: int,
    ) -> Staged:
        rows = row_bytes = 0
        for number, batch in enumerate(batches):
            rows += len(batch)
            row_bytes += batch.nbytes
            for topic, partition, records in topic_rows.records(
                batch, now_ms=ts_ms, turn=turn + number
            ):
                part.add(topic, partition, records)
        return Staged(part.finish().message(), rows, row_bytes, ts_ms=ts_ms)

    def _of_table(
        self,
        table_rows: TableRows,
        batches: Iterable[pa.RecordBatch],
        part: StagedPart,
        ts_ms: int,
        turn: int,
        folder: Path,
    ) -> Staged:
        reader = table_rows.feed.at(ts_ms).reader(folder)
        try:
            rows = row_bytes = unrouted = 0
            for number, batch in enumerate(batches):
                rows += len(batch)
                row_bytes += batch.nbytes
                unrouted += table_rows.write(reader.changes_of(batch), part, turn=turn + number)
            unrouted += table_rows.write(reader.finish(), part, turn=turn)
            left_over = reader.left_over()
            return Staged(part.finish().message(), rows, row_bytes, unrouted, left_over, ts_ms)
        except BaseException:
            reader.abort()
            raise
