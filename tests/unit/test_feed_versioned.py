"""Single rules of Delta's and Iceberg's feeds, and rows that break them."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from duolog.connector.feeds import Feed, feed_for
from duolog.connector.feeds.left_over import BUCKETS, LeftOver, bucket_of
from duolog.connector.feeds.pairing import codes_of, pair
from duolog.errors import DamagedPart, InvalidRows
from tests.unit.feed_rows import run

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("qty", pa.int32()),
        ("_change_type", pa.string()),
        ("_commit_version", pa.int64()),
        ("_commit_timestamp", pa.timestamp("us", "UTC")),
    ]
)
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


def rows_of(*rows: tuple[int | None, int, str | None, int | None]) -> pa.RecordBatch:
    columns = [list(column) for column in zip(*rows, strict=True)]
    return pa.RecordBatch.from_arrays(
        [
            pa.array(column, kind)
            for column, kind in zip([*columns, [NOON] * len(rows)], SCHEMA.types, strict=True)
        ],
        schema=SCHEMA,
    )


def delta(**more: Any) -> Feed:
    return feed_for(SCHEMA, table="t", key_columns=["id"], **more)


def told(batches: list[list[pa.RecordBatch]]) -> list[tuple[str, Any, Any, Any]]:
    """Op, key, old and new quantity of each event."""
    came = run(delta(), batches)
    return [
        (
            event.op,
            (event.new or event.old or {})["id"],
            event.old and event.old["qty"],
            event.new and event.new["qty"],
        )
        for event in came.events
    ]


def test_two_images_in_two_tasks_are_one_event() -> None:
    old = rows_of((1, 5, "update_preimage", 3))
    new = rows_of((1, 6, "update_postimage", 3))
    for tasks in ([[old], [new]], [[new], [old]], [[old, new]], [[new, old]]):
        assert told(tasks) == [("update", 1, 5, 6)]


def test_an_update_of_the_key_is_a_delete_and_an_insert() -> None:
    moved = rows_of((1, 5, "update_preimage", 3), (2, 5, "update_postimage", 3))
    for tasks in ([[moved]], [[moved.slice(0, 1)], [moved.slice(1)]]):
        assert told(tasks) == [("delete", 1, 5, None), ("insert", 2, None, 5)]


def test_keys_that_trade_places_are_two_updates() -> None:
    traded = rows_of(
        (1, 5, "update_preimage", 3),
        (2, 5, "update_postimage", 3),
        (2, 7, "update_preimage", 3),
        (1, 7, "update_postimage", 3),
    )
    assert sorted(told([[traded]])) == [("update", 1, 5, 7), ("update", 2, 7, 5)]


def test_an_overwrite_deletes_before_it_inserts() -> None:
    overwritten = rows_of((1, 6, "insert", 3), (1, 5, "delete", 3))
    for tasks in ([[overwritten]], [[overwritten.slice(0, 1)], [overwritten.slice(1)]]):
        assert told(tasks) == [("delete", 1, 5, None), ("insert", 1, None, 6)]


def test_versions_come_in_order_although_tasks_and_rows_do_not() -> None:
    later = rows_of((1, 9, "delete", 12), (1, 9, "insert", 10))
    earlier = rows_of((1, 4, "delete", 9), (1, 4, "insert", 2))
    assert [(op, new or old) for op, _, old, new in told([[later], [earlier]])] == [
        ("insert", 4),
        ("delete", 4),
        ("insert", 9),
        ("delete", 9),
    ]


def test_a_row_that_leaves_what_is_looked_at_is_deleted() -> None:
    assert told([[rows_of((1, 5, "update_preimage", 3))]]) == [("delete", 1, 5, None)]


@pytest.mark.parametrize("word", ["insert", "INSERT", "Insert"])
def test_words_are_read_in_any_case(word: str) -> None:
    assert told([[rows_of((1, 5, word, 3))]]) == [("insert", 1, None, 5)]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([(1, 5, "upsert", 3)], "says 'upsert'; it can say insert, delete"),
        ([(1, 5, None, 3)], "Feed column '_change_type' of table 't' is null in 1 rows"),
        ([(1, 5, "insert", None)], "Feed column '_commit_version'"),
        ([(1, 5, "insert", 3), (None, 6, "delete", 3)], "Key column 'id' of table 't' is null"),
        ([(None, 6, "update_postimage", 3)], "qty=6"),
        (
            [
                (1, 5, "update_preimage", 3),
                (2, 6, "insert", 3),
                (1, 6, "update_preimage", 3),
                (1, 7, "update_postimage", 3),
                (2, 6, "insert", 4),
                (1, 8, "update_postimage", 3),
                (1, 5, "update_preimage", 3),
                (2, 6, "insert", 5),
                (1, 8, "update_postimage", 3),
            ],
            "does not tell its rows apart",
        ),
    ],
)
def test_rows_that_break_a_rule_are_refused(rows: list[Any], said: str) -> None:
    with pytest.raises(InvalidRows, match=r"[tT]able 't'") as raised:
        told([[rows_of(*rows)]])
    assert said in str(raised.value)


def test_a_batch_in_another_time_zone_is_the_same() -> None:
    batch = rows_of((1, 5, "insert", 3))
    time = batch.column("_commit_timestamp").cast(pa.timestamp("us", "Europe/Vienna"))
    other = batch.set_column(4, "_commit_timestamp", time)
    (event,) = run(delta(), [[other]]).events
    assert event.ts_ms == int(NOON.timestamp() * 1000)


def test_a_column_of_another_type_or_none_is_refused() -> None:
    batch = rows_of((1, 5, "insert", 3))
    with pytest.raises(InvalidRows, match="'qty' of table 't' is string in a batch"):
        run(delta(), [[batch.set_column(1, "qty", pa.array(["5"]))]])
    with pytest.raises(InvalidRows, match="have no column 'qty'"):
        run(delta(), [[batch.drop_columns(["qty"])]])


def test_changes_without_a_time_take_that_of_the_plan() -> None:
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("_change_type", pa.string()),
            ("_change_ordinal", pa.int32()),
            ("_commit_snapshot_id", pa.int64()),
        ]
    )
    feed = feed_for(schema, table="t", key_columns=["id"]).at(5)
    batch = pa.RecordBatch.from_arrays(
        [pa.array([1, 2]), pa.array(["INSERT", "INSERT"]), pa.array([0, 1], pa.int32()), [7, 8]],
        schema=schema,
    )
    assert [event.ts_ms for event in run(feed, [[batch]]).events] == [5, 5]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([3, 1, 3, 2], pa.int32()),
        pa.array(["b", "a", "b", ""]),
        pa.array([b"b", b"a", b"b", b"\xff"]),
        pa.array([Decimal("1.50"), Decimal(2), Decimal("1.50"), Decimal(3)], pa.decimal128(9, 2)),
        pa.array(
            [NOON, NOON.replace(hour=1), NOON, NOON.replace(hour=2)], pa.timestamp("us", "UTC")
        ),
        pa.array([1.5, 2.5, 1.5, -0.25]),
        pa.array([3, 1, 3, 2], pa.int32()).cast(pa.date32()),
    ],
    ids=lambda values: str(values.type),
)
def test_keys_of_every_plain_type_are_told_apart(values: pa.Array) -> None:
    codes = codes_of([values, pa.array([1, 1, 1, 1])])
    assert codes[0] == codes[2]
    assert len(set(codes.tolist())) == 3
    buckets = bucket_of(pa.RecordBatch.from_arrays([values], names=["k"]), ("k",))
    assert buckets[0] == buckets[2]
    assert 0 <= buckets.min() <= buckets.max() < BUCKETS
    pairs = pair([values], *_numbers([0], [2]))
    assert (pairs.old.tolist(), pairs.new.tolist()) == ([0], [2])


def test_a_damaged_message_is_refused() -> None:
    reader = delta().reader()
    assert list(reader.changes_of(rows_of((1, 5, "update_preimage", 3)))) == []
    assert list(reader.finish()) == []
    message = reader.left_over()
    assert message is not None
    for broken in (b"", b"{}", message[:-5], message.replace(b"[[-1,0,", b"[[-1,0,9,")):
        with pytest.raises(DamagedPart):
            list(delta().settle([broken]))
    fields = LeftOver.from_message(message)
    assert fields.body is not None
    damaged = LeftOver(
        fields.with_old, fields.chunks, fields.length, fields.crc32, fields.body[:-1] + b"x"
    )
    with pytest.raises(DamagedPart, match="not what their task wrote"):
        list(delta().settle([damaged.message()]))


def _numbers(*rows: list[int]) -> list[Any]:
    return [pa.array(each, pa.int64()).to_numpy() for each in rows]
