"""What `publish` makes of its lines: records for one topic, or rows that go by their routes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from duolog.cli.record_lines import json_of, record_of
from duolog.cli.sending import Line
from duolog.cli.sequences import Sent, Sequences, ends_of
from duolog.clock import SystemClock
from duolog.errors import InvalidRecord, InvalidRows, UnknownRoute
from duolog.log.model import Op, Record, Topic

if TYPE_CHECKING:
    from duolog.log import LogAccess


class ToTopic:
    """Records for one topic."""

    def __init__(
        self, log: LogAccess, topic: Topic, *, raw: bool, writer: str | None, first: int
    ) -> None:
        self._log = log
        self._topic = topic
        self._raw = raw
        self._sequences = None
        if writer is not None:
            self._sequences = Sequences(log, writer, first, ends_of(log))

    def parse(self, line: bytes) -> Record | None:
        if self._raw:
            return Record(line)
        return record_of(line) if line.strip() else None

    def groups(self, lines: list[Line]) -> Iterable[list[Line]]:
        return [lines]

    def send(self, lines: list[Line]) -> Sequence[Sent]:
        records = [line.content for line in lines]
        if self._sequences is not None:
            return self._sequences.publish(self._topic.id, records)
        return [(placed, None) for placed in self._log.publish(self._topic.id, records)]

    def finish(self) -> int:
        if self._sequences is None:
            return 0
        self._sequences.finish()
        return self._sequences.progress.passed_over


class ToRoutes:
    """Rows of a table, for all topics that have a route for them."""

    def __init__(
        self,
        log: LogAccess,
        table: str,
        op: Op,
        key_columns: tuple[str, ...],
        *,
        ts_ms: int | None,
    ) -> None:
        self._log = log
        self._table = table
        self._op = op
        self._key_columns = key_columns
        self._ts_ms = ts_ms

    def parse(self, line: bytes) -> dict[str, Any] | None:
        if not line.strip():
            return None
        try:
            row = json_of(line)
        except InvalidRecord as error:
            raise InvalidRows(str(error)) from None
        if not isinstance(row, dict) or not row:
            raise InvalidRows('A row is a JSON object like {"id": 1, "qty": 2}.')
        return row

    def groups(self, lines: list[Line]) -> Iterator[list[Line]]:
        """Rows of one shape: columns get their types from all rows that are sent together, and
        what becomes of a row must not depend on which others came in at the same moment.
        """
        for _, alike in groupby(lines, key=lambda line: _shape(line.content)):
            yield list(alike)

    def send(self, lines: list[Line]) -> Sequence[Sent]:
        rows = [line.content for line in lines]
        placed = self._log.publish_rows(
            self._table, self._op, rows, self._key_columns, ts_ms=self._ts_ms
        )
        return [(each, None) for each in placed]

    def finish(self) -> int:
        return 0


class ToRoutesOnce(ToRoutes):
    """The same, safe to send again.

    Each partition that rows come to counts its own records. Only within a partition does their
    order not depend on which rows are sent together.
    """

    def __init__(
        self,
        log: LogAccess,
        table: str,
        op: Op,
        key_columns: tuple[str, ...],
        *,
        ts_ms: int | None,
        writer: str,
        max_record_bytes: int,
    ) -> None:
        super().__init__(log, table, op, key_columns, ts_ms=ts_ms)
        self._writer = writer
        self._max_record_bytes = max_record_bytes
        self._plan = log.routing_plan()
        self._ends = ends_of(log)
        self._sequences: dict[tuple[int, int], Sequences] = {}
        if not self._plan.routes_of(table):
            raise UnknownRoute(f"No topic has a route for table '{table}'. Add one first.")

    def send(self, lines: list[Line]) -> Sequence[Sent]:
        before = {place: sequences.progress for place, sequences in self._sequences.items()}
        sent: list[Sent] = []
        try:
            for topic_id, partition, records in self._routed([line.content for line in lines]):
                sent += self._sequences_of(topic_id, partition).publish(topic_id, records)
        except BaseException:
            # Sent again, smaller or in another run, what is there already is only looked up.
            self._sequences = {place: self._sequences[place] for place in before}
            for place, progress in before.items():
                self._sequences[place].progress = progress
            raise
        return sent

    def _routed(self, rows: list[dict[str, Any]]) -> list[tuple[int, int, list[Record]]]:
        """The records by topic and partition, all of them fit to be published."""
        from duolog.log.publishing import check_record
        from duolog.log.routing.changes import Changes
        from duolog.log.routing.route import route

        ts_ms = SystemClock().now_ms() if self._ts_ms is None else self._ts_ms
        changes = Changes.from_rows(self._table, self._op, rows, self._key_columns, ts_ms)
        shares = [
            (share.topic_id, share.partition, _records(share.records, share.partition))
            for share in route(changes, self._plan).records
        ]
        for _, _, records in shares:
            for record in records:
                check_record(record, self._max_record_bytes)
        return shares

    def _sequences_of(self, topic_id: int, partition: int) -> Sequences:
        place = (topic_id, partition)
        if place not in self._sequences:
            name = f"{self._writer}/{topic_id}/{partition}"
            self._sequences[place] = Sequences(self._log, name, 1, self._ends)
        return self._sequences[place]

    def finish(self) -> int:
        for sequences in self._sequences.values():
            sequences.finish()
        return sum(sequences.progress.passed_over for sequences in self._sequences.values())


def _records(batch: Any, partition: int) -> list[Record]:
    from duolog.log.fetched import Fetched, FetchedBatch

    return [
        Record(
            read.value,
            read.key,
            read.headers,
            partition,
            read.ts_ms,
            read.op,
            read.table,
            read.payload,
        )
        for read in Fetched("", partition, 0, 0, 0, (FetchedBatch(0, batch),))
    ]


def _shape(value: Any) -> Any:
    """Equal for values that become one Arrow type, whether they are together or alone."""
    if isinstance(value, dict):
        return tuple((name, _shape(each)) for name, each in value.items())
    if isinstance(value, list):
        return [_shape(each) for each in value]
    return type(value)
