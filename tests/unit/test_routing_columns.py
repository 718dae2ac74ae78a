"""Routes that name their columns, and routes that partition by expressions."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pyarrow as pa
import pytest

from duolog.errors import InvalidRows
from duolog.log.model import Envelope, Format, Op, PayloadMode, Route, Topic, TopicSettings
from duolog.log.routing.changes import Changes
from duolog.log.routing.filter.parse import parse_filter, parse_partition_by
from duolog.log.routing.murmur2_scalar import partition_of_key
from duolog.log.routing.plan import RoutingPlan
from duolog.log.routing.prepare import prepare
from duolog.log.routing.route import Routed, route, route_prepared

ALL = frozenset({Op.INSERT, Op.UPDATE, Op.DELETE})
SECRET = "+49 30 1234567"
NEW = {"id": 1, "city": "Berlin", "phone": SECRET, "qty": 3}
OLD = {"id": 1, "city": "BERLIN", "phone": "+49 89 7654321", "qty": 2}


def topic(route_: Route, **settings: Any) -> Topic:
    return Topic(1, "people", TopicSettings(**settings), (route_,), 0, 0)


def routed(
    changes: Changes, route_: Route, **settings: Any
) -> list[tuple[int, dict[str, Any] | None]]:
    """Each record's partition and value."""
    found = route(changes, RoutingPlan.of([topic(route_, **settings)]))
    return [
        (share.partition, None if value is None else json.loads(value))
        for share in found.records
        for value in share.records.column("value").to_pylist()
    ]


def changed(op: Op = Op.UPDATE, *, before: dict[str, Any] | None = OLD) -> Changes:
    given = None if op is Op.INSERT else [before]
    return Changes.from_rows("shop.people", op, [NEW], ["id"], 1, given)


def people(**other: Any) -> Route:
    return Route("shop.people", ALL, **other)


@pytest.mark.parametrize("envelope", Envelope)
@pytest.mark.parametrize("payload", [PayloadMode.FULL, PayloadMode.DIFF])
@pytest.mark.parametrize("op", [Op.INSERT, Op.UPDATE, Op.DELETE])
def test_columns_that_are_left_out_are_in_no_part_of_a_value(
    op: Op, payload: PayloadMode, envelope: Envelope
) -> None:
    values = routed(changed(op), people(payload=payload, columns=("city",)), envelope=envelope)
    text = json.dumps(values)
    assert "phone" not in text
    assert "7654321" not in text
    assert SECRET not in text
    assert "erlin" in text.lower()


def test_the_key_is_among_the_columns_in_the_tables_order() -> None:
    ((_, value),) = routed(changed(Op.INSERT), people(columns=("qty", "city")))
    assert json.dumps(value) == '{"_table": "shop.people", "id": 1, "city": "Berlin", "qty": 3}'


def test_filters_and_partitions_see_columns_that_are_left_out() -> None:
    hidden = people(
        columns=("city",),
        filter=parse_filter("qty = 3 AND before.qty = 2"),
        partition_by=("phone",),
    )
    ((partition, _),) = routed(changed(), hidden, partitions=7)
    assert partition == partition_of_key(b'{"phone":"%b"}' % SECRET.encode(), 7)


def test_an_update_of_a_left_out_column_is_a_record_that_shows_no_change() -> None:
    old = {**NEW, "phone": "other"}
    diff = people(payload=PayloadMode.DIFF, columns=("city",))
    ((_, value),) = routed(changed(before=old), diff)
    assert value == {"_table": "shop.people", "id": 1, "before": {}, "after": {}}


def test_columns_that_rows_lack_are_refused_by_name() -> None:
    with pytest.raises(InvalidRows, match=r"'town' of table 'shop\.people'"):
        routed(changed(), people(columns=("town",)))


def test_an_expression_chooses_the_partition() -> None:
    by_city = people(partition_by=parse_partition_by("lower(city)"))
    rows = [{"id": n, "city": city} for n, city in enumerate(("Berlin", "BERLIN", "Rome"))]
    changes = Changes.from_rows("shop.people", Op.INSERT, rows, ["id"], 1)
    found = {
        value["id"]: partition
        for partition, value in routed(changes, by_city, partitions=31)
        if value
    }
    assert found[0] == found[1] == partition_of_key(b'{"expression_1":"berlin"}', 31)
    assert found[2] == partition_of_key(b'{"expression_1":"rome"}', 31)
    assert found[0] != found[2]


def test_columns_are_placed_as_before_there_were_expressions() -> None:
    ((partition, _),) = routed(changed(), people(partition_by=("city", "qty")), partitions=97)
    assert partition == partition_of_key(b'{"city":"Berlin","qty":3}', 97)


def test_a_delete_goes_where_its_old_row_went() -> None:
    by_city = people(partition_by=parse_partition_by("lower(city)"))
    inserted = Changes.from_rows("shop.people", Op.INSERT, [OLD], ["id"], 1)
    deleted = Changes.from_rows("shop.people", Op.DELETE, [OLD], ["id"], 2)
    first = routed(inserted, by_city, partitions=97)[0][0]
    assert first == routed(deleted, by_city, partitions=97)[0][0]


def only_key(partition_by: str) -> Routed:
    """A delete of which only the key is known."""
    row = pa.RecordBatch.from_pylist([NEW])
    changes = Changes.of(
        "shop.people",
        ["id"],
        op=pa.array([Op.DELETE], pa.int8()),
        after=row,
        before=row,
        before_known=pa.array([False]),
        ts=pa.array([1], pa.int64()),
    )
    placed = people(partition_by=parse_partition_by(partition_by))
    return route(changes, RoutingPlan.of([topic(placed, partitions=5)]))


def test_expressions_of_the_key_place_deletes_of_unknown_rows() -> None:
    (share,) = only_key("id % 2").records
    assert share.partition == partition_of_key(b'{"expression_1":1}', 5)
    with pytest.raises(InvalidRows, match=r"partitions table 'shop.people' by lower\(city\)"):
        only_key("lower(city)")


def test_an_expression_that_does_not_fit_the_rows_names_its_place() -> None:
    with pytest.raises(InvalidRows, match=r"expression `lower\(town\)`"):
        routed(changed(), people(partition_by=parse_partition_by("lower(town)")))


def test_an_expressions_name_is_no_columns_name() -> None:
    rows = [{"id": 1, "expression_1": "x", "expression_2": "y"}]
    changes = Changes.from_rows("shop.people", Op.INSERT, rows, ["id"], 1)
    placed = people(partition_by=parse_partition_by("expression_2, upper(expression_1)"))
    ((partition, _),) = routed(changes, placed, partitions=97)
    assert partition == partition_of_key(b'{"expression_2":"y","expression_2_":"X"}', 97)


def test_a_raw_key_takes_one_expression() -> None:
    rows = [{"k": "Berlin", "value": "v"}]
    changes = Changes.from_rows("shop.people", Op.INSERT, rows, ["k"], 1)
    raw = topic(
        people(partition_by=parse_partition_by("lower(k)")),
        partitions=97,
        key_format=Format.RAW,
        value_format=Format.RAW,
    )
    (share,) = route(changes, RoutingPlan.of([raw])).records
    assert share.partition == partition_of_key(b"berlin", 97)


def test_what_was_prepared_with_expressions_travels() -> None:
    placed = people(partition_by=parse_partition_by("lower(city)"), columns=("city",))
    changes = changed()
    prepared = prepare(
        RoutingPlan.of([topic(placed, partitions=9)]), "shop.people", changes.schema, ("id",)
    )
    travelled = pickle.loads(pickle.dumps(prepared))
    (here,), (there,) = (route_prepared(changes, each).records for each in (prepared, travelled))
    assert (here.partition, here.records) == (there.partition, there.records)
