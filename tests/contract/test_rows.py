"""Rows with the rows before them, and rows that no route takes, on every form of a log."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from duolog.errors import InvalidRequest, InvalidRows, InvalidSetting, UnknownRoute
from duolog.log.access import LogAccess
from duolog.log.model import Op, PayloadMode, Route, Unrouted
from duolog.log.routing.filter.parse import parse_filter, parse_partition_by

ALL = frozenset({Op.INSERT, Op.UPDATE, Op.DELETE})
TABLE = "shop.orders"


@pytest.fixture
def diffs(log: LogAccess) -> LogAccess:
    log.create_topic("diffs")
    log.add_route("diffs", Route(TABLE, ALL, payload=PayloadMode.DIFF))
    return log


def images(log: LogAccess) -> list[tuple[Any, Any]]:
    """What the last records say of before and after."""
    values = [json.loads(record.value or b"") for record in log.fetch("diffs", 0, 0)]
    return [(value["before"], value["after"]) for value in values]


def test_a_diff_shows_what_an_update_changed(diffs: LogAccess) -> None:
    diffs.publish_rows(
        TABLE,
        Op.UPDATE,
        [{"id": 1, "qty": 3, "item": "tea"}, {"id": 2, "qty": 5, "item": "jam"}],
        ["id"],
        before=[{"id": 1, "qty": 2.5, "item": "tea"}, None],
    )
    assert images(diffs) == [
        ({"qty": 2.5}, {"qty": 3.0}),
        (None, {"id": 2, "qty": 5.0, "item": "jam"}),
    ]


def test_an_update_of_the_key_is_a_delete_and_an_insert(diffs: LogAccess) -> None:
    diffs.publish_rows(TABLE, Op.UPDATE, [{"id": 2}], ["id"], before=[{"id": 1}])
    assert images(diffs) == [({"id": 1}, None), (None, {"id": 2})]


def test_a_deletes_old_row_may_come_beside_its_key(diffs: LogAccess) -> None:
    old = {"id": 1, "qty": 2}
    diffs.publish_rows(
        TABLE, Op.DELETE, [{"id": 1}, {"id": 7, "qty": 9}], ["id"], before=[old, None]
    )
    diffs.publish_rows(TABLE, Op.DELETE, [old], ["id"])
    assert images(diffs) == [(old, None), ({"id": 7, "qty": 9}, None), (old, None)]


def test_filters_see_the_row_before(log: LogAccess) -> None:
    log.create_topic("risen")
    log.add_route("risen", Route(TABLE, ALL, parse_filter("qty > before.qty")))
    rows, before = [{"id": 1, "qty": 3}, {"id": 2, "qty": 3}], [{"id": 1, "qty": 2}, None]
    (placed,) = log.publish_rows(TABLE, Op.UPDATE, rows, ["id"], before=before)
    (record,) = log.fetch("risen", 0, placed.offset)
    assert record.key == b'{"id":1}'


@pytest.mark.parametrize("form_of_before", ["table", "batch", "structs", "dicts"])
def test_arrow_columns_may_come_in_any_order(diffs: LogAccess, form_of_before: str) -> None:
    rows = pa.table({"id": [1, 2], "qty": [3, 4]})
    old = [{"qty": 2, "id": 1}, {"qty": 4, "id": 2}]
    before: Any = {
        "table": pa.Table.from_pylist(old),
        "batch": pa.RecordBatch.from_pylist(old),
        "structs": pa.array([old[0], None]),
        "dicts": [old[0], None],
    }[form_of_before]
    diffs.publish_rows(TABLE, Op.UPDATE, rows, ["id"], before=before)
    second: tuple[Any, Any] = (
        ({}, {}) if form_of_before in ("table", "batch") else (None, {"id": 2, "qty": 4})
    )
    assert images(diffs) == [({"qty": 2}, {"qty": 3}), second]


@pytest.mark.parametrize(
    ("op", "rows", "before", "said"),
    [
        (Op.INSERT, [{"id": 1}], [{"id": 1}], "have no row before them"),
        (Op.READ, [{"id": 1}], [None], "have no row before them"),
        (Op.UPDATE, [{"id": 1}], [], "1 rows .* came with 0 rows before"),
        (Op.UPDATE, [{"id": 1, "qty": 2}], [{"id": 1}], "before row 0 .* lacks column 'qty'"),
        (Op.UPDATE, [{"id": 1}], [{"id": None}], "'id' .* is null"),
        (Op.DELETE, [{"id": 1}], [{"id": 2, "qty": 1}], "Row 0 .* deletes another key"),
        (Op.UPDATE, [{"id": 1, "q": 2}], [{"id": 1, "q": "x"}], "'q' .* cannot be made one type"),
        (
            Op.UPDATE,
            pa.table({"id": [1], "qty": [2]}),
            pa.table({"id": [1], "qty": ["x"]}),
            "'qty' .* is string in the old rows",
        ),
        (
            Op.UPDATE,
            pa.table({"id": [1], "qty": [2]}),
            pa.table({"id": [1]}),
            "other columns: id and id, qty",
        ),
        (Op.UPDATE, pa.table({"id": [1]}), [{"id": "x"}], "do not fit their columns"),
        (Op.UPDATE, [{"id": 1}], [5], "one of them is not"),
        (Op.UPDATE, [5], [{"id": 1}], "one of them is not"),
        (Op.UPDATE, [{"id": 1}], 5, "come as lists"),
        (Op.UPDATE, 5, [{"id": 1}], "come as lists"),
    ],
)
def test_rows_before_that_do_not_fit_are_refused_by_name(
    diffs: LogAccess, op: Op, rows: Any, before: Any, said: str
) -> None:
    with pytest.raises(InvalidRows, match=said):
        diffs.publish_rows(TABLE, op, rows, ["id"], before=before)
    assert images(diffs) == []


def test_rows_that_no_route_takes_are_refused_or_dropped_as_said(log: LogAccess) -> None:
    log.create_topic("inserts")
    log.add_route("inserts", Route(TABLE, frozenset({Op.INSERT})))
    rows = [{"id": 1}, {"id": 2}]
    with pytest.raises(UnknownRoute, match=r"2 of 2 changes .* unrouted=drop"):
        log.publish_rows(TABLE, Op.DELETE, rows, ["id"])
    assert log.publish_rows(TABLE, Op.DELETE, rows, ["id"], unrouted=Unrouted.DROP) == ()
    assert len(log.publish_rows(TABLE, Op.INSERT, rows, ["id"])) == 2
    log.drop_route("inserts", TABLE)
    with pytest.raises(UnknownRoute, match="No topic has a route"):
        log.publish_rows(TABLE, Op.INSERT, rows, ["id"])
    dropped = log.publish_rows(TABLE, Op.INSERT, rows, ["id"], unrouted=Unrouted.DROP)
    assert dropped == ()


@pytest.mark.parametrize("unrouted", ["keep", None, 5])
def test_what_becomes_of_unrouted_rows_is_one_of_two_words(log: LogAccess, unrouted: Any) -> None:
    log.create_topic("all")
    log.add_route("all", Route(TABLE, ALL))
    with pytest.raises(InvalidRequest):
        log.publish_rows(TABLE, Op.INSERT, [{"id": 1}], ["id"], unrouted=unrouted)
    dropped: Any = "drop"
    assert log.publish_rows("no.route", Op.INSERT, [{"id": 1}], ["id"], unrouted=dropped) == ()
    assert log.offsets("all")[0].next_offset == 0


def test_rows_that_a_filter_leaves_out_have_a_route(log: LogAccess) -> None:
    log.create_topic("large")
    log.add_route("large", Route(TABLE, ALL, parse_filter("qty > 100")))
    assert log.publish_rows(TABLE, Op.INSERT, [{"id": 1, "qty": 1}], ["id"]) == ()


def test_a_route_with_expressions_and_columns_is_the_same_wherever_the_log_is(
    log: LogAccess,
) -> None:
    log.create_topic("people")
    route = Route(
        "shop.people",
        ALL,
        partition_by=parse_partition_by("region, lower(city)"),
        columns=("id", "city"),
    )
    assert log.add_route("people", route).routes == (route,)
    assert log.topic("people").routes == (route,)
    assert [each for _, each in log.routing_plan().routes_of("shop.people")] == [route]


@pytest.mark.parametrize(
    ("columns", "payload"),
    [((), PayloadMode.FULL), (("a", "a"), PayloadMode.FULL), (("a",), PayloadMode.KEY)],
)
def test_columns_that_say_nothing_are_refused(
    log: LogAccess, columns: tuple[str, ...], payload: PayloadMode
) -> None:
    log.create_topic("t")
    with pytest.raises(InvalidSetting, match="columns"):
        log.add_route("t", Route(TABLE, ALL, payload=payload, columns=columns))
