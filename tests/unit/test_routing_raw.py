"""Keys and values as plain bytes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from duolog.errors import DuologError, InvalidRows, InvalidSetting
from duolog.log.model import Envelope, Format, Op, PayloadMode, Route, Topic, TopicSettings
from duolog.log.routing.changes import Changes
from duolog.log.routing.plan import RoutingPlan
from duolog.log.routing.route import route

ROWS = pa.RecordBatch.from_pydict({"k": ["a", "é"], "kind": [1, 2], "value": [b"\x00", None]})


def topic(payload: PayloadMode = PayloadMode.FULL, **settings: Any) -> Topic:
    formats = {"key_format": Format.RAW, "value_format": Format.RAW} | settings
    routes = (Route("t", frozenset({Op.INSERT, Op.DELETE}), payload=payload),)
    return Topic(1, "plain", TopicSettings(**formats), routes, 0, 0)


def records(changes: Changes, raw: Topic) -> list[tuple[bytes | None, bytes | None]]:
    rows = [
        row
        for part in route(changes, RoutingPlan.of([raw])).records
        for row in part.records.to_pylist()
    ]
    return [(row["key"], row["value"]) for row in rows]


def test_the_key_and_the_column_value_are_written_as_they_are() -> None:
    changes = Changes.from_rows("t", Op.INSERT, ROWS, ["k"], 1)
    assert records(changes, topic()) == [(b"a", b"\x00"), ("é".encode(), None)]


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.binary(2)], ids=str
)
def test_every_kind_of_bytes_is_taken(kind: pa.DataType) -> None:
    rows = pa.RecordBatch.from_pydict(
        {"k": pa.array([b"ab"], kind), "value": pa.array([b"cd"], kind)}
    )
    assert records(Changes.from_rows("t", Op.INSERT, rows, ["k"], 1), topic()) == [(b"ab", b"cd")]


def test_a_delete_has_the_old_value_where_it_is_known_and_else_none() -> None:
    old = pa.RecordBatch.from_pydict({"k": ["a", "b"], "kind": [1, 2], "value": [b"1", b"2"]})
    changes = Changes.of(
        "t",
        ["k"],
        op=pa.array([Op.DELETE, Op.DELETE], pa.int8()),
        after=old,
        before=old,
        before_known=pa.array([True, False]),
        ts=pa.array([1, 1]),
    )
    assert records(changes, topic()) == [(b"a", b"1"), (b"b", None)]


@pytest.mark.parametrize(
    ("key", "raw", "rows", "error", "said"),
    [
        (["k"], topic(), [{"k": "a"}], InvalidSetting, "is a column 'value'"),
        (["k"], topic(PayloadMode.KEY), None, InvalidSetting, "is a column 'value'"),
        (["k"], topic(PayloadMode.DIFF), None, InvalidSetting, "is a column 'value'"),
        (["k"], topic(envelope=Envelope.DEBEZIUM), None, InvalidSetting, "is a column 'value'"),
        (["k", "kind"], topic(), None, InvalidSetting, "takes one column .* not k, kind"),
        (["kind"], topic(), None, InvalidRows, "Column 'kind' is of type int64"),
        (["k"], topic(), [{"k": "a", "value": 1}], InvalidRows, "Column 'value' is of type int64"),
    ],
)
def test_what_is_not_bytes_is_refused_by_name(
    key: list[str], raw: Topic, rows: Any, error: type[DuologError], said: str
) -> None:
    changes = Changes.from_rows("t", Op.INSERT, rows or ROWS, key, 1)
    with pytest.raises(error, match=f"{said}.*format json"):
        route(changes, RoutingPlan.of([raw]))
