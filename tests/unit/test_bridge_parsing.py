"""A small and a large body ask the same in the same words; limits are refused by name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from duolog.bridge.http.asking import RequestRefused
from duolog.bridge.http.messages import record_of
from duolog.bridge.http.models import (
    ConsumeRequest,
    LargePublishRequest,
    PublishRequest,
    SqlRequest,
)
from duolog.bridge.http.parsing import parsed_large, parsed_small
from duolog.bridge.http.rules import BodyLimits
from duolog.errors import (
    DuologError,
    InvalidRecord,
    InvalidSetting,
    TooManyHeaders,
    TooManyValues,
)

LIMITS = BodyLimits()
HEADER = {"name": "a", "value": "b"}
MESSAGES: list[dict[str, Any]] = [
    {"value": "text"},
    {"value": {"a": [1, 2.5, None]}, "key": 7, "headers": [HEADER, {"name": "n", "value": None}]},
    {"payload": "AAEC", "key_base64": "/w==", "op": "insert", "source_table": "s.t", "ts": 5},
    {"value": None, "partition_id": 3, "payload_mode": "full"},
]


def publish(*messages: Any, **more: Any) -> bytes:
    return json.dumps({"topic": "t", "messages": messages, **more}).encode()


def test_records_are_made_of_large_bodies_as_of_small_ones() -> None:
    body = publish(*MESSAGES, writer="w", sequence=4, in_order=True)
    small, large = (parse(PublishRequest, body, LIMITS) for parse in (parsed_small, parsed_large))
    assert isinstance(small, PublishRequest)
    assert isinstance(large, LargePublishRequest)
    assert large.records == [record_of(each) for each in small.messages or []]
    assert (large.topic, large.writer, large.sequence, large.in_order) == ("t", "w", 4, True)
    assert large.messages == []


@pytest.mark.parametrize(
    ("model", "asked"),
    [
        (PublishRequest, {"table": "t", "op": "insert", "rows": [{"a": 1}, {"a": [{}]}]}),
        (
            PublishRequest,
            {
                "table": "t",
                "op": "update",
                "rows": [{"a": 1}, {}],
                "before": [None, {"a": 0}],
                "key_columns": ["a"],
                "ts": 5,
                "unrouted": "drop",
            },
        ),
        (ConsumeRequest, {"topic": "t", "start": {"Offsets": {"0": 7}}, "limit": 5}),
        (SqlRequest, {"sql": "SELECT 1"}),
    ],
)
def test_all_else_is_the_same(model: Any, asked: Any) -> None:
    body = json.dumps(asked).encode()
    small, large = parsed_small(model, body, LIMITS), parsed_large(model, body, LIMITS)
    assert large.model_dump() == small.model_dump()


@pytest.mark.parametrize(
    "body",
    [
        b"null",
        b"[1]",
        b'{"topic"',
        b'{"topic":"\xff"}',
        b'{"topic":"\\ud800","messages":[]}',
        b"{}",
        publish({"value": 1}, topic=""),
        publish({"value": 1}, {"value": 1, "unknown": 1}),
        publish({"value": 1, "ts": "soon"}),
        publish(1),
        publish({}),
        publish({"value": 1, "payload": ""}),
        publish({"payload": "no base64"}),
        publish({"value": 1}, table="t"),
        publish({"value": 1}, writer="w"),
        b'{"topic":"t","messages":{"value":1}}',
        b'{"table":"t","op":"insert","rows":[null]}',
        b'{"table":"t","op":"insert","rows":[{}],"before":[1]}',
        publish({"value": 1, "headers": [HEADER] * 1001}),
        publish({"value": 1, "headers": [5]}),
    ],
)
def test_what_is_refused_in_a_small_body_is_refused_in_a_large_one(body: bytes) -> None:
    assert refused(parsed_large, body) == refused(parsed_small, body)


def refused(parse: Any, body: bytes) -> tuple[int, str]:
    """With which status, or error, and code."""
    try:
        ask = parse(PublishRequest, body, LIMITS)
        for message in ask.messages or ():
            record_of(message)
    except RequestRefused as error:
        return error.refusal.status, error.refusal.code
    except DuologError as error:
        return 0, error.code
    raise AssertionError(body)


@pytest.mark.parametrize("parse", [parsed_small, parsed_large])
def test_headers_are_limited_for_a_record_and_for_all_of_a_request(parse: Any) -> None:
    limits = BodyLimits(max_record_headers=3, max_request_headers=8)
    three, four = {"value": 1, "headers": [HEADER] * 3}, {"value": 1, "headers": [HEADER] * 4}
    parse(PublishRequest, publish(three, three, {"value": 1, "headers": [HEADER] * 2}), limits)
    with pytest.raises(
        TooManyHeaders, match=r"messages\.1 has 4 headers, .* 3.*max_record_headers"
    ):
        parse(PublishRequest, publish(three, four), limits)
    with pytest.raises(TooManyHeaders, match=r"may have 8 headers together.*max_request_headers"):
        parse(PublishRequest, publish(three, three, three), limits)


def test_headers_are_counted_before_the_last_message_is_read() -> None:
    body = publish({"value": 1, "headers": [HEADER] * 4})[:-1] + b" and this is no JSON"
    with pytest.raises(TooManyHeaders):
        parsed_large(PublishRequest, body, BodyLimits(max_record_headers=3))


def test_values_are_limited_for_a_record_and_for_all_of_a_request() -> None:
    many = {"value": [0] * 150_000}
    with pytest.raises(
        TooManyValues, match=r"messages\.1 has more than 100000 .*max_record_values"
    ):
        parsed_large(PublishRequest, publish({"value": 1}, many), LIMITS)
    raised = BodyLimits(max_record_values=200_000)
    parsed_large(PublishRequest, publish({"value": 1}, many), raised)
    with pytest.raises(TooManyValues, match=r"more than 100000 JSON.*max_request_values"):
        parsed_large(PublishRequest, publish(many), BodyLimits(max_request_values=100_000))
    offsets = {"topic": "t", "next_offsets": {str(each): 1 for each in range(150_000)}}
    with pytest.raises(TooManyValues, match="next_offsets has"):
        parsed_large(ConsumeRequest, json.dumps(offsets).encode(), LIMITS)


def test_a_text_that_looks_like_many_values_is_one() -> None:
    text = "[{," * 200_000
    ask = parsed_large(PublishRequest, publish({"value": text}), LIMITS)
    assert isinstance(ask, LargePublishRequest)
    assert ask.records[0].value == text.encode()


@pytest.mark.parametrize("name", ["messages", "rows", "before"])
def test_ten_thousand_items_go_in_and_no_more(name: str) -> None:
    item = {"value": 1}
    head: dict[str, Any] = {"topic": "t"}
    if name != "messages":
        head = {"table": "t", "op": "insert", "rows": [item]}

    def parse(count: int) -> Any:
        body = json.dumps({**head, name: [item] * count}).encode()
        return parsed_large(PublishRequest, body, LIMITS)

    parse(10_000)
    with pytest.raises(RequestRefused, match=f"{name}: A request has at most 10000") as refusal:
        parse(10_001)
    assert refusal.value.refusal.code == "InvalidRequest"


def test_a_mistake_names_its_place() -> None:
    with pytest.raises(RequestRefused, match=r"messages\.1\.headers\.0\.name: "):
        parsed_large(
            PublishRequest, publish({"value": 1}, {"value": 1, "headers": [{"name": 5}]}), LIMITS
        )
    with pytest.raises(InvalidRecord):
        parsed_large(PublishRequest, publish({"value": 1, "payload": ""}), LIMITS)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_record_headers", -1),
        ("max_record_headers", 1001),
        ("max_request_headers", -1),
        ("max_record_values", 1000),
        ("max_request_values", 1000),
        ("max_large_requests", 0),
    ],
)
def test_limits_that_no_host_runs_with_are_refused(name: str, value: int) -> None:
    with pytest.raises(InvalidSetting, match=f"{name} must be .*got {value}"):
        BodyLimits(**{name: value})
