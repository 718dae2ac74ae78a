"""Which changes are taken, and what is said of the others."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from duolog.errors import InvalidRows
from duolog.log.model import Op
from duolog.log.routing.changes import Changes

ROWS = pa.RecordBatch.from_pydict({"id": [1, 2], "qty": [5, None]})
GOOD: dict[str, Any] = {
    "op": pa.array([Op.INSERT, Op.UPDATE], pa.int8()),
    "after": ROWS,
    "before": ROWS,
    "before_known": pa.array([False, True]),
    "ts": pa.array([1, 2]),
}


def changes(table: str = "shop.orders", key: tuple[str, ...] = ("id",), **other: Any) -> Changes:
    return Changes.of(table, key, **(GOOD | other))


def rows(**columns: list[Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"key": ("nr",)}, "Key column 'nr' .* is not among its columns \\(id, qty\\)"),
        ({"key": ("id", "id")}, "names a column twice"),
        ({"op": pa.array([1, 2])}, "'op' .* is int64. Make it int8"),
        ({"op": [1, 2]}, "'op' .* is list. Make it int8"),
        ({"op": pa.array([1, None], pa.int8())}, "'op' .* is null in row 1"),
        ({"op": pa.array([1, 0], pa.int8())}, "Row 1 .* has operation 0"),
        ({"op": pa.array([5, 1], pa.int8())}, "Row 0 .* has operation 5"),
        ({"op": pa.array([1], pa.int8())}, "have 1 operations, but 2 rows in 'after'"),
        ({"ts": pa.array([1, 2], pa.timestamp("ms"))}, "'ts' .* Make it int64"),
        ({"ts": pa.array([1])}, "1 rows in 'ts'"),
        ({"ts": pa.array([1, None], pa.int64())}, "'ts' .* is null in row 1"),
        ({"before_known": pa.array([1, 0])}, "'before_known' .* Make it bool"),
        ({"before_known": pa.array([True])}, "1 rows in 'before_known'"),
        ({"after": pa.table({"id": [1, 2]})}, "'after' .* is a Table"),
        ({"before": rows(id=[1, 2])}, "other columns: id and id, qty"),
        ({"before": rows(id=[1, 2], qty=["a", "b"])}, "'qty' .* is string in the old rows"),
        ({"before": rows(id=[1], qty=[1])}, "1 rows in 'before'"),
        ({"after": rows(id=[1, None], qty=[5, 6])}, "'id' .* is null in row 1 \\(1 such rows\\)"),
        ({"before": ROWS.slice(0, 0)}, "0 rows in 'before'"),
    ],
)
def test_changes_that_do_not_fit_are_refused_by_name(other: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidRows, match=said):
        changes(**other)


def test_a_column_called_like_the_payloads_table_is_refused() -> None:
    with pytest.raises(InvalidRows, match="has a column '_table'"):
        Changes.from_rows("shop.orders", Op.INSERT, [{"id": 1, "_table": "x"}], ["id"], 1)


def test_two_columns_of_one_name_are_refused() -> None:
    twice = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["id", "id"])
    with pytest.raises(InvalidRows, match="more than one column 'id'"):
        Changes.from_rows("shop.orders", Op.INSERT, twice, ["id"], 1)


def test_a_key_is_needed_only_in_the_images_that_carry_it() -> None:
    no_key = pa.RecordBatch.from_pydict({"id": pa.nulls(2, pa.int64()), "qty": [1, 2]})
    deletes = pa.array([Op.DELETE] * 2, pa.int8())
    inserts = pa.array([Op.INSERT] * 2, pa.int8())
    known, unknown = pa.array([True, True]), pa.array([False, False])
    assert len(changes(op=deletes, after=no_key, before=ROWS, before_known=known)) == 2
    assert len(changes(op=deletes, after=ROWS, before=no_key, before_known=unknown)) == 2
    assert len(changes(op=inserts, after=ROWS, before=no_key, before_known=known)) == 2
    for images in (
        {"op": deletes, "after": ROWS, "before": no_key, "before_known": known},
        {"op": deletes, "after": no_key, "before": ROWS, "before_known": unknown},
        {"op": inserts, "after": no_key, "before": ROWS, "before_known": known},
    ):
        with pytest.raises(InvalidRows, match=r"Key column 'id' .* is null in row 0"):
            changes(**images)


def test_an_old_row_is_known_only_for_updates_and_deletes() -> None:
    ops = pa.array([Op.INSERT, Op.UPDATE, Op.DELETE, Op.READ, Op.UPDATE], pa.int8())
    five = rows(id=[1, 2, 3, 4, 5])
    times = pa.array([1] * 5)
    known = pa.array([True, True, True, True, False])
    told = Changes.of("t", ["id"], op=ops, after=five, before=five, before_known=known, ts=times)
    assert told.known().tolist() == [False, True, True, False, False]
    untold = Changes.of("t", ["id"], op=ops, after=five, ts=times)
    assert untold.known().tolist() == [False] * 5


def test_rows_that_take_too_much_memory_at_once_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("duolog.log.routing.changes.MAX_IMAGE_BYTES", 10)
    with pytest.raises(InvalidRows, match="fewer rows at a time"):
        changes()


def test_dictionaries_become_columns_by_all_their_names() -> None:
    made = Changes.from_rows("t", Op.READ, [{"id": 1}, {"id": 2, "note": "x"}], ["id"], 7)
    assert made.after.to_pydict() == {"id": [1, 2], "note": [None, "x"]}
    assert made.op.to_pylist() == [4, 4]
    assert made.ts.to_pylist() == [7, 7]
    assert made.before is None


@pytest.mark.parametrize("values", [[1, "a"], [2**70, 1], [{"a": 1}, 1]], ids=str)
def test_values_of_no_common_type_are_refused_by_column(values: list[Any]) -> None:
    given = [{"id": 1, "x": values[0]}, {"id": 2, "x": values[1]}]
    with pytest.raises(InvalidRows, match=r"Column 'x' .* cannot be made one type"):
        Changes.from_rows("t", Op.INSERT, given, ["id"], 1)


def test_rows_to_delete_are_the_old_rows() -> None:
    made = Changes.from_rows("t", Op.DELETE, [{"id": 1, "note": "x"}], ["id"], 1)
    assert made.before is not None
    assert made.before.to_pylist() == [{"id": 1, "note": "x"}]
    assert made.known().tolist() == [True]


def test_tables_of_many_or_no_chunks_are_taken() -> None:
    chunked = pa.Table.from_batches([ROWS, ROWS])
    made = Changes.from_rows("t", Op.INSERT, chunked, ["id"], 1)
    assert made.after.column("id").to_pylist() == [1, 2, 1, 2]
    empty = Changes.from_rows("t", Op.INSERT, chunked.schema.empty_table(), ["id"], 1)
    assert len(empty) == 0


def test_views_become_plain_columns() -> None:
    columns = {"id": pa.array(["a"], pa.string_view()), "x": pa.array([b"b"], pa.binary_view())}
    made = Changes.from_rows("t", Op.DELETE, pa.RecordBatch.from_pydict(columns), ["id"], 1)
    assert made.schema.types == [pa.string(), pa.binary()]
    assert made.before is not None
    assert made.before.to_pylist() == [{"id": "a", "x": b"b"}]


def test_no_dictionaries_at_all_have_no_key_column() -> None:
    with pytest.raises(InvalidRows, match="Key column 'id'"):
        Changes.from_rows("t", Op.INSERT, [], ["id"], 1)
