"""What a statement answers: columns, and rows that come as they are made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


class SqlResult:
    """An answer. It can be read once, and has to be read before the log is closed."""

    def __init__(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
        self.schema = schema
        self._batches = iter(batches)

    @classmethod
    def of(cls, table: pa.Table) -> SqlResult:
        """All rows of a table."""
        return cls(table.schema, table.to_batches())

    @classmethod
    def of_rows(cls, schema: pa.Schema, rows: Sequence[Mapping[str, Any]]) -> SqlResult:
        """These rows."""
        return cls.of(pa.Table.from_pylist(list(rows), schema=schema))

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.schema.names)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows that were not read yet, as Arrow, some at a time."""
        yield from self._batches

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The rows that were not read yet, one by one."""
        for batch in self._batches:
            columns = [column.to_pylist() for column in batch.columns]
            yield from zip(*columns, strict=True) if columns else ((),) * batch.num_rows

    def table(self) -> pa.Table:
        """All rows that were not read yet."""
        return pa.Table.from_batches(list(self._batches), schema=self.schema)

    def close(self) -> None:
        """Stop a query whose rows nobody wants any more."""
        close = getattr(self._batches, "close", None)
        if close is not None:
            close()
