"""What `publish` makes of its lines: records for one topic, or rows that go by their routes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from duolog.cli.record_lines import json_of, record_of
from duolog.cli.sending import Line
from duolog.cli.sequences import Sent, Sequences, ends_of
from duolog.clock import SystemClock
from duolog.errors import InvalidRecord, InvalidRows
from duolog.log.model import Op, Record, Topic, Unrouted

if TYPE_CHECKING:
    from duolog.log import LogAccess


class ToTopic:
    """Records for one topic."""

    def __init__(
        self,
        log: LogAccess,
        topic: Topic,
        *,
        raw: bool,
        writer: str | None,
        first: int,
        in_order: bool = False,
    ) -> None:
        self._log = log
        self._topic = topic
        self._raw = raw
        self._sequences = None
        if writer is not None:
            self._sequences = Sequences(log, writer, first, ends_of(log), in_order=in_order)

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


class RowLine(NamedTuple):
    """A line's row, and the row before it where that is known."""

    row: dict[str, Any]
    before: dict[str, Any] | None = None


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
        with_before: bool = False,
        unrouted: Unrouted = Unrouted.FAIL,
    ) -> None:
        self._log = log
        self._table = table
        self._op = op
        self._key_columns = key_columns
        self._ts_ms = ts_ms
        self._with_before = with_before
        self._unrouted = unrouted

    def parse(self, line: bytes) -> RowLine | None:
        if not line.strip():
            return None
        try:
            row = json_of(line)
        except InvalidRecord as error:
            raise InvalidRows(str(error)) from None
        return _images(row) if self._with_before else RowLine(_row(row))

    def groups(self, lines: list[Line]) -> Iterator[list[Line]]:
        """Rows of one shape: columns get their types from all rows that are sent together, and
        what becomes of a row must not depend on which others came in at the same moment.
        """
        for _, alike in groupby(lines, key=lambda line: _shape(line.content)):
            yield list(alike)

    def send(self, lines: list[Line]) -> Sequence[Sent]:
        placed = self._log.publish_rows(
            self._table,
            self._op,
            [line.content.row for line in lines],
            self._key_columns,
            before=self._before(lines),
            unrouted=self._unrouted,
            ts_ms=self._ts_ms,
        )
        return [(each, None) for each in placed]

    def _before(self, lines: list[Line]) -> list[dict[str, Any] | None] | None:
        return [line.content.before for line in lines] if self._with_before else None

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
        with_before: bool,
        unrouted: Unrouted,
        writer: str,
        max_record_bytes: int,
    ) -> None:
        super().__init__(
            log, table, op, key_columns, ts_ms=ts_ms, with_before=with_before, unrouted=unrouted
        )
        self._writer = writer
        self._max_record_bytes = max_record_bytes
        self._plan = log.routing_plan()
        self._ends = ends_of(log)
        self._sequences: dict[tuple[int, int], Sequences] = {}

    def send(self, lines: list[Line]) -> Sequence[Sent]:
        before = {place: sequences.progress for place, sequences in self._sequences.items()}
        sent: list[Sent] = []
        try:
            for topic_id, partition, records in self._routed(lines):
                sent += self._sequences_of(topic_id, partition).publish(topic_id, records)
        except BaseException:
            # Sent again, smaller or in another run, what is there already is only looked up.
            self._sequences = {place: self._sequences[place] for place in before}
            for place, progress in before.items():
                self._sequences[place].progress = progress
            raise
        return sent

    def _routed(self, lines: list[Line]) -> list[tuple[int, int, list[Record]]]:
        """The records by topic and partition, all of them fit to be published."""
        from duolog.log.record_check import checked_record
        from duolog.log.routed import check_all_routed
        from duolog.log.routing.changes import Changes
        from duolog.log.routing.route import route

        ts_ms = SystemClock().now_ms() if self._ts_ms is None else self._ts_ms
        rows = [line.content.row for line in lines]
        changes = Changes.from_rows(
            self._table, self._op, rows, self._key_columns, ts_ms, self._before(lines)
        )
        routed = route(changes, self._plan)
        check_all_routed(self._plan, changes, routed, self._unrouted)
        shares = [
            (share.topic_id, share.partition, _records(share.records, share.partition))
            for share in routed.records
        ]
        for _, _, records in shares:
            for record in records:
                checked_record(record, self._max_record_bytes)
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


def _images(line: Any) -> RowLine:
    if not isinstance(line, dict) or line.keys() - {"before"} != {"after"}:
        raise InvalidRows(
            'With --before a line is {"before": …, "after": …}: the row as it was, or null where '
            "that is not known, and the row as it is; for a delete, its key."
        )
    before = line.get("before")
    return RowLine(_row(line["after"]), None if before is None else _row(before))


def _row(found: Any) -> dict[str, Any]:
    if not isinstance(found, dict) or not found:
        raise InvalidRows('A row is a JSON object like {"id": 1, "qty": 2}.')
    return found


def _shape(value: Any) -> Any:
    """Equal for values that become one Arrow type, whether they are together or alone."""
    if isinstance(value, RowLine):
        return _shape(value.row), _shape(value.before)
    if isinstance(value, dict):
        return tuple((name, _shape(each)) for name, each in value.items())
    if isinstance(value, list):
        return [_shape(each) for each in value]
    return type(value)
