"""Records on their way out, as JSON and as Arrow, and messages on their way in."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from duolog.bridge.http.looking import Found
from duolog.bridge.http.messages import op_of, record_of
from duolog.bridge.http.models import ConsumeAnswer, NewMessage
from duolog.bridge.http.shown_arrow import SCHEMA, arrow_answer
from duolog.bridge.http.shown_json import consume_answer
from duolog.errors import InvalidRecord
from duolog.log.batch import RECORD_SCHEMA
from duolog.log.fetched import Fetched, FetchedBatch
from duolog.log.model import Op, PayloadMode, Record, Topic, TopicSettings

ORDERS = Topic(1, "orders", TopicSettings(partitions=2), (), 0, 0)
CONTENT = st.none() | st.binary(max_size=20)
RECORDS = st.lists(
    st.builds(
        Record,
        value=CONTENT,
        key=CONTENT,
        headers=st.lists(st.tuples(st.text(max_size=5), CONTENT), max_size=2).map(tuple),
        ts_ms=st.integers(0, 2**40),
        op=st.sampled_from(Op),
        table=st.none() | st.text(max_size=5),
        payload=st.sampled_from(PayloadMode),
    ),
    min_size=1,
    max_size=5,
)


def page(records: list[Record], base_offset: int = 7, partition: int = 1) -> Fetched:
    rows = [
        {
            "ts": each.ts_ms or 0,
            "key": each.key,
            "value": each.value,
            "headers": [{"name": name, "value": value} for name, value in each.headers],
            "op": int(each.op),
            "table": each.table,
            "payload": int(each.payload),
        }
        for each in records
    ]
    batch = pa.RecordBatch.from_pylist(rows, schema=RECORD_SCHEMA)
    after = base_offset + len(records)
    return Fetched("orders", partition, after, 0, after, (FetchedBatch(base_offset, batch),))


def found(*pages: Fetched, has_more: bool = False) -> Found[Fetched]:
    return Found(ORDERS, pages, {each.partition: each.next_offset for each in pages}, has_more)


def arrow_table(answer: Found[Fetched]) -> pa.Table:
    """What a client reads of the Arrow answer."""
    return pa.ipc.open_stream(b"".join(arrow_answer(answer))).read_all()


def binary(shown: dict[str, Any], name: str) -> bytes | None:
    """What a field held, told from its two spellings."""
    if f"{name}_base64" in shown:
        assert shown[name] is None
        return base64.b64decode(shown[f"{name}_base64"])
    return None if shown[name] is None else str(shown[name]).encode()


@settings(deadline=None)
@given(RECORDS)
def test_json_says_all_of_a_record_and_is_as_described(records: list[Record]) -> None:
    answer = json.loads(consume_answer(found(page(records))))
    ConsumeAnswer.model_validate(answer)
    for offset, (shown, record) in enumerate(zip(answer["messages"], records, strict=True), 7):
        assert (shown["topic"], shown["partition_id"], shown["offset"]) == ("orders", 1, offset)
        assert (shown["topic_id"], shown["message_id"]) == (1, f"1:1:{offset}")
        payload = shown["payload"]
        assert (None if payload is None else base64.b64decode(payload)) == record.value
        assert binary(shown, "key") == record.key
        assert (shown["op"], shown["ts"]) == (record.op.word, record.ts_ms)
        assert (shown["payload_mode"], shown["source_table"]) == (record.payload.word, record.table)
        headers = [(each["name"], binary(each, "value")) for each in shown["headers"]]
        assert headers == list(record.headers)
    assert answer["next_offset"] == 7 + len(records)


@settings(deadline=None)
@given(RECORDS)
def test_arrow_says_all_of_a_record(records: list[Record]) -> None:
    table = arrow_table(found(page(records), has_more=True))
    assert table.schema.equals(SCHEMA)
    assert table.schema.metadata == {
        b"topic": b"orders",
        b"topic_id": b"1",
        b"key_format": b"json",
        b"value_format": b"json",
        b"next_offsets": json.dumps({"1": 7 + len(records)}).encode(),
        b"has_more": b"true",
    }
    for offset, (shown, record) in enumerate(zip(table.to_pylist(), records, strict=True), 7):
        assert record.ts_ms is not None
        assert shown == {
            "partition_id": 1,
            "offset": offset,
            "ts": datetime.fromtimestamp(record.ts_ms / 1000, UTC),
            "key": record.key,
            "payload": record.value,
            "op": record.op.word,
            "source_table": record.table,
            "payload_mode": record.payload.word,
            "headers": [{"name": name, "value": value} for name, value in record.headers],
        }


def test_several_pages_are_one_answer_that_says_where_each_goes_on() -> None:
    whole = page([Record(b"a"), Record(b"b")], 0, 0), page([Record(b"c")], 4, 1)
    pages = [
        Fetched(each.topic, each.partition, each.next_offset, 0, 9, each.batches) for each in whole
    ]
    answer = json.loads(consume_answer(found(*pages, has_more=True)))
    assert [each["message_id"] for each in answer["messages"]] == [
        "1:0:0", "1:0:1", "1:1:4",
    ]  # fmt: skip
    assert answer["next_offset"] is None
    assert answer["next_offsets"] == {"0": 2, "1": 5}
    assert answer["has_more"] is True
    table = arrow_table(found(*pages))
    assert table.column("partition_id").to_pylist() == [0, 0, 1]


def test_an_empty_answer_has_no_next_offset_but_says_where_it_stands() -> None:
    nothing: Found[Fetched] = Found(ORDERS, (), {0: 5}, False)
    assert json.loads(consume_answer(nothing)) == {
        "messages": [],
        "topic_id": 1,
        "next_offset": None,
        "next_offsets": {"0": 5},
        "has_more": False,
    }
    assert arrow_table(nothing).num_rows == 0


@pytest.mark.parametrize(
    ("message", "record"),
    [
        ({"value": "text"}, Record(b"text")),
        ({"value": {"b": 1, "a": [1.5, None]}}, Record(b'{"b":1,"a":[1.5,null]}')),
        ({"value": 12345678901234567890}, Record(b"12345678901234567890")),
        ({"value": "ü"}, Record("ü".encode())),
        ({"value": None}, Record(None)),
        ({"payload": "AP8="}, Record(b"\x00\xff")),
        ({"payload": None}, Record(None)),
        ({"value": "v", "key": "k"}, Record(b"v", b"k")),
        ({"value": "v", "key": {"id": 1}}, Record(b"v", b'{"id":1}')),
        ({"value": "v", "key_base64": "/w=="}, Record(b"v", b"\xff")),
        (
            {"value": "v", "headers": [{"name": "a", "value": "x"}, {"name": "b"}]},
            Record(b"v", headers=(("a", b"x"), ("b", None))),
        ),
        (
            {"value": "v", "headers": [{"name": "a", "value_base64": "/w=="}]},
            Record(b"v", headers=(("a", b"\xff"),)),
        ),
        (
            {"value": "v", "partition_id": 3, "op": "Update", "source_table": "t", "ts": 9,
             "payload_mode": "diff"},
            Record(b"v", None, (), 3, 9, Op.UPDATE, "t", PayloadMode.DIFF),
        ),
    ],
)  # fmt: skip
def test_messages_as_the_log_takes_them(message: dict[str, Any], record: Record) -> None:
    assert record_of(NewMessage.model_validate(message)) == record


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ({}, "a value or a payload"),
        ({"value": "a", "payload": "AA=="}, "a value or a payload"),
        ({"payload": "***"}, "payload is not base64"),
        ({"payload": "AAé="}, "payload is not base64"),
        ({"value": "a", "key": "a", "key_base64": "AA=="}, "a key or a key_base64"),
        ({"value": float("nan")}, "value cannot be written"),
        ({"value": ["\ud800"]}, "value cannot be written"),
        ({"value": "a", "op": "upsert"}, "op is one of insert, update, delete, read"),
        ({"value": "a", "payload_mode": "half"}, "payload_mode is one of full, key, diff"),
        (
            {"value": "a", "headers": [{"name": "a", "value": "x", "value_base64": "AA=="}]},
            "a value or a value_base64",
        ),
    ],
)
def test_messages_that_no_topic_takes_say_why(message: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidRecord, match=said):
        record_of(NewMessage.model_validate(message))


@pytest.mark.parametrize(
    "message",
    [
        {"value": "a", "partition_id": "1"},
        {"value": "a", "partition_id": -1},
        {"value": "a", "ts": 1.5},
        {"value": "a", "valeu": "b"},
        {"value": "a", "headers": {"a": "b"}},
    ],
)
def test_messages_that_are_not_as_described_are_refused(message: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        NewMessage.model_validate(message)


def test_operations_are_words() -> None:
    assert [op_of(word) for word in ("insert", "UPDATE", "Delete", "read")] == [
        Op.INSERT,
        Op.UPDATE,
        Op.DELETE,
        Op.READ,
    ]
