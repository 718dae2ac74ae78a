"""Rows with the columns of Spark's Kafka sink become records."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duolog.connector.topic_rows import TopicRows
from duolog.errors import InvalidRows, UnknownTopic
from duolog.log.batch import RECORD_SCHEMA
from duolog.log.model import Topic, TopicSettings
from duolog.log.routing.murmur2_scalar import partition_of_key

NOW_MS = 1_700_000_000_000
ORDERS = Topic(1, "orders", TopicSettings(alias="o", partitions=4), (), 0, 0)
BILLS = Topic(2, "bills", TopicSettings(), (), 0, 0)
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def rows_of(**columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def records_of(
    rows: pa.RecordBatch, topic: Topic | None = ORDERS, *, turn: int = 0
) -> dict[tuple[str, int], list[dict[str, Any]]]:
    topic_rows = TopicRows.of(rows.schema, topic, (ORDERS, BILLS))
    found: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for to, partition, records in topic_rows.records(rows, now_ms=NOW_MS, turn=turn):
        assert records.schema == RECORD_SCHEMA
        found.setdefault((to.name, partition), []).extend(records.to_pylist())
    return found


def test_keys_and_values_become_bytes() -> None:
    found = records_of(rows_of(key=["a"], value=["é"]), replace(ORDERS, settings=TopicSettings()))
    assert found == {
        ("orders", 0): [
            {
                "ts": NOW_MS,
                "key": b"a",
                "value": "é".encode(),
                "headers": None,
                "op": 0,
                "table": None,
                "payload": 0,
            }
        ]
    }


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()], ids=str
)
def test_every_kind_of_text_and_bytes(kind: pa.DataType) -> None:
    values = pa.array(["x", None, ""], kind)
    found = records_of(rows_of(value=values), BILLS)
    assert [record["value"] for record in found["bills", 0]] == [b"x", None, b""]


@given(st.lists(st.one_of(st.none(), st.binary(max_size=9)), min_size=1, max_size=60))
def test_the_key_decides_as_in_kafka_and_rows_keep_their_order(keys: list[bytes | None]) -> None:
    rows = rows_of(
        key=pa.array(keys, pa.binary()), value=[str(n).encode() for n in range(len(keys))]
    )
    found = records_of(rows, turn=6)
    for (_, partition), records in found.items():
        for record in records:
            key = record["key"]
            assert partition == (2 if key is None else partition_of_key(key, 4))
        numbers = [int(record["value"]) for record in records]
        assert numbers == sorted(numbers)
    assert sum(map(len, found.values())) == len(keys)


def test_a_partition_that_is_given_goes_before_the_key() -> None:
    rows = rows_of(
        key=["a", "a", "a"], value=["1", "2", "3"], partition=pa.array([3, None, 1], pa.int32())
    )
    found = records_of(rows)
    assert [r["value"] for r in found["orders", 3]] == [b"1"]
    assert [r["value"] for r in found["orders", partition_of_key(b"a", 4)]] == [b"2"]
    assert [r["value"] for r in found["orders", 1]] == [b"3"]


def test_rows_name_their_topics_by_name_or_alias() -> None:
    rows = rows_of(topic=["bills", "o", "orders"], key=["k", "k", "k"], value=["1", "2", "3"])
    found = records_of(rows, None)
    place = partition_of_key(b"k", 4)
    assert {where: [r["value"] for r in share] for where, share in found.items()} == {
        ("bills", 0): [b"1"],
        ("orders", place): [b"2", b"3"],
    }


def test_the_option_goes_before_the_column() -> None:
    rows = rows_of(topic=["orders", None], value=["1", "2"])
    assert list(records_of(rows, BILLS)) == [("bills", 0)]


def test_headers_and_times() -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, 678_999, tzinfo=UTC)
    rows = rows_of(
        value=["1", "2", "3"],
        headers=pa.array([[("a", b"1"), ("b", None)], None, []], HEADERS),
        timestamp=pa.array([at, None, at], pa.timestamp("us", tz="Europe/Berlin")),
    )
    records = records_of(rows, BILLS)["bills", 0]
    milliseconds = int(at.timestamp() * 1000)
    assert [record["ts"] for record in records] == [milliseconds, NOW_MS, milliseconds]
    assert [record["headers"] for record in records] == [
        [{"name": "a", "value": b"1"}, {"name": "b", "value": None}],
        None,
        [],
    ]


def test_headers_of_a_slice() -> None:
    rows = rows_of(
        value=["1", "2", "3"],
        headers=pa.array([[("a", b"1")], [("b", b"2"), ("c", b"3")], None], HEADERS),
    ).slice(1)
    records = records_of(rows, BILLS)["bills", 0]
    assert [record["headers"] for record in records] == [
        [{"name": "b", "value": b"2"}, {"name": "c", "value": b"3"}],
        None,
    ]


def test_other_columns_are_left_out() -> None:
    rows = rows_of(value=["1"], offset=[5], timestampType=[0])
    assert records_of(rows, BILLS)["bills", 0][0]["value"] == b"1"


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"key": ["a"]}, "no column 'value' (they have key)"),
        ({"value": [1]}, "Column 'value' is of type int64; it must be string or binary"),
        ({"value": ["a"], "key": [1.5]}, "Column 'key' is of type double"),
        ({"value": ["a"], "partition": ["0"]}, "Column 'partition' is of type string"),
        ({"value": ["a"], "headers": ["h"]}, "array<struct<key string, value binary>>"),
        ({"value": ["a"], "timestamp": [5]}, "Column 'timestamp' is of type int64"),
    ],
)
def test_columns_that_do_not_fit_are_named(columns: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidRows, match=re.escape(told)):
        TopicRows.of(rows_of(**columns).schema, ORDERS, ())


def test_rows_for_no_topic_are_refused() -> None:
    with pytest.raises(InvalidRows, match=r"Nothing says which topic .* Set option 'topic'"):
        TopicRows.of(rows_of(value=["a"]).schema, None, (ORDERS,))


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        (
            {"partition": pa.array([0, None, 4], pa.int32())},
            "Column 'partition' is 4 in row 2 of a batch, but topic 'orders' has partitions 0 to 3",
        ),
        ({"partition": [0, -1, 0]}, "Column 'partition' is -1 in row 1"),
        (
            {"timestamp": pa.array([0, -1, 0], pa.timestamp("ms"))},
            "Column 'timestamp' is before 1970 in row 1",
        ),
        ({"headers": pa.array([[(None, b"")], [], []], HEADERS)}, "whose key is null"),
        ({"headers": pa.array([[None], [], []], HEADERS)}, "a header that is null"),
    ],
)
def test_rows_that_do_not_fit_are_named(columns: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidRows, match=re.escape(told)):
        records_of(rows_of(value=["a", "b", "c"], **columns))


def test_a_null_topic_is_named() -> None:
    rows = rows_of(value=["a", "b"], topic=["orders", None])
    with pytest.raises(InvalidRows, match=r"Column 'topic' is null in row 1 .* set option 'topic'"):
        records_of(rows, None)


def test_an_unknown_topic_is_named() -> None:
    rows = rows_of(value=["a"], topic=["order"])
    with pytest.raises(UnknownTopic, match="Column 'topic' names 'order'"):
        records_of(rows, None)


def test_no_rows_are_no_records() -> None:
    assert records_of(rows_of(value=pa.array([], pa.string()))) == {}
    topics = pa.array([], pa.string())
    assert records_of(rows_of(value=pa.array([], pa.string()), topic=topics), None) == {}
