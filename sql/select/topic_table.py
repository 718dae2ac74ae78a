"""A topic as a table, read in pages while a query wants more of it."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset

from duolog.errors import OffsetOutOfRange
from duolog.log.model import AtTimestamp, Format
from duolog.sql.select.avro_values import AvroValues
from duolog.sql.select.json_values import JsonValues
from duolog.sql.select.record_columns import Page, RecordColumns
from duolog.sql.select.span import EVERYTHING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from duolog.avro.reading import ValueReader
    from duolog.log.access import LogAccess
    from duolog.log.model import PartitionOffsets, Topic

FIRST_PAGE_RECORDS = 256  # a query with a LIMIT may need no more
PAGE_RECORDS = 8192
PAGE_BYTES = 4 << 20
SAMPLE_RECORDS = 2000  # of all partitions together: half of them the oldest, half the newest
SAMPLE_BYTES = 4 << 20
_LOOK_AGAIN_SECONDS = 0.01
_LATE = "topic_id"  # a column that tables of topics have not had from the beginning


class TopicTable(pa.dataset.Dataset):  # type: ignore[misc]
    """What DataFusion takes for a table made in Python: it asks for columns, then for batches.

    `span` says what has to be read; `scans` counts how often a plan reads it. DataFusion turns
    errors into text, so the first one is kept in `failure`. It reads on threads of its own, and
    lets go of a query that is given up when it pleases; `stop` waits for that, since a program that
    ends while one of these threads is in Python is aborted.
    """

    def __init__(
        self,
        log: LogAccess,
        topic: Topic,
        reader: ValueReader | None,
        check: Callable[[], None],
    ) -> None:
        self._log = log
        self._topic = topic
        self._check = check
        self._record = RecordColumns(topic, reader)
        self._values = _values(topic, reader, lambda: _sample(log, topic))
        self._fields: dict[str, str] = {}  # a field of the value, by the name of its column
        types = self._values.types if self._values else {}
        # Values had fields of this name before records had it: they keep it, and queries mean them.
        columns = [each for each in self._record.fields if each.name not in {_LATE} & types.keys()]
        taken = {field.name for field in columns}
        for field, kind in types.items():
            name = field
            while name in taken:
                name = f"value_{name}"
            taken.add(name)
            self._fields[name] = field
            columns.append(pa.field(name, kind))
        self._schema = pa.schema(columns)
        self.span = EVERYTHING
        self.scans = 0
        self.failure: Exception | None = None
        self._state = threading.Condition()
        self._readers = 0
        self._stopped = False

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def scanner(self, columns: Sequence[str] | None = None, **_: Any) -> _Scanner:
        return _Scanner(self, columns)

    def get_fragments(self, _filter: Any = None) -> list[_Fragment]:
        self.scans += 1
        return [_Fragment(self)]

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Rows of the span, by partition and offset."""
        with self._state:
            self._readers += 1
        try:
            for offsets in self._log.offsets(self._topic.id):
                if self.span.partitions is None or offsets.partition in self.span.partitions:
                    for page in self._pages(offsets):
                        self._check()
                        yield self._batch(page, names)
        except Exception as error:
            self.failure = error
            raise
        finally:
            with self._state:
                self._readers -= 1
                self._state.notify_all()

    def stop(self, timeout_seconds: float, look_again: Callable[[], object]) -> None:
        """Let nobody read on, and wait for who is reading.

        What DataFusion has let go of is only dropped when it is called again: `look_again` does.
        """
        end = time.monotonic() + timeout_seconds
        with self._state:
            self._stopped = True
            while self._readers and time.monotonic() < end:
                self._state.wait(_LOOK_AGAIN_SECONDS)
                self._state.release()
                try:
                    look_again()
                finally:
                    self._state.acquire()

    def _pages(self, head: PartitionOffsets) -> Iterator[Page]:
        """Up to the end as it is now. What retention removes meanwhile is passed over."""
        span, partition = self.span, head.partition
        at = max(head.start, span.first_offset or 0)
        end = head.next_offset
        if span.last_offset is not None:
            end = min(end, span.last_offset + 1)
        if span.from_ms is not None and at < end:
            since = AtTimestamp(max(0, span.from_ms))
            at = max(at, self._log.resolve(self._topic.id, partition, since))
        size = FIRST_PAGE_RECORDS
        while at < end and not self._stopped:
            try:
                fetched = self._log.fetch(
                    self._topic.id,
                    partition,
                    at,
                    max_records=min(size, end - at),
                    max_bytes=PAGE_BYTES,
                )
            except OffsetOutOfRange as error:
                if error.earliest <= at:
                    raise
                at = error.earliest
                continue
            if fetched.next_offset <= at:
                return
            records = fetched.table()
            if fetched.left_out:  # behind what was passed over it may have gone beyond the end
                records = records.filter(pc.less(records.column("offset"), end))
            if records.num_rows:
                yield _page(self._topic, partition, at, records)
            at = fetched.next_offset
            size = min(2 * size, PAGE_RECORDS)

    def _batch(self, page: Page, names: Sequence[str]) -> pa.RecordBatch:
        decoded: dict[str, pa.Array] = {}
        fields = [self._fields[name] for name in names if name in self._fields]
        if fields and self._values:
            decoded = self._values.decode(page, fields)
        columns = [
            decoded[self._fields[name]] if name in self._fields else self._record.column(page, name)
            for name in names
        ]
        if not columns:  # as for count(*): a batch without columns still has its rows
            offsets = page.records.column("offset").combine_chunks()
            return pa.RecordBatch.from_arrays([offsets], ["offset"]).select([])
        return pa.RecordBatch.from_arrays(columns, schema=self.projected(names))

    def projected(self, names: Sequence[str] | None) -> pa.Schema:
        """The schema of some columns."""
        chosen = self._schema.names if names is None else names
        return pa.schema([self._schema.field(name) for name in chosen])


class _Fragment:
    """The whole table: one reader, so that rows come in the order of partitions and offsets."""

    def __init__(self, table: TopicTable) -> None:
        self._table = table

    def scanner(self, _schema: pa.Schema, columns: Any = None, **_: Any) -> _Scanner:
        return _Scanner(self._table, columns)


class _Scanner:
    def __init__(self, table: TopicTable, columns: Sequence[str] | None) -> None:
        self._table = table
        self.projected_schema = table.projected(columns)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        return self._table.batches(self.projected_schema.names)


def _values(
    topic: Topic, reader: ValueReader | None, sample: Callable[[], list[Page]]
) -> JsonValues | AvroValues | None:
    match topic.settings.value_format:
        case Format.JSON:
            return JsonValues(page.records.column("value") for page in sample())
        case Format.AVRO if reader is not None:
            return AvroValues(reader, sample())
    return None


def _sample(log: LogAccess, topic: Topic) -> list[Page]:
    """The oldest and the newest records of each partition."""
    heads = [head for head in log.offsets(topic.id) if head.next_offset > head.start]
    pages = []
    for head in heads:
        share = max(1, SAMPLE_RECORDS // (2 * len(heads)))
        for start in dict.fromkeys((head.start, max(head.start, head.next_offset - share))):
            try:
                fetched = log.fetch(
                    topic.id,
                    head.partition,
                    start,
                    max_records=share,
                    max_bytes=max(1, SAMPLE_BYTES // (2 * len(heads))),
                    skip_damaged=True,
                )
            except OffsetOutOfRange:  # retention was quicker
                continue
            if fetched.count:
                pages.append(_page(topic, head.partition, start, fetched.table()))
    return pages


def _page(topic: Topic, partition: int, first_offset: int, records: pa.Table) -> Page:
    return Page(topic.name, partition, first_offset, records.combine_chunks())
