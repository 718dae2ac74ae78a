"""Rows of a table as people hand them over: dicts or Arrow, with or without the rows before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from duolog.errors import InvalidRows
from duolog.log.model import Op
from duolog.log.routing.alike import check_alike
from duolog.log.routing.difference import differs

RowsGiven: TypeAlias = pa.RecordBatch | pa.Table | Sequence[Mapping[str, Any]]
RowsBeforeGiven: TypeAlias = (
    pa.StructArray | pa.RecordBatch | pa.Table | Sequence[Mapping[str, Any] | None]
)
"""Null or None: the row before is not known."""


@dataclass(frozen=True, slots=True, eq=False)
class GivenRows:
    """Both images of rows that had the same done to them, in the same columns."""

    after: pa.RecordBatch
    before: pa.RecordBatch | None = None
    before_known: pa.BooleanArray | None = None  # none: every row of `before` is known

    def before_as_structs(self) -> pa.StructArray | None:
        """The rows before as one column, null where they are not known."""
        if self.before is None:
            return None
        unknown = None
        if self.before_known is not None:
            unknown = pa.array(~self.before_known.to_numpy(zero_copy_only=False))
        return pa.StructArray.from_arrays(
            self.before.columns, fields=list(self.before.schema), mask=unknown
        )


def given_rows(
    table: str, op: Op, rows: RowsGiven, before: RowsBeforeGiven | None, key_columns: Sequence[str]
) -> GivenRows:
    """The images of these rows. For deletes `rows` are the old rows, where `before` has none."""
    if before is None:
        return GivenRows(as_batch(table, rows, key_columns))
    if op not in (Op.UPDATE, Op.DELETE):
        raise InvalidRows(
            f"Rows of table '{table}' with the operation {op.word} have no row before them. Leave "
            "out `before`, or say update or delete."
        )
    if not (hasattr(before, "__len__") and hasattr(rows, "__len__")):
        raise InvalidRows(
            f"Rows for table '{table}' and the rows before them come as lists of dicts, or Arrow."
        )
    if len(before) != len(rows):
        raise InvalidRows(
            f"{len(rows)} rows of table '{table}' came with {len(before)} rows before them. Give "
            "one for each, and None where it is not known."
        )
    given = (
        _from_arrow(table, rows, before)
        if _is_arrow(rows, before)
        else _from_dicts(table, op, rows, before, key_columns)
    )
    return _delete_images(table, given, key_columns) if op is Op.DELETE else given


def _is_arrow(*given: object) -> bool:
    return any(isinstance(each, pa.RecordBatch | pa.Table | pa.StructArray) for each in given)


def _from_arrow(table: str, rows: Any, before: Any) -> GivenRows:
    after = as_batch(table, rows)
    if not _is_arrow(before):
        try:
            before = pa.array(before, pa.struct(list(after.schema)))
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            raise InvalidRows(
                f"The rows before those of table '{table}' do not fit their columns: {error}."
            ) from error
    known = None
    if isinstance(before, pa.StructArray):
        known = before.is_valid() if before.null_count else None
        before = pa.RecordBatch.from_arrays(before.flatten(), names=[f.name for f in before.type])
    batch = as_batch(table, before)
    if set(batch.schema.names) == set(after.schema.names):
        batch = batch.select(after.schema.names)
    return GivenRows(after, batch, known)


def _from_dicts(
    table: str, op: Op, rows: Any, before: Any, key_columns: Sequence[str]
) -> GivenRows:
    """Columns take their types from both images together."""
    known_before = [{} if each is None else each for each in before]
    both = as_batch(table, [*rows, *known_before], key_columns)
    known = [each is not None for each in before]
    if op is Op.UPDATE:
        for number, (new, old) in enumerate(zip(rows, before, strict=True)):
            lacks = [] if old is None else [name for name in new if name not in old]
            if lacks:
                raise InvalidRows(
                    f"The row before row {number} of table '{table}' lacks column '{lacks[0]}'. "
                    "Give the whole old row, with null where it held none, or None."
                )
            lacks = [] if old is None else [name for name in old if name not in new]
            if lacks:
                raise InvalidRows(
                    f"Row {number} of table '{table}' lacks column '{lacks[0]}', which its row "
                    "before has. Give the whole new row, with null where it holds none."
                )
    after, old_rows = both.slice(0, len(rows)), both.slice(len(rows))
    return GivenRows(after, old_rows, None if all(known) else pa.array(known, pa.bool_()))


def _delete_images(table: str, given: GivenRows, key_columns: Sequence[str]) -> GivenRows:
    """The old row of each delete: from `before` where that is known, else the row itself."""
    after, before = given.after, given.before
    if before is None or after.schema != before.schema:  # to be refused by name
        return given
    known = np.ones(len(after), np.bool_)
    if given.before_known is not None:
        known = given.before_known.to_numpy(zero_copy_only=False)
    for name in key_columns:
        if name not in after.schema.names:
            continue
        other = known & differs(before.column(name), after.column(name), name)
        if other.any():
            raise InvalidRows(
                f"Row {int(np.flatnonzero(other)[0])} of table '{table}' deletes another key "
                f"than its row before has: '{name}' differs. Give both images of the same row."
            )
    source = pa.array(np.where(known, np.arange(len(after)) + len(after), np.arange(len(after))))
    columns = [
        pa.concat_arrays([new, old]).take(source)
        for new, old in zip(after.columns, before.columns, strict=True)
    ]
    return GivenRows(pa.RecordBatch.from_arrays(columns, schema=after.schema))


def as_batch(table: str, rows: RowsGiven, key_columns: Sequence[str] = ()) -> pa.RecordBatch:
    if isinstance(rows, pa.RecordBatch):
        return _sound(table, rows)
    if isinstance(rows, pa.Table):
        columns = [_one_array(column) for column in rows.columns]
        return _sound(table, pa.RecordBatch.from_arrays(columns, schema=rows.schema))
    # pa.Table.from_pylist would take the columns of the first row alone.
    try:
        names = list(dict.fromkeys(name for row in rows for name in row))
        columns = [[row.get(name) for row in rows] for name in names]
    except (AttributeError, TypeError):
        raise InvalidRows(
            f"Rows for table '{table}' are dicts of columns, or Arrow; one of them is not."
        ) from None
    arrays = []
    for name, column in zip(names, columns, strict=True):
        _check_column_name(table, name)
        check_alike(table, name, column, is_key=name in key_columns)
        try:
            arrays.append(pa.array(column))
        except (pa.ArrowException, OverflowError, TypeError, UnicodeEncodeError) as error:
            raise InvalidRows(
                f"Column '{name}' of the rows for table '{table}' cannot be made one type: "
                f"{error}. Give all its values the same type."
            ) from error
    return pa.RecordBatch.from_arrays(arrays, names=names)


def _sound(table: str, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Arrow takes bytes for text unseen, and offsets that lead anywhere."""
    try:
        rows.validate(full=True)
    except pa.ArrowException as error:
        raise InvalidRows(f"The rows for table '{table}' are not valid Arrow: {error}.") from error
    return rows


def _check_column_name(table: str, name: object) -> None:
    if isinstance(name, str):
        with suppress(UnicodeEncodeError):
            name.encode()
            return
    raise InvalidRows(
        f"A column of the rows for table '{table}' is called {name!a:.80}. Name columns with text "
        "that is valid UTF-8."
    )


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    chunks = column.chunks
    if not chunks:
        return pa.array([], column.type)
    return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)
