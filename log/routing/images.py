"""Changes as routes read them: for each the row it is about and, where known, the row before."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from duolog.log.model import Op
from duolog.log.routing.difference import differs

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from duolog.log.routing.changes import Changes


@dataclass(frozen=True, slots=True, eq=False)
class Images:
    """Changes of one table with their images settled.

    `row` is the new row; for deletes the old row, and where that is not known, its key with all
    other columns null. `before` has meaning where `known`.
    """

    table: str
    key_columns: tuple[str, ...]
    op: npt.NDArray[np.int8]
    ts: pa.Int64Array
    row: pa.RecordBatch
    before: pa.RecordBatch | None
    known: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.op)

    @property
    def is_delete(self) -> npt.NDArray[np.bool_]:
        return np.asarray(self.op == Op.DELETE)

    @property
    def only_key(self) -> npt.NDArray[np.bool_]:
        """Where nothing but the key of `row` is known."""
        return self.is_delete & ~self.known

    def take(self, rows: npt.NDArray[np.int64]) -> Images:
        """These rows, given in rising order."""
        if len(rows) == len(self):
            return self
        return Images(
            table=self.table,
            key_columns=self.key_columns,
            op=self.op[rows],
            ts=self.ts.take(pa.array(rows)),
            row=self.row.take(pa.array(rows)),
            before=None if self.before is None else self.before.take(pa.array(rows)),
            known=self.known[rows],
        )

    def only(self, columns: Sequence[str]) -> Images:
        """The same changes with some of their columns, those of the key among them."""
        before = self.before
        return replace(
            self,
            row=self.row.select(columns),
            before=None if before is None else before.select(columns),
        )

    def before_or_null(self) -> pa.RecordBatch | None:
        """The old rows, all columns null where they are not known."""
        if self.before is None or self.known.all():
            return self.before
        return self.before.take(pa.array(np.arange(len(self)), mask=~self.known))

    def old(self) -> pa.RecordBatch:
        """The old rows of updates and deletes, with the key at least of every delete."""
        if self.before is None:
            return self.row
        return _mixed(self.before, self.row, self.only_key)


def images_of(changes: Changes) -> Images:
    """The images of all changes; an update of the key has become a delete and an insert."""
    op, known = changes.op.to_numpy(), changes.known()
    after, before, ts = changes.after, changes.before, changes.ts
    moved = _key_moved(changes, op, known)
    if moved.any():
        # Twice in a row: first the delete of the old key, then the insert of the new one.
        source = np.repeat(np.arange(len(op)), 1 + moved)
        again = np.concatenate(([False], source[1:] == source[:-1]))
        op = np.where(moved[source], np.where(again, Op.INSERT, Op.DELETE), op[source])
        op = op.astype(np.int8)
        known = known[source] & ~again
        rows = pa.array(source)
        after, ts = after.take(rows), ts.take(rows)
        before = None if before is None else before.take(rows)
    return Images(
        table=changes.table,
        key_columns=changes.key_columns,
        op=op,
        ts=ts,
        row=_rows(changes.key_columns, op, known, after, before),
        before=before,
        known=known,
    )


def _key_moved(
    changes: Changes, op: npt.NDArray[np.int8], known: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Updates whose old key is known and is another."""
    moved = np.zeros(len(op), np.bool_)
    candidates = known & (op == Op.UPDATE)
    if changes.before is not None and candidates.any():
        for name in changes.key_columns:
            moved |= differs(changes.before.column(name), changes.after.column(name), name)
    moved &= candidates
    return moved


def _rows(
    key_columns: tuple[str, ...],
    op: npt.NDArray[np.int8],
    known: npt.NDArray[np.bool_],
    after: pa.RecordBatch,
    before: pa.RecordBatch | None,
) -> pa.RecordBatch:
    deletes = op == Op.DELETE
    rows = after if before is None else _mixed(after, before, deletes & known)
    only_key = deletes & ~known
    if not only_key.any():
        return rows
    kept = pa.array(np.arange(len(op)), mask=only_key)
    columns = [
        column if name in key_columns else column.take(kept)
        for name, column in zip(rows.schema.names, rows.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def _mixed(
    batch: pa.RecordBatch, other: pa.RecordBatch, from_other: npt.NDArray[np.bool_]
) -> pa.RecordBatch:
    if not from_other.any():
        return batch
    if from_other.all():
        return other
    # By concat and take, since if_else does not know every type.
    source = pa.array(np.arange(len(batch)) + len(batch) * from_other)
    columns = [
        pa.concat_arrays([mine, theirs]).take(source)
        for mine, theirs in zip(batch.columns, other.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)
