"""What each payload and envelope says of each kind of change, to the byte."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from duolog.errors import InvalidRows
from duolog.log.model import Envelope, Op, PayloadMode, Route, Topic, TopicSettings
from duolog.log.routing.changes import Changes
from duolog.log.routing.plan import RoutingPlan
from duolog.log.routing.route import route

ALL = frozenset({Op.INSERT, Op.UPDATE, Op.DELETE})
OLD = {"id": 1, "item": "tea", "qty": 2}
NEW = {"id": 1, "item": "tea", "qty": 3}
FULL, KEY, DIFF = PayloadMode.FULL, PayloadMode.KEY, PayloadMode.DIFF
FLAT, DEBEZIUM = Envelope.FLAT, Envelope.DEBEZIUM
SOURCE = '"source":{"connector":"duolog","table":"shop.orders"}'


def topic(payload: PayloadMode, envelope: Envelope, ops: frozenset[Op] = ALL) -> Topic:
    routes = (Route("shop.orders", ops, payload=payload),)
    return Topic(7, "orders", TopicSettings(envelope=envelope), routes, 0, 0)


def changes(op: Op, *, known: bool, old: dict[str, Any], new: dict[str, Any]) -> Changes:
    return Changes.of(
        "shop.orders",
        ["id"],
        op=pa.array([op], pa.int8()),
        after=pa.RecordBatch.from_pylist([new]),
        before=pa.RecordBatch.from_pylist([old]),
        before_known=pa.array([known]),
        ts=pa.array([1700000000000]),
    )


def values(
    payload: PayloadMode,
    envelope: Envelope,
    op: Op,
    *,
    known: bool = True,
    old: dict[str, Any] = OLD,
    new: dict[str, Any] = NEW,
) -> list[str | None]:
    plan = RoutingPlan.of([topic(payload, envelope)])
    (routed,) = route(changes(op, known=known, old=old, new=new), plan).records
    assert set(routed.records.column("payload").to_pylist()) == {int(payload)}
    assert set(routed.records.column("op").to_pylist()) == {int(op)}
    assert set(routed.records.column("key").to_pylist()) == {b'{"id":1}'}
    bodies = routed.records.column("value").to_pylist()
    return [None if body is None else body.decode() for body in bodies]


WHOLE_OLD = '{"id":1,"item":"tea","qty":2}'
WHOLE_NEW = '{"id":1,"item":"tea","qty":3}'
FLAT_CASES = [
    (FULL, Op.INSERT, True, '{"_table":"shop.orders","id":1,"item":"tea","qty":3}'),
    (FULL, Op.READ, True, '{"_table":"shop.orders","id":1,"item":"tea","qty":3}'),
    (FULL, Op.UPDATE, True, '{"_table":"shop.orders","id":1,"item":"tea","qty":3}'),
    (FULL, Op.DELETE, True, '{"_table":"shop.orders","id":1,"item":"tea","qty":2}'),
    (FULL, Op.DELETE, False, '{"_table":"shop.orders","id":1}'),
    (KEY, Op.INSERT, True, '{"_table":"shop.orders","id":1}'),
    (KEY, Op.UPDATE, True, '{"_table":"shop.orders","id":1}'),
    (KEY, Op.DELETE, False, '{"_table":"shop.orders","id":1}'),
    (DIFF, Op.INSERT, True, f'{{"_table":"shop.orders","id":1,"before":null,"after":{WHOLE_NEW}}}'),
    (DIFF, Op.READ, True, f'{{"_table":"shop.orders","id":1,"before":null,"after":{WHOLE_NEW}}}'),
    (
        DIFF,
        Op.UPDATE,
        True,
        '{"_table":"shop.orders","id":1,"before":{"qty":2},"after":{"qty":3}}',
    ),
    (
        DIFF,
        Op.UPDATE,
        False,
        f'{{"_table":"shop.orders","id":1,"before":null,"after":{WHOLE_NEW}}}',
    ),
    (DIFF, Op.DELETE, True, f'{{"_table":"shop.orders","id":1,"before":{WHOLE_OLD},"after":null}}'),
    (DIFF, Op.DELETE, False, '{"_table":"shop.orders","id":1,"before":{"id":1},"after":null}'),
]


@pytest.mark.parametrize(("payload", "op", "known", "wanted"), FLAT_CASES)
def test_a_flat_value_is_the_payload(
    payload: PayloadMode, op: Op, known: bool, wanted: str
) -> None:
    assert values(payload, FLAT, op, known=known) == [wanted]


DEBEZIUM_CASES = [
    (FULL, Op.INSERT, True, "null", WHOLE_NEW, "c"),
    (FULL, Op.READ, True, "null", WHOLE_NEW, "r"),
    (FULL, Op.UPDATE, True, WHOLE_OLD, WHOLE_NEW, "u"),
    (FULL, Op.UPDATE, False, "null", WHOLE_NEW, "u"),
    (FULL, Op.DELETE, True, WHOLE_OLD, "null", "d"),
    (FULL, Op.DELETE, False, '{"id":1}', "null", "d"),
    (KEY, Op.INSERT, True, "null", '{"id":1}', "c"),
    (KEY, Op.UPDATE, True, '{"id":1}', '{"id":1}', "u"),
    (KEY, Op.UPDATE, False, "null", '{"id":1}', "u"),
    (KEY, Op.DELETE, True, '{"id":1}', "null", "d"),
    (DIFF, Op.INSERT, True, "null", WHOLE_NEW, "c"),
    (DIFF, Op.UPDATE, True, '{"id":1,"qty":2}', '{"id":1,"qty":3}', "u"),
    (DIFF, Op.UPDATE, False, "null", WHOLE_NEW, "u"),
    (DIFF, Op.DELETE, True, WHOLE_OLD, "null", "d"),
    (DIFF, Op.DELETE, False, '{"id":1}', "null", "d"),
]


@pytest.mark.parametrize(("payload", "op", "known", "before", "after", "word"), DEBEZIUM_CASES)
def test_debezium_carries_both_images_and_a_tombstone_behind_each_delete(
    payload: PayloadMode, op: Op, known: bool, before: str, after: str, word: str
) -> None:
    wanted = f'{{"before":{before},"after":{after},{SOURCE},"op":"{word}","ts_ms":1700000000000}}'
    tombstones = [None] if op is Op.DELETE else []
    assert values(payload, DEBEZIUM, op, known=known) == [wanted, *tombstones]


@dataclass(frozen=True)
class WithoutTombstones(TopicSettings):
    tombstones_on_delete: bool = False


def test_a_topic_can_do_without_tombstones() -> None:
    routes = (Route("shop.orders", ALL),)
    without = Topic(7, "orders", WithoutTombstones(envelope=DEBEZIUM), routes, 0, 0)
    deleted = Changes.from_rows("shop.orders", Op.DELETE, [OLD], ["id"], 1)
    (routed,) = route(deleted, RoutingPlan.of([without])).records
    assert [value is None for value in routed.records.column("value").to_pylist()] == [False]


def test_an_update_that_changed_nothing_is_still_a_record() -> None:
    same: dict[str, Any] = {"id": 1, "x": None, "f": float("nan"), "l": [1, None]}
    assert values(DIFF, FLAT, Op.UPDATE, old=same, new=same) == [
        '{"_table":"shop.orders","id":1,"before":{},"after":{}}'
    ]


def test_a_change_to_null_is_not_the_same_as_no_change() -> None:
    old: dict[str, Any] = {"id": 1, "a": {"n": 1}, "b": [1], "c": "x"}
    new: dict[str, Any] = {"id": 1, "a": {"n": None}, "b": None, "c": "x"}
    typed = pa.RecordBatch.from_pylist([old]).schema
    made = Changes.of(
        "shop.orders",
        ["id"],
        op=pa.array([Op.UPDATE], pa.int8()),
        after=pa.RecordBatch.from_pylist([new], schema=typed),
        before=pa.RecordBatch.from_pylist([old]),
        ts=pa.array([1]),
    )
    (routed,) = route(made, RoutingPlan.of([topic(DIFF, FLAT)])).records
    assert routed.records.column("value").to_pylist() == [
        b'{"_table":"shop.orders","id":1,'
        b'"before":{"a":{"n":1},"b":[1]},"after":{"a":{"n":null},"b":null}}'
    ]


def test_columns_keep_the_order_of_the_table_and_keys_the_order_of_the_key() -> None:
    rows = [{"b": 1, "a": 2, "c": 3}]
    made = Changes.from_rows("shop.orders", Op.INSERT, rows, ["c", "b"], 1)
    (full,) = route(made, RoutingPlan.of([topic(FULL, FLAT)])).records
    (key,) = route(made, RoutingPlan.of([topic(KEY, FLAT)])).records
    assert full.records.to_pylist()[0]["value"] == b'{"_table":"shop.orders","b":1,"a":2,"c":3}'
    assert full.records.to_pylist()[0]["key"] == b'{"c":3,"b":1}'
    assert key.records.to_pylist()[0]["value"] == b'{"_table":"shop.orders","c":3,"b":1}'


def test_a_route_without_deletes_has_no_columns_that_rows_may_lack() -> None:
    from duolog.log.routing.envelope import value_schema
    from duolog.log.routing.optional import is_optional

    rows = pa.schema([pa.field("id", pa.int64()), pa.field("qty", pa.int64(), nullable=False)])
    inserts = topic(FULL, FLAT, frozenset({Op.INSERT})).routes[0]
    schema = value_schema(rows, ("id",), inserts, FLAT)
    assert [field.nullable for field in schema] == [False, False, False]
    with_deletes = value_schema(rows, ("id",), topic(FULL, FLAT).routes[0], FLAT)
    assert [is_optional(field) for field in with_deletes] == [False, False, True]


@pytest.mark.parametrize("name", ["before", "after"])
def test_a_key_column_named_like_a_part_of_the_diff_is_refused(name: str) -> None:
    made = Changes.from_rows("shop.orders", Op.INSERT, [{name: 1}], [name], 1)
    with pytest.raises(InvalidRows, match=f"Key column '{name}'"):
        route(made, RoutingPlan.of([topic(DIFF, FLAT)]))
    (routed,) = route(made, RoutingPlan.of([topic(DIFF, DEBEZIUM)])).records
    assert len(routed.records) == 1


@pytest.mark.parametrize("payload", [KEY, DIFF])
def test_payloads_that_need_a_key_are_refused_without_one(payload: PayloadMode) -> None:
    made = Changes.from_rows("shop.orders", Op.INSERT, [{"a": 1}], [], 1)
    with pytest.raises(InvalidRows, match="have no key"):
        route(made, RoutingPlan.of([topic(payload, FLAT)]))
