"""Runs one SELECT: only reading, with bounded memory, and not for longer than it may."""

from __future__ import annotations

import asyncio
import traceback
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from duolog.errors import (
    DataFusionNotFound,
    DuologError,
    InvalidSql,
    QueryTimedOut,
    UnknownTopic,
)
from duolog.sql.result import SqlResult
from duolog.sql.select import complaints
from duolog.sql.select.names import SYSTEM_SCHEMA, TableName, topic_named
from duolog.sql.select.pushdown import spans_of
from duolog.sql.select.system_tables import SYSTEM_TABLES, LogSeen, SystemTable
from duolog.sql.select.taken import taken
from duolog.sql.select.topic_table import TopicTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from duolog.avro.reading import ValueReader
    from duolog.clock import Clock
    from duolog.log.access import LogAccess
    from duolog.sql.select.limits import QueryLimits
    from duolog.sql.select.python_table import PythonTable
    from duolog.sql.select.session import Session
    from duolog.sql.statements import Select

_LET_GO_SECONDS = 10.0


def select(
    log: LogAccess,
    query: Select,
    text: str,
    *,
    reader: ValueReader | None,
    clock: Clock,
    limits: QueryLimits,
) -> SqlResult:
    """Plan a query; its rows are made as they are read. `text` is all that was sent."""
    return _Query(log, query, text, reader, clock, limits).result()


class _Query:
    def __init__(
        self,
        log: LogAccess,
        query: Select,
        text: str,
        reader: ValueReader | None,
        clock: Clock,
        limits: QueryLimits,
    ) -> None:
        self._log = log
        self._query = query
        self._taken = taken(query.text)
        self._text = text
        self._reader = reader
        self._clock = clock
        self._limits = limits
        self._deadline = clock.monotonic() + (limits.timeout_seconds or float("inf"))
        self._tables: dict[str, TopicTable] = {}  # by their names in plans
        self._system_tables: dict[str, SystemTable] = {}  # too
        self._seen = LogSeen(log, clock)

    def result(self) -> SqlResult:
        session = _new_session(self._limits.memory_bytes)
        unknown = self._add_tables(session)
        with _translated(lambda error: self._refused(error, unknown)):
            frame = session.plan(self._taken.text)
            self._push_down(frame)
        self._check()
        schema = _with_own_names(self._schema_of(frame))
        return SqlResult(schema, self._batches(session, frame, schema))

    def _add_tables(self, session: Session) -> list[UnknownTopic]:
        """Make the tables that the query names; those that are not there come back."""
        unknown: list[UnknownTopic] = []
        with _translated(lambda error: self._refused(error, unknown)):
            names = session.names_in(self._taken.text)
        for name in names:
            if name.is_system:
                key = f"system_{name.table}"
                self._system_tables[key] = SystemTable(name.table, self._seen, self._check)
                session.add_table(name, key, self._system_tables[key])
                continue
            topic = topic_named(self._log, str(name))
            if topic is None:
                unknown.append(self._unknown(name))
                continue
            key = f"topic_{len(self._tables)}"
            self._tables[key] = TopicTable(self._log, topic, self._reader, self._check)
            session.add_table(name, key, self._tables[key])
        return unknown

    def _unknown(self, name: TableName) -> UnknownTopic:
        if name.schema == SYSTEM_SCHEMA:
            known = ", ".join(f"system.{each}" for each in SYSTEM_TABLES)
            return UnknownTopic(f"There is no table {name}. There are: {known}.")
        try:
            self._log.topic(str(name))
        except UnknownTopic as error:
            return error
        return UnknownTopic(f"There is no topic '{name}'.")

    def _refused(self, error: BaseException, unknown: list[UnknownTopic]) -> DuologError:
        if unknown and "not found" in str(error):
            return unknown[0]
        return complaints.refused(error, self._query, self._taken, self._text)

    def _schema_of(self, frame: Any) -> pa.Schema:
        try:
            return frame.schema()
        except pa.ArrowException as error:  # a NUL in a name; a type that only DataFusion has
            raise InvalidSql(
                f"The query answers columns that cannot be sent ({error}). Give them other names "
                "with AS, or cast them.",
                text=self._text,
                position=self._query.position,
            ) from error

    def _push_down(self, frame: Any) -> None:
        """Tell each table what the query needs of it."""
        frame.execution_plan()
        scans = {key: table.scans for key, table in self._tables.items()}
        for key, span in spans_of(frame.optimized_logical_plan(), scans).items():
            self._tables[key].span = span

    def _check(self) -> None:
        if self._clock.monotonic() >= self._deadline:
            raise self._timed_out()

    def _timed_out(self) -> QueryTimedOut:
        return QueryTimedOut(
            f"The query took longer than the {self._limits.timeout_seconds:g} s it may take. Ask "
            "for fewer offsets or for later times, or allow it more."
        )

    def _batches(self, session: Session, frame: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        try:
            with _translated(self._failed):
                yield from self._executed(frame, schema)
        finally:
            for table in self._all_tables():
                table.stop(_LET_GO_SECONDS, frame.schema)
            del session  # a plan does not keep what it was made with

    def _executed(self, frame: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        stream = frame.execute_stream()
        batches = stream if self._limits.timeout_seconds is None else self._in_time(stream)
        for batch in batches:
            yield _with_schema(batch.to_pyarrow(), schema)

    def _all_tables(self) -> Iterator[PythonTable]:
        yield from self._tables.values()
        yield from self._system_tables.values()

    def _failed(self, error: BaseException) -> BaseException:
        """What a table raised, if it was that; DataFusion only has its text."""
        raised = (table.failure for table in self._all_tables() if table.failure)
        return next(raised, None) or complaints.failed(error, self._limits.memory_bytes)

    def _in_time(self, stream: Any) -> Iterator[Any]:
        """Batches until the deadline. Only what is awaited can be given up half-way."""
        loop = asyncio.new_event_loop()
        try:
            while True:
                left = self._deadline - self._clock.monotonic()
                try:
                    yield loop.run_until_complete(asyncio.wait_for(anext(stream), left))
                except StopAsyncIteration:
                    return
                except TimeoutError:
                    raise self._timed_out() from None
        finally:
            loop.close()


def _new_session(memory_bytes: int) -> Session:
    try:
        from duolog.sql.select.session import Session
    except ModuleNotFoundError as error:
        raise DataFusionNotFound(
            f"SELECT needs {error.name}, which is not installed: pip install 'duolog[sql]'. All "
            "other statements work without it."
        ) from error
    return Session(memory_bytes)


@contextmanager
def _translated(tell: Callable[[BaseException], BaseException]) -> Iterator[None]:
    """Tell what DataFusion raises as an error of ours.

    It raises ValueError and plain Exception, and for a bug of its own a PanicException, which is
    no Exception.
    """
    try:
        yield
    except BaseException as error:
        traceback.clear_frames(error.__traceback__)  # they hold the stream, and it the tables
        theirs = type(error) is Exception or type(error).__name__ == "PanicException"
        if not theirs and not isinstance(error, ValueError):
            raise
        raise tell(error) from None


def _with_own_names(schema: pa.Schema) -> pa.Schema:
    """`SELECT a.x, b.x` gives two columns of one name: the second becomes x_2."""
    taken: set[str] = set()
    fields = []
    for field in schema:
        name, number = field.name, 1
        while name in taken or (number > 1 and name in schema.names):
            number += 1
            name = f"{field.name}_{number}"
        taken.add(name)
        fields.append(field.with_name(name))
    return pa.schema(fields)


def _with_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    if batch.schema == schema:
        return batch
    if not schema.names:
        return batch
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
