"""Debezium's envelope as columns and as JSON."""

from __future__ import annotations

import json
import random
from base64 import b64encode
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duolog.connector.feeds import Feed, feed_for
from duolog.connector.feeds.debezium import stretches
from duolog.errors import InvalidRows
from tests.unit.feed_rows import Event, Row, run

ROWS = pa.schema([("id", pa.int64()), ("note", pa.string())])
IMAGE = pa.struct(list(ROWS))
COLUMNS = pa.schema(
    [
        ("before", IMAGE),
        ("after", IMAGE),
        ("source", pa.struct([("ts_ms", pa.int64()), ("table", pa.string())])),
        ("op", pa.string()),
        ("ts_ms", pa.int64()),
    ]
)
A1, A2, B1 = {"id": 1, "note": "a"}, {"id": 1, "note": "b"}, {"id": 2, "note": None}
ENVELOPES: list[Row | None] = [
    {"before": None, "after": A1, "source": {"ts_ms": 10, "table": "t"}, "op": "r", "ts_ms": 99},
    {"before": A1, "after": A2, "source": {"ts_ms": None, "table": "t"}, "op": "u", "ts_ms": 20},
    {"before": None, "after": B1, "source": None, "op": "c", "ts_ms": 30},
    {"before": None, "after": B1, "source": None, "op": "u", "ts_ms": None},
    {"before": A2, "after": None, "source": None, "op": "d", "ts_ms": 40},
    None,
]
EVENTS = [
    Event("read", A1, None, 10),
    Event("update", A2, A1, 20),
    Event("insert", B1, None, 30),
    Event("update", B1, None, 7),
    Event("delete", None, A2, 40),
]


def of_columns() -> Feed:
    return feed_for(COLUMNS, table="t", key_columns=["id"], ts_ms=7)


def of_json(value: pa.DataType | None = None, rows: pa.Schema = ROWS) -> Feed:
    schema = pa.schema([("value", value or pa.binary())])
    return feed_for(
        schema, table="t", key_columns=["id"], changes="debezium", ts_ms=7, row_schema=rows
    )


def json_batch(values: list[Any], kind: pa.DataType | None = None) -> pa.RecordBatch:
    texts = [
        value if value is None or isinstance(value, str) else json.dumps(value) for value in values
    ]
    return pa.RecordBatch.from_arrays([pa.array(texts).cast(kind or pa.binary())], names=["value"])


def with_schema(envelope: Row | None, names: dict[str, str] | None = None) -> Row | None:
    fields = [{"field": name, "type": "any", "name": kind} for name, kind in (names or {}).items()]
    images = [{"field": image, "type": "struct", "fields": fields} for image in ("before", "after")]
    return envelope and {"schema": {"type": "struct", "fields": images}, "payload": envelope}


def test_columns_become_events_and_tombstones_are_passed_over() -> None:
    empty = dict.fromkeys(COLUMNS.names)
    batch = pa.RecordBatch.from_pylist([each or empty for each in ENVELOPES], schema=COLUMNS)
    came = run(of_columns(), [[batch]])
    assert came.events == EVENTS
    assert (came.counts.passed_over, came.counts.old_unknown) == (1, 1)


def test_a_key_that_is_never_null_is_null_below_an_image_that_is() -> None:
    """As the sink settles a key's columns, while Spark calls all columns nullable."""
    keyed = pa.struct([pa.field("id", pa.int64(), nullable=False), ("note", pa.string())])
    settled = pa.schema([("before", keyed), ("after", keyed), *list(COLUMNS)[2:]])
    empty = dict.fromkeys(COLUMNS.names)
    batch = pa.RecordBatch.from_pylist([each or empty for each in ENVELOPES], schema=COLUMNS)
    feed = feed_for(settled, table="t", key_columns=["id"], ts_ms=7)
    assert run(feed, [[batch]]).events == EVENTS


@pytest.mark.parametrize("kind", [pa.string(), pa.binary(), pa.large_string()], ids=str)
def test_json_becomes_events_with_the_schema_part_and_without(kind: pa.DataType) -> None:
    mixed = [with_schema(each) if at % 2 else each for at, each in enumerate(ENVELOPES)]
    for values in (ENVELOPES, [with_schema(each) for each in ENVELOPES], mixed):
        came = run(of_json(kind), [[json_batch(values, kind)]])
        assert came.events == EVENTS
        assert (came.counts.passed_over, came.counts.old_unknown) == (1, 1)


def test_json_over_several_lines_is_read() -> None:
    came = run(of_json(), [[json_batch([json.dumps(each, indent=2) for each in ENVELOPES[:5]])]])
    assert came.events == EVENTS


def test_messages_are_passed_over() -> None:
    message = {"op": "m", "ts_ms": 1, "message": {"prefix": "x"}}
    came = run(of_json(), [[json_batch([message, ENVELOPES[0], message])]])
    assert came.events == EVENTS[:1]
    assert came.counts.passed_over == 2


TYPED = pa.schema(
    [
        ("id", pa.int64()),
        ("price", pa.decimal128(10, 2)),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("raw", pa.binary()),
        ("ok", pa.bool_()),
        ("part", pa.float64()),
    ]
)
WANTED = {
    "id": 1,
    "price": Decimal("-12.30"),
    "day": date(2024, 5, 1),
    "at": datetime(2024, 5, 1, 12, 0, 0, 5000, tzinfo=UTC),
    "raw": b"\x00\xff",
    "ok": True,
    "part": 0.5,
}
AT_MS = int(WANTED["at"].timestamp() * 1000)  # type: ignore[attr-defined]
UNSCALED = b64encode((-1230).to_bytes(2, "big", signed=True)).decode()
COMMON = {"id": 1, "raw": b64encode(b"\x00\xff").decode(), "ok": True, "part": 0.5}


@pytest.mark.parametrize(
    ("written", "names"),
    [
        ({"price": "-12.30", "day": "2024-05-01", "at": "2024-05-01T12:00:00.005Z"}, {}),
        ({"price": -12.3, "day": 19844, "at": "2024-05-01T12:00:00.005+00:00"}, {}),
        (
            {"price": UNSCALED, "day": 19844, "at": AT_MS},
            {
                "price": "org.apache.kafka.connect.data.Decimal",
                "day": "io.debezium.time.Date",
                "at": "io.debezium.time.Timestamp",
            },
        ),
        (
            {"price": "-12.30", "day": 19844, "at": AT_MS * 1000},
            {"at": "io.debezium.time.MicroTimestamp"},
        ),
        (
            {"price": "-12.30", "day": 19844, "at": AT_MS * 1_000_000},
            {"at": "io.debezium.time.NanoTimestamp"},
        ),
    ],
)
def test_values_are_read_in_each_form_that_debezium_writes(
    written: Row, names: dict[str, str]
) -> None:
    blank = dict.fromkeys(TYPED.names) | {"id": 2}
    values = [
        {"op": "c", "after": blank, "ts_ms": 1},
        {"op": "u", "before": blank, "after": {**COMMON, **written}, "ts_ms": 1},
    ]
    wrapped = [with_schema(value, names) if names else value for value in values]
    came = run(of_json(rows=TYPED), [[json_batch(wrapped)]])
    assert [event.new for event in came.events] == [blank, WANTED]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("{", "cannot be read as Debezium's JSON"),
        ('{"op":"c","after":{"id":"x"}}', "cannot be read as Debezium's JSON"),
        ('{"op":"c"}{"op":"c"}', "hold 3 JSON objects"),
        ({"id": 5, "note": "x"}, "Are these rows in Debezium's envelope?"),
        ({"op": "x", "after": A1}, "op for table 't' is 'x'"),
        ({"op": "t", "ts_ms": 3}, "was truncated"),
        ({"op": "c", "before": A1}, "'after' is null in 1 rows"),
        ({"op": "d", "after": A1}, "REPLICA IDENTITY FULL"),
        ({"op": "u", "after": {"note": "x"}}, "Key column 'id' of table 't' is null"),
    ],
)
def test_values_that_cannot_be_read_are_refused(value: Any, said: str) -> None:
    with pytest.raises(InvalidRows) as raised:
        run(of_json(), [[json_batch([ENVELOPES[0], value])]])
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("rows", "value", "said"),
    [
        (TYPED, {**COMMON, "at": AT_MS}, "does not say its unit"),
        (TYPED, {**COMMON, "day": "May"}, "Column 'day' of table 't' cannot be read as date32"),
        (TYPED, {**COMMON, "raw": "?"}, "Column 'raw'"),
    ],
)
def test_values_of_another_form_are_refused(rows: pa.Schema, value: Row, said: str) -> None:
    with pytest.raises(InvalidRows) as raised:
        run(of_json(rows=rows), [[json_batch([{"op": "c", "after": value}])]])
    assert said in str(raised.value)


def test_stretches_end_where_offsets_fall_or_the_partition_changes() -> None:
    batch = pa.RecordBatch.from_pydict(
        {"partition": [0, 0, 0, 0, 1, 1], "offset": [5, 6, 9, 2, 3, 4]}
    )
    assert list(stretches(batch)) == [(5, 0, 3), (2, 3, 4), (3, 4, 6)]
    assert list(stretches(batch.drop_columns(["partition"]))) == [(5, 0, 3), (2, 3, 6)]
    assert list(stretches(batch.drop_columns(["offset"]))) == [(0, 0, 6)]
    assert list(stretches(batch.slice(0, 0))) == []


@given(st.integers(0, 2**32), st.integers(1, 5), st.integers(1, 9))
def test_offset_ranges_over_tasks_keep_the_order_of_each_key(
    seed: int, tasks: int, size: int
) -> None:
    chance = random.Random(seed)
    rows = [
        {
            "partition": partition,
            "offset": offset,
            "op": "u",
            "after": {"id": partition * 10 + chance.randrange(3), "note": f"{offset:04}"},
        }
        for partition in range(2)
        for offset in sorted(chance.sample(range(100), 20))
    ]
    schema = pa.schema(
        [
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("op", pa.string()),
            ("before", IMAGE),
            ("after", IMAGE),
        ]
    )
    feed = feed_for(schema, table="t", key_columns=["id"])
    batches = [
        pa.RecordBatch.from_pylist(rows[at : at + size], schema=schema)
        for at in range(0, len(rows), size)
    ]
    # Batches stay whole, and each task has its own in rising order, as Spark plans ranges.
    spread: list[list[pa.RecordBatch]] = [[] for _ in range(tasks)]
    for batch in batches:
        spread[chance.randrange(tasks)].append(batch)
    by_key: dict[int, list[str]] = {}
    for event in run(feed, spread).events:
        assert event.new is not None
        by_key.setdefault(event.new["id"], []).append(event.new["note"])
    assert all(notes == sorted(notes) for notes in by_key.values())
    assert sum(map(len, by_key.values())) == len(rows)
