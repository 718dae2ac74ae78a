"""Phase one, in tasks: rows in, one staged part out.

Nothing is committed here, and no offset is given out. A task that is run twice stages two parts;
only the message of the run that counts reaches the driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from duolog.connector.dead_letters import DeadLetterBox, DeadLetters
from duolog.connector.staged_part import StagedPart
from duolog.connector.table_rows import TableRows
from duolog.connector.topic_rows import TopicRows
from duolog.errors import DuologError, InvalidRequest, NotFound
from duolog.log.model import MAX_RECORD_BYTES, Writer
from duolog.log.staging import StagingPlace


@dataclass(frozen=True, slots=True)
class Staged:
    """What a task tells the driver."""

    part: bytes = b""  # a Part's message
    rows: int = 0
    row_bytes: int = 0
    unrouted: int = 0
    bad: int = 0
    first_bad: str = ""  # what was wrong with the first of them
    versions: tuple[int, int] | None = None  # the lowest and highest, of a table that counts them
    left_over: bytes | None = None  # of the feed
    ts_ms: int = 0  # what rows without a time of their own took
    refusal: DuologError | None = None  # rows that no other try would make right


@dataclass(frozen=True, slots=True)
class LastEpoch:
    """The writer's last one when the plan was made, and the time that its rows took."""

    epoch: int
    ts_ms: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class StagePlan:
    """All that a task needs to know. Picklable, and needs only pyarrow and numpy."""

    place: StagingPlace  # of the writer, for whatever epoch
    writer: Writer
    rows: TopicRows | TableRows
    now_ms: int
    last: LastEpoch | None = None
    max_record_bytes: int = MAX_RECORD_BYTES
    letters: DeadLetters | None = None  # none: a bad row stops the write

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

    def part(self, epoch: int) -> StagedPart:
        """An empty part of this epoch."""
        return StagedPart(self.place.at(epoch), max_record_bytes=self.max_record_bytes)

    def box(self, part: StagedPart, epoch: int, turn: int) -> DeadLetterBox | None:
        """Takes bad rows into a part, where they do not stop the write."""
        if self.letters is None:
            return None
        return DeadLetterBox(self.letters, part, self.ts_ms(epoch), turn)

    def _staged(self, batches: Iterable[pa.RecordBatch], epoch: int, turn: int) -> Staged:
        part = self.part(epoch)
        box = self.box(part, epoch, turn)
        counted = _Counted(batches)
        try:
            if isinstance(self.rows, TopicRows):
                for number, batch in enumerate(counted):
                    self.rows.write(batch, part, box, now_ms=self.ts_ms(epoch), turn=turn + number)
                told = Staged()
            else:
                told = self._of_table(self.rows, counted, part, box, epoch, turn)
            return replace(
                told,
                part=part.finish().message(),
                rows=counted.rows,
                row_bytes=counted.row_bytes,
                bad=0 if box is None else box.rows,
                first_bad="" if box is None else box.first,
                ts_ms=self.ts_ms(epoch),
            )
        except BaseException:
            part.abort()
            raise

    def _of_table(
        self,
        table_rows: TableRows,
        batches: Iterable[pa.RecordBatch],
        part: StagedPart,
        box: DeadLetterBox | None,
        epoch: int,
        turn: int,
    ) -> Staged:
        reader = table_rows.feed.at(self.ts_ms(epoch)).reader(self.place.at(epoch))
        try:
            unrouted = 0
            for number, batch in enumerate(batches):
                changes = table_rows.read(reader, batch, box)
                unrouted += table_rows.write(changes, part, box, turn=turn + number)
            unrouted += table_rows.write(reader.finish(), part, box, turn=turn)
            return Staged(
                unrouted=unrouted, versions=reader.versions(), left_over=reader.left_over()
            )
        except BaseException:
            reader.abort()
            raise


class _Counted:
    """Batches, counted on their way."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = batches
        self.rows = self.row_bytes = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            self.rows += len(batch)
            self.row_bytes += batch.nbytes
            yield batch
