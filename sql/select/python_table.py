"""A table made in Python, read while a query wants more of it."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_LOOK_AGAIN_SECONDS = 0.01


class PythonTable(pa.dataset.Dataset):  # type: ignore[misc]
    """What DataFusion takes for a table made in Python: it asks for columns, then for batches.

    `scans` counts how often a plan reads it. DataFusion turns errors into text, so the first one is
    kept in `failure`. It reads on threads of its own, and lets go of a query that is given up when
    it pleases; `stop` waits for that, since a program that ends while one of these threads is in
    Python is aborted.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self.scans = 0
        self.failure: Exception | None = None
        self._state = threading.Condition()
        self._readers = 0
        self._stopped = False

    def read(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """All rows, with these columns. Ends early once `_stopped` is set."""
        raise NotImplementedError

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def scanner(self, columns: Sequence[str] | None = None, **_: Any) -> _Scanner:
        return _Scanner(self, columns)

    def get_fragments(self, _filter: Any = None) -> list[_Fragment]:
        self.scans += 1
        return [_Fragment(self)]

    def batches(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """What `read` gives, with a note of who reads and what failed."""
        with self._state:
            self._readers += 1
        try:
            yield from self.read(names)
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

    def projected(self, names: Sequence[str] | None) -> pa.Schema:
        """The schema of some columns."""
        chosen = self._schema.names if names is None else names
        return pa.schema([self._schema.field(name) for name in chosen])


class _Fragment:
    """The whole table: one reader, so that rows keep their order."""

    def __init__(self, table: PythonTable) -> None:
        self._table = table

    def scanner(self, _schema: pa.Schema, columns: Any = None, **_: Any) -> _Scanner:
        return _Scanner(self._table, columns)


class _Scanner:
    def __init__(self, table: PythonTable, columns: Sequence[str] | None) -> None:
        self._table = table
        self.projected_schema = table.projected(columns)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        return self._table.batches(self.projected_schema.names)


def without_columns(rows: int) -> pa.RecordBatch:
    """As for count(*): a batch without columns still has its rows."""
    return pa.RecordBatch.from_arrays([pa.nulls(rows)], ["row"]).select([])
