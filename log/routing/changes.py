"""One table's change rows, as every feed hands them to the routes: whole columns, checked once.

| op           | `after`                                        | `before`                  |
|--------------|------------------------------------------------|---------------------------|
| insert, read | the row                                        | without meaning           |
| update       | the new row                                    | the old row, where known  |
| delete       | without meaning, but for the key of a row      | the old row, where known  |
|              | whose old image is not known                   |                           |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from duolog.errors import InvalidRows
from duolog.log.model import Op
from duolog.log.routing.given_rows import RowsBeforeGiven, RowsGiven, given_rows
from duolog.log.routing.kinds import without_view

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

TABLE_FIELD = "_table"
"""What every payload calls its table; no column may have this name."""

MAX_IMAGE_BYTES = 1 << 30
"""Per image: columns of text have 32-bit offsets, and rearranging rows may double them."""


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """Rows of one table with what happened to them. Made by `of` or `from_rows`, which check."""

    table: str
    key_columns: tuple[str, ...]
    op: pa.Int8Array  # model.Op
    after: pa.RecordBatch
    before: pa.RecordBatch | None  # none: no old row is known
    before_known: pa.BooleanArray | None  # none: every row of `before` is known
    ts: pa.Int64Array  # milliseconds since 1970

    def __len__(self) -> int:
        return len(self.op)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the table's rows."""
        return self.after.schema

    def slice(self, offset: int, length: int) -> Changes:
        """Some of them, one behind the other."""
        before, known = self.before, self.before_known
        return Changes(
            self.table,
            self.key_columns,
            self.op.slice(offset, length),
            self.after.slice(offset, length),
            None if before is None else before.slice(offset, length),
            None if known is None else known.slice(offset, length),
            self.ts.slice(offset, length),
        )

    def known(self) -> npt.NDArray[np.bool_]:
        """Where an old row is there and means something: updates and deletes."""
        if self.before is None:
            return np.zeros(len(self), np.bool_)
        op = self.op.to_numpy()
        known: npt.NDArray[np.bool_] = (op == Op.UPDATE) | (op == Op.DELETE)
        if self.before_known is not None:
            known &= self.before_known.to_numpy(zero_copy_only=False)
        return known

    @classmethod
    def of(
        cls,
        table: str,
        key_columns: Iterable[str],
        *,
        op: pa.Int8Array,
        after: pa.RecordBatch,
        ts: pa.Int64Array,
        before: pa.RecordBatch | None = None,
        before_known: pa.BooleanArray | None = None,
    ) -> Changes:
        """Changes whose columns fit together; raises InvalidRows where they do not."""
        after, before = _without_views(after), _without_views(before)
        changes = cls(table, tuple(key_columns), op, after, before, before_known, ts)
        _check_types(changes)
        check_columns(table, after.schema, changes.key_columns)
        _check_lengths(changes)
        _check_ops(changes)
        _check_keys(changes)
        return changes

    @classmethod
    def from_rows(
        cls,
        table: str,
        op: Op,
        rows: RowsGiven,
        key_columns: Iterable[str],
        ts_ms: int,
        before: RowsBeforeGiven | None = None,
    ) -> Changes:
        """Rows that all had the same done to them. For deletes, they are the old rows.

        `before` has the rows as they were before, and None where that is not known.
        """
        key_columns = tuple(key_columns)
        given = given_rows(table, op, rows, before, key_columns)
        batch = given.after
        return cls.of(
            table,
            key_columns,
            op=pa.array(np.full(len(batch), int(op), np.int8)),
            after=batch,
            before=batch if op is Op.DELETE and given.before is None else given.before,
            before_known=given.before_known,
            ts=pa.array(np.full(len(batch), ts_ms, np.int64)),
        )


def check_columns(table: str, schema: pa.Schema, key_columns: tuple[str, ...]) -> None:
    """Refuse columns that no payload could carry, and keys that are not there."""
    names = schema.names
    if TABLE_FIELD in names:
        raise InvalidRows(
            f"Table '{table}' has a column '{TABLE_FIELD}', which payloads use for the table's "
            "name. Rename the column before the rows are routed."
        )
    for name in names:
        if names.count(name) > 1:
            raise InvalidRows(f"Table '{table}' has more than one column '{name}'. Rename one.")
    for name in key_columns:
        if name not in names:
            raise InvalidRows(
                f"Key column '{name}' of table '{table}' is not among its columns "
                f"({', '.join(names)}). Select it, or name other key columns."
            )
    if len(set(key_columns)) < len(key_columns):
        raise InvalidRows(
            f"The key of table '{table}' names a column twice: {', '.join(key_columns)}."
        )


def _check_types(changes: Changes) -> None:
    table = changes.table
    wanted = [("op", changes.op, pa.int8()), ("ts", changes.ts, pa.int64())]
    if changes.before_known is not None:
        wanted.append(("before_known", changes.before_known, pa.bool_()))
    for name, array, kind in wanted:
        if not isinstance(array, pa.Array) or array.type != kind:
            found = getattr(array, "type", type(array).__name__)
            raise InvalidRows(
                f"'{name}' of the changes of table '{table}' is {found}. Make it {kind}."
            )
        if array.null_count:
            raise InvalidRows(
                f"'{name}' of the changes of table '{table}' is null in row {_first_null(array)}. "
                "Each change needs it."
            )
    for name, image in (("after", changes.after), ("before", changes.before)):
        if image is not None and not isinstance(image, pa.RecordBatch):
            raise InvalidRows(
                f"'{name}' of the changes of table '{table}' is a {type(image).__name__}. "
                "Make it a pyarrow RecordBatch."
            )
    if changes.before is None:
        return
    if changes.before.schema.names != changes.after.schema.names:
        raise InvalidRows(
            f"The old and the new rows of table '{table}' have other columns: "
            f"{', '.join(changes.before.schema.names)} and {', '.join(changes.after.schema.names)}."
            " Give both images the same ones, in the same order."
        )
    for old, new in zip(changes.before.schema, changes.after.schema, strict=True):
        if old.type != new.type:
            raise InvalidRows(
                f"Column '{new.name}' of table '{table}' is {old.type} in the old rows and "
                f"{new.type} in the new. Cast one of them."
            )


def _check_lengths(changes: Changes) -> None:
    rows = len(changes.op)
    parts = {
        "after": changes.after,
        "before": changes.before,
        "before_known": changes.before_known,
        "ts": changes.ts,
    }
    for name, part in parts.items():
        if part is not None and len(part) != rows:
            raise InvalidRows(
                f"The changes of table '{changes.table}' have {rows} operations, but "
                f"{len(part)} rows in '{name}'. Make them equally long."
            )
    for image in (changes.after, changes.before):
        if image is not None and image.nbytes > MAX_IMAGE_BYTES:
            raise InvalidRows(
                f"{rows} rows of table '{changes.table}' take {image.nbytes} bytes, more than "
                f"the {MAX_IMAGE_BYTES} that are routed at once. Hand over fewer rows at a time."
            )


def _check_ops(changes: Changes) -> None:
    op = changes.op.to_numpy()
    wrong = np.flatnonzero((op < Op.INSERT) | (op > Op.READ))
    if wrong.size:
        row = int(wrong[0])
        raise InvalidRows(
            f"Row {row} of the changes of table '{changes.table}' has operation {op[row]}. "
            "Use 1 for insert, 2 for update, 3 for delete, 4 for read."
        )


def _check_keys(changes: Changes) -> None:
    """A key must be there in each image that carries it."""
    known = changes.known()
    in_after = ~(known & (changes.op.to_numpy() == Op.DELETE))
    for image, carries in ((changes.after, in_after), (changes.before, known)):
        if image is None:
            continue
        for name in changes.key_columns:
            column = image.column(name)
            if not column.null_count:
                continue
            missing = np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False) & carries)
            if missing.size:
                raise InvalidRows(
                    f"Key column '{name}' of table '{changes.table}' is null in row "
                    f"{int(missing[0])} ({missing.size} such rows). Filter these rows out, or "
                    "name key columns that are never null."
                )


def _without_views(image: pa.RecordBatch | None) -> pa.RecordBatch | None:
    if not isinstance(image, pa.RecordBatch):  # to be refused
        return image
    kinds = [without_view(kind) for kind in image.schema.types]
    if kinds == image.schema.types:
        return image
    columns = [column.cast(kind) for column, kind in zip(image.columns, kinds, strict=True)]
    return pa.RecordBatch.from_arrays(columns, names=image.schema.names)


def _first_null(array: pa.Array) -> int:
    return int(np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False))[0])
