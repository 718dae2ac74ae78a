"""A topic as a table, read in pages while a query wants more of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from duolog.errors import OffsetOutOfRange
from duolog.log.model import AtTimestamp, Format
from duolog.sql.select.avro_values import AvroValues
from duolog.sql.select.json_values import JsonValues
from duolog.sql.select.python_table import PythonTable, without_columns
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
_LATE = "topic_id"  # a column that tables of topics have not had from the beginning


class TopicTable(PythonTable):
    """`span` says what has to be read."""

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
        super().__init__(pa.schema(columns))
        self.span = EVERYTHING

    def read(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Rows of the span, by partition and offset."""
        for offsets in self._log.offsets(self._topic.id):
            if self.span.partitions is None or offsets.partition in self.span.partitions:
                for page in self._pages(offsets):
                    self._check()
                    yield self._batch(page, names)

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
        if not columns:
            return without_columns(page.records.num_rows)
        return pa.RecordBatch.from_arrays(columns, schema=self.projected(names))


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
