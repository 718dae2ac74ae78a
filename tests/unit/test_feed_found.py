"""Which feed rows are, and what is wrong with those that are none."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

from duolog.connector.feeds import CHANGES, feed_for
from duolog.connector.feeds.feed import Feed
from duolog.errors import DuologError, InvalidRows, InvalidSetting
from duolog.log.model import Op
from tests.unit.feed_rows import run

ROW = [("id", pa.int64()), ("note", pa.string())]
DELTA = [
    ("_change_type", pa.string()),
    ("_commit_version", pa.int64()),
    ("_commit_timestamp", pa.timestamp("us", "UTC")),
]
ICEBERG = [
    ("_change_type", pa.string()),
    ("_change_ordinal", pa.int32()),
    ("_commit_snapshot_id", pa.int64()),
]
IMAGE = pa.struct(ROW)
DEBEZIUM = [("before", IMAGE), ("after", IMAGE), ("op", pa.string()), ("ts_ms", pa.int64())]
JSON = [("key", pa.binary()), ("value", pa.binary()), ("offset", pa.int64())]


def made(columns: list[tuple[str, Any]], changes: str | None = None, **more: Any) -> Feed:
    keys = more.pop("key_columns", ["id"])
    return feed_for(pa.schema(columns), table="t", key_columns=keys, changes=changes, **more)


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        (ROW, "append, since no columns of a change feed are there"),
        (ROW + DELTA, "delta, by its columns _change_type, _commit_version, _commit_timestamp"),
        (DELTA + ROW, "delta, by its columns _change_type, _commit_version, _commit_timestamp"),
        (
            ROW + ICEBERG,
            "iceberg, by its columns _change_type, _change_ordinal, _commit_snapshot_id",
        ),
        (DEBEZIUM, "debezium, by its columns before, after, op"),
        ([*DEBEZIUM, ("source", pa.struct([("lsn", pa.int64())]))], "debezium, by its columns"),
        ([*ROW, ("value", pa.string())], "append, since no columns of a change feed are there"),
        ([*ROW, ("op", pa.string())], "append, since no columns of a change feed are there"),
    ],
)
def test_a_feed_is_found_by_its_columns(columns: list[tuple[str, Any]], found: str) -> None:
    feed = made(columns)
    assert feed.found.startswith(found)
    assert pickle.loads(pickle.dumps(feed)) == feed


@pytest.mark.parametrize("word", ["delta", "Delta", " DELTA "])
def test_a_feed_is_said_in_any_case(word: str) -> None:
    feed = made(ROW + DELTA, word)
    assert feed.found == "delta, as `changes` says"
    assert feed.rows == pa.schema(ROW)


def test_append_takes_feed_columns_as_columns_of_the_row_when_said() -> None:
    assert made(ROW + DELTA, "append").rows == pa.schema(ROW + DELTA)


@pytest.mark.parametrize(
    ("columns", "changes", "more", "error", "said"),
    [
        (ROW, "cdc", {}, InvalidSetting, "append, read, delta, iceberg, debezium"),
        (ROW + DELTA[:1], None, {}, InvalidSetting, "_change_type, which does not settle"),
        (ROW + DELTA[:2], None, {}, InvalidSetting, "set changes=append"),
        (ROW + DELTA[1:], None, {}, InvalidSetting, "_commit_timestamp, _commit_version"),
        (ROW + DELTA + ICEBERG[1:], None, {}, InvalidSetting, "does not settle"),
        (ROW + DELTA[:2], "delta", {}, InvalidRows, "lack _commit_timestamp"),
        (ROW + DELTA, "iceberg", {}, InvalidRows, "lack _change_ordinal, _commit_snapshot_id"),
        (
            [*ROW, ("_change_type", pa.int32()), *DELTA[1:]],
            None,
            {},
            InvalidRows,
            "'_change_type' of table 't' is int32",
        ),
        (
            [*ROW, *DELTA[:2], ("_commit_timestamp", pa.string())],
            None,
            {},
            InvalidRows,
            "'_commit_timestamp' of table 't' is string",
        ),
        (ROW + DELTA, None, {"key_columns": []}, InvalidSetting, "Set keyColumns"),
        (ROW + ICEBERG, None, {"key_columns": []}, InvalidSetting, "out of: id, note"),
        (DEBEZIUM, None, {"key_columns": []}, InvalidSetting, "Set keyColumns"),
        (ROW + DELTA, None, {"key_columns": ["nr"]}, InvalidRows, "Key column 'nr'"),
        (
            [("id", pa.struct([("a", pa.int8())])), *DELTA],
            None,
            {},
            InvalidRows,
            "A key is made of plain values",
        ),
        (JSON, "debezium", {}, InvalidSetting, "Set rowColumns"),
        (ROW, "debezium", {}, InvalidRows, "nor a column 'value'"),
        ([("value", pa.int64())], "debezium", {}, InvalidRows, "not JSON as text or bytes"),
        (
            [("before", IMAGE), ("after", pa.string()), ("op", pa.string())],
            "debezium",
            {},
            InvalidRows,
            "Parse it with from_json",
        ),
        (
            [("before", pa.struct(ROW[:1])), ("after", IMAGE), ("op", pa.string())],
            None,
            {},
            InvalidRows,
            "have other columns",
        ),
    ],
)
def test_what_is_wrong_is_named(
    columns: list[tuple[str, Any]],
    changes: str | None,
    more: dict[str, Any],
    error: type[DuologError],
    said: str,
) -> None:
    with pytest.raises(error) as raised:
        made(columns, changes, **more)
    assert said in str(raised.value)


@pytest.mark.parametrize(("word", "op"), [("append", Op.INSERT), ("read", Op.READ)])
def test_plain_rows_are_inserts_or_reads_at_the_time_of_the_plan(word: str, op: Op) -> None:
    feed = made(ROW, word, key_columns=[]).at(1234)
    rows = pa.RecordBatch.from_pydict({"id": [1, 2], "note": ["a", None]}, schema=pa.schema(ROW))
    came = run(feed, [[rows], [rows.slice(0, 0)]])
    assert [(event.op, event.new, event.old, event.ts_ms) for event in came.events] == [
        (op.name.lower(), row, None, 1234) for row in rows.to_pylist()
    ]


def test_every_word_of_changes_makes_a_feed() -> None:
    columns = {"delta": ROW + DELTA, "iceberg": ROW + ICEBERG, "debezium": DEBEZIUM}
    for word in CHANGES:
        assert made(columns.get(word, ROW), word).found == f"{word}, as `changes` says"
