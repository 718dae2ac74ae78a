"""From changes to records: which, where, in which order, and how many."""

from __future__ import annotations

import json
import pickle
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duolog.errors import InvalidRows, InvalidSetting
from duolog.log.batch import RECORD_SCHEMA
from duolog.log.model import Envelope, Format, Op, PayloadMode, Route, Topic, TopicSettings
from duolog.log.routing.changes import Changes
from duolog.log.routing.codec import Part, Subject
from duolog.log.routing.filter.parse import parse_filter
from duolog.log.routing.json_codec import JsonCodec
from duolog.log.routing.murmur2 import partition_of_keys
from duolog.log.routing.plan import RoutingPlan
from duolog.log.routing.prepare import BUILT_IN, prepare
from duolog.log.routing.route import RouteCounts, Routed, route, route_prepared

INSERT, UPDATE, DELETE, READ = Op.INSERT, Op.UPDATE, Op.DELETE, Op.READ
ALL = frozenset({INSERT, UPDATE, DELETE})
COLUMNS = pa.schema([("id", pa.int64()), ("qty", pa.int64()), ("note", pa.string())])
FLAT = TopicSettings()
DEBEZIUM = TopicSettings(envelope=Envelope.DEBEZIUM)


def topic(number: int, *routes: Route, settings: TopicSettings = FLAT) -> Topic:
    return Topic(number, f"topic{number}", settings, routes, 0, 0)


def orders(ops: frozenset[Op] = ALL, **other: Any) -> Route:
    return Route("orders", ops, **other)


@dataclass
class Row:
    """One change, as the tests write it."""

    op: Op
    new: dict[str, Any]
    old: dict[str, Any]
    known: bool = True


def changes_of(rows: list[Row]) -> Changes:
    return Changes.of(
        "orders",
        ["id"],
        op=pa.array([row.op for row in rows], pa.int8()),
        after=pa.RecordBatch.from_pylist([row.new for row in rows], schema=COLUMNS),
        before=pa.RecordBatch.from_pylist([row.old for row in rows], schema=COLUMNS),
        before_known=pa.array([row.known for row in rows], pa.bool_()),
        ts=pa.array(range(len(rows)), pa.int64()),
    )


def inserted(*ids: int) -> Changes:
    rows = [{"id": number, "qty": number, "note": None} for number in ids]
    return Changes.from_rows("orders", INSERT, rows, ["id"], 1)


def written(routed: Routed, topic_id: int) -> dict[int, list[dict[str, Any]]]:
    """The records of one topic by partition."""
    found = {}
    for part in routed.records:
        assert part.records.schema.equals(RECORD_SCHEMA)
        part.records.validate(full=True)
        if part.topic_id == topic_id:
            assert part.partition not in found
            found[part.partition] = part.records.to_pylist()
    return found


def values(routed: Routed, topic_id: int = 1) -> list[Any]:
    return [
        record["value"] and json.loads(record["value"])
        for records in written(routed, topic_id).values()
        for record in records
    ]


def ids(routed: Routed, topic_id: int = 1) -> list[int]:
    return [value["id"] for value in values(routed, topic_id)]


def test_records_carry_what_happened_where_and_when() -> None:
    changes = Changes.from_rows("orders", READ, [{"id": 1}], ["id"], 77)
    (part,) = route(changes, RoutingPlan.of([topic(9, orders())])).records
    assert (part.topic_id, part.partition) == (9, 0)
    assert part.records.to_pylist() == [
        {
            "ts": 77,
            "key": b'{"id":1}',
            "value": b'{"_table":"orders","id":1}',
            "headers": None,
            "op": int(READ),
            "table": "orders",
            "payload": int(PayloadMode.FULL),
        }
    ]


def test_changes_that_no_route_wants_are_counted() -> None:
    plan = RoutingPlan.of([topic(1, orders(frozenset({DELETE}))), topic(2, Route("other", ALL))])
    routed = route(inserted(1, 2), plan)
    assert (routed.records, routed.counts, routed.unrouted) == ([], {1: RouteCounts(0, 0)}, 2)
    assert route(inserted(1), RoutingPlan.of([])).unrouted == 1


def test_no_changes_become_no_records() -> None:
    empty = Changes.from_rows("orders", INSERT, COLUMNS.empty_table(), ["id"], 1)
    routed = route(empty, RoutingPlan.of([topic(1, orders(), settings=DEBEZIUM)]))
    assert (routed.records, routed.counts, routed.unrouted) == ([], {1: RouteCounts(0, 0)}, 0)


def test_filtered_changes_are_counted_and_are_not_unrouted() -> None:
    some = orders(filter=parse_filter("qty >= 2"))
    routed = route(inserted(1, 2, 3), RoutingPlan.of([topic(1, some), topic(2, orders())]))
    assert ids(routed, 1) == [2, 3]
    assert ids(routed, 2) == [1, 2, 3]
    assert routed.counts == {1: RouteCounts(2, 1), 2: RouteCounts(3, 0)}
    assert routed.unrouted == 0


def test_a_filter_sees_old_rows_only_where_they_are_known() -> None:
    row = {"id": 1, "qty": 1, "note": None}
    made = [
        Row(UPDATE, row, row, known=True),
        Row(UPDATE, row, row, known=False),
        Row(INSERT, row, row),
        Row(DELETE, row, row, known=True),
        Row(DELETE, row, row, known=False),
    ]
    for text, kept in (
        ("before.qty = 1", [0, 3]),
        ("before.qty IS NULL", [1, 2, 4]),
        ("qty = 1", [0, 1, 2, 3]),
        ("qty IS NULL", [4]),
        ("id = 1", [0, 1, 2, 3, 4]),
        ("op = 'delete' AND qty = 1", [3]),
    ):
        plan = RoutingPlan.of([topic(1, orders(filter=parse_filter(text)))])
        found = written(route(changes_of(made), plan), 1)
        assert [record["ts"] for record in found[0]] == kept, text


def test_an_update_of_the_key_is_a_delete_and_an_insert_before_filters_apply() -> None:
    moved = Row(UPDATE, {"id": 2, "qty": 5, "note": "new"}, {"id": 1, "qty": 0, "note": "old"})
    stays = Row(UPDATE, {"id": 3, "qty": 5, "note": None}, {"id": 9, "qty": 5, "note": None}, False)
    everything = topic(1, orders())
    some = topic(2, orders(filter=parse_filter("qty > 1")))
    routed = route(changes_of([stays, moved, stays]), RoutingPlan.of([everything, some]))
    records = written(routed, 1)[0]
    assert [(Op(r["op"]), r["key"], r["ts"]) for r in records] == [
        (UPDATE, b'{"id":3}', 0),
        (DELETE, b'{"id":1}', 1),
        (INSERT, b'{"id":2}', 1),
        (UPDATE, b'{"id":3}', 2),
    ]
    assert [json.loads(r["value"])["note"] for r in records] == [None, "old", "new", None]
    assert [Op(r["op"]) for r in written(routed, 2)[0]] == [UPDATE, INSERT, UPDATE]
    assert routed.counts == {1: RouteCounts(4, 0), 2: RouteCounts(3, 1)}


def test_routes_of_one_topic_keep_the_order_of_the_changes() -> None:
    row = {"id": 1, "qty": 1, "note": None}
    made = [Row(op, row, row) for op in (INSERT, DELETE, INSERT, UPDATE, DELETE)]
    one = topic(
        1,
        orders(frozenset({INSERT})),
        orders(frozenset({DELETE}), payload=PayloadMode.KEY),
        orders(frozenset({UPDATE}), payload=PayloadMode.DIFF),
        settings=DEBEZIUM,
    )
    records = written(route(changes_of(made), RoutingPlan.of([one])), 1)[0]
    assert [(r["ts"], Op(r["op"]), r["value"] is None) for r in records] == [
        (0, INSERT, False),
        (1, DELETE, False),
        (1, DELETE, True),
        (2, INSERT, False),
        (3, UPDATE, False),
        (4, DELETE, False),
        (4, DELETE, True),
    ]
    assert [PayloadMode(r["payload"]).word for r in records if r["value"]] == [
        "full",
        "key",
        "full",
        "diff",
        "key",
    ]


def test_records_without_a_key_go_by_turn() -> None:
    changes = Changes.from_rows("orders", INSERT, [{"id": 1}, {"id": 2}], [], 1)
    plan = RoutingPlan.of([topic(1, orders(), settings=TopicSettings(partitions=3))])
    for turn in range(4):
        (part,) = route(changes, plan, turn=turn).records
        assert (part.partition, len(part.records)) == (turn % 3, 2)
        assert part.records.column("key").null_count == 2


def test_a_route_can_partition_by_other_columns_than_the_key() -> None:
    rows = [{"id": n, "region": "north" if n % 2 else "south"} for n in range(20)]
    changes = Changes.from_rows("orders", INSERT, rows, ["id"], 1)
    by_region = orders(partition_by=("region",))
    plan = RoutingPlan.of([topic(1, by_region, settings=TopicSettings(partitions=8))])
    found = written(route(changes, plan), 1)
    keys = pa.array([b'{"region":"south"}', b'{"region":"north"}'])
    south, north = partition_of_keys(keys, 8).tolist()
    assert south != north
    assert set(found) == {south, north}
    assert {record["key"] for record in found[north]} == {b'{"id":%d}' % n for n in range(1, 20, 2)}


def test_partition_columns_that_are_not_there_are_refused() -> None:
    plan = RoutingPlan.of([topic(1, orders(partition_by=("region",)))])
    with pytest.raises(InvalidRows, match="by 'region', which is not among its columns"):
        route(inserted(1), plan)


def test_deletes_of_unknown_rows_are_not_placed_by_columns_that_nobody_knows() -> None:
    row = {"id": 1, "qty": 1, "note": None}
    made = changes_of([Row(DELETE, row, row, known=False)])
    with pytest.raises(InvalidRows, match="of 1 deletes only the key is known"):
        route(made, RoutingPlan.of([topic(1, orders(partition_by=("qty",)))]))
    routed = route(made, RoutingPlan.of([topic(1, orders(partition_by=("id",)))]))
    assert routed.counts == {1: RouteCounts(1, 0)}


def test_a_format_without_a_codec_is_refused_by_name() -> None:
    only_raw = {Format.RAW: BUILT_IN[Format.RAW]}
    with pytest.raises(
        InvalidSetting, match=r"value of table 'orders' in topic 'topic1' .* 'json'"
    ):
        route(inserted(1), RoutingPlan.of([topic(1, orders())]), only_raw)


def test_codecs_are_told_apart_by_what_they_encode() -> None:
    asked: list[Subject] = []

    class Noting(JsonCodec):
        def prepare(self, schema: pa.Schema, subject: Subject) -> Any:
            asked.append(subject)
            return super().prepare(schema, subject)

    plan = RoutingPlan.of([topic(1, orders(partition_by=("qty",)))])
    prepare(plan, "orders", COLUMNS, ("id",), {Format.JSON: Noting()})
    assert {subject.part for subject in asked} == set(Part)
    assert {(subject.topic, subject.table) for subject in asked} == {("topic1", "orders")}


def test_what_the_driver_prepared_works_in_a_task() -> None:
    plan = RoutingPlan.of([topic(1, orders(filter=parse_filter("qty > 1")), settings=DEBEZIUM)])
    prepared = prepare(plan, "orders", inserted(1).schema, ("id",))
    travelled = pickle.loads(pickle.dumps(prepared))
    here, there = route(inserted(1, 2), plan), route_prepared(inserted(1, 2), travelled)
    assert values(there) == values(here)
    assert there.counts == here.counts


def test_rows_of_another_schema_than_prepared_for_are_refused() -> None:
    plan = RoutingPlan.of([topic(1, orders())])
    prepared = prepare(plan, "orders", pa.schema([("id", pa.int64())]), ("id",))
    with pytest.raises(InvalidRows, match="Prepare the routes again"):
        route_prepared(inserted(1), prepared)
    with pytest.raises(InvalidRows, match="Prepare the routes again"):
        route_prepared(Changes.from_rows("other", INSERT, [{"id": 1}], ["id"], 1), prepared)


def test_more_than_arrow_can_hold_is_refused_by_name() -> None:
    class Bursting(JsonCodec):
        def prepare(self, schema: pa.Schema, subject: Subject) -> Any:
            return self

        def encode(self, rows: pa.StructArray) -> pa.BinaryArray:
            raise pa.ArrowCapacityError("array cannot contain more than 2147483646 bytes")

    plan = RoutingPlan.of([topic(1, orders())])
    with pytest.raises(InvalidRows, match=r"more than 2 GiB .* 'topic1'. Hand over fewer rows"):
        route(inserted(1), plan, {Format.JSON: Bursting()})


def test_routes_of_one_topic_that_are_too_much_together_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = {"id": 1, "qty": 1, "note": None}
    made = changes_of([Row(INSERT, row, row), Row(DELETE, row, row)])
    plan = RoutingPlan.of([topic(1, orders(frozenset({INSERT})), orders(frozenset({DELETE})))])
    monkeypatch.setattr("duolog.log.routing.drafts.MAX_BATCH_BYTES", 100)
    with pytest.raises(InvalidRows, match="2 changes of table 'orders' become more than 2 GiB"):
        route(made, plan)


# The same in plain Python, a row at a time.

ROW = st.tuples(
    st.integers(0, 3),
    st.none() | st.integers(0, 3),
    st.none() | st.sampled_from(["", 'a"b', "é"]),
).map(lambda values: dict(zip(COLUMNS.names, values, strict=True)))
ROWS = st.lists(
    st.builds(Row, st.sampled_from([INSERT, UPDATE, DELETE, READ]), ROW, ROW, st.booleans()),
    max_size=12,
)
OPS = st.frozensets(st.sampled_from([INSERT, UPDATE, DELETE]), min_size=1)
ROUTES = st.builds(
    Route,
    st.sampled_from(["orders", "orders", "people"]),
    OPS,
    st.none() | st.just(parse_filter("qty >= 2")),
    st.sampled_from([PayloadMode.FULL, PayloadMode.KEY, PayloadMode.DIFF]),
    st.sampled_from([(), (), ("id",)]),
)
SETTINGS = st.builds(
    TopicSettings, partitions=st.sampled_from([1, 3]), envelope=st.sampled_from(Envelope)
)


@st.composite
def topics(draw: st.DrawFn) -> list[Topic]:
    made = []
    for number in range(draw(st.integers(0, 3))):
        routes: list[Route] = []
        for candidate in draw(st.lists(ROUTES, max_size=3)):
            taken = {op for route in routes if route.table == candidate.table for op in route.ops}
            if candidate.ops - taken:
                routes.append(replace(candidate, ops=candidate.ops - taken))
        made.append(topic(number, *routes, settings=draw(SETTINGS)))
    return made


def text(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def settled(rows: list[Row]) -> list[tuple[int, Row]]:
    """With updates of the key as two changes; inserts have no old row."""
    made = []
    for ts, row in enumerate(rows):
        if row.op is UPDATE and row.known and row.old["id"] != row.new["id"]:
            made.append((ts, replace(row, op=DELETE)))
            made.append((ts, replace(row, op=INSERT, known=False)))
        else:
            made.append((ts, replace(row, known=row.known and row.op in (UPDATE, DELETE))))
    return made


def images(row: Row) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """Before and after."""
    if row.op is DELETE:
        return (row.old if row.known else {"id": row.new["id"]}), None
    return (row.old if row.known else None), row.new


def value_of(row: Row, route: Route, envelope: Envelope, ts: int) -> bytes:
    before, after = images(row)
    subject = after if after is not None else before
    assert subject is not None
    key = {"id": subject["id"]}
    if route.payload is PayloadMode.KEY:
        before, after = before and key, after and key
    if route.payload is PayloadMode.DIFF and before is not None and after is not None:
        changed = [name for name in after if before[name] != after[name]]
        base = key if envelope is Envelope.DEBEZIUM else {}
        before, after = ({**base, **{n: image[n] for n in changed}} for image in (before, after))
    if envelope is Envelope.DEBEZIUM:
        source = {"connector": "duolog", "table": "orders"}
        word = {INSERT: "c", UPDATE: "u", DELETE: "d", READ: "r"}[row.op]
        whole = {"before": before, "after": after, "source": source, "op": word, "ts_ms": ts}
        return text(whole)
    if route.payload is PayloadMode.DIFF:
        return text({"_table": "orders", **key, "before": before, "after": after})
    return text({"_table": "orders", **(after if after is not None else before or {})})


def passes(row: Row, route: Route) -> bool:
    before, after = images(row)
    subject = after if after is not None else before or {}
    qty = subject.get("qty")
    return route.filter is None or (qty is not None and qty >= 2)


Expected = dict[tuple[int, int], list[tuple[int, bytes, bytes | None, int, int]]]


def routed_by_hand(
    rows: list[Row], made: list[Topic]
) -> tuple[Expected, dict[int, RouteCounts], int]:
    records: Expected = defaultdict(list)
    counts = {
        one.id: RouteCounts(0, 0)
        for one in made
        if any(route.table == "orders" for route in one.routes)
    }
    unrouted = 0
    for ts, row in settled(rows):
        wanted = False
        for one in made:
            for candidate in one.routes:
                op = INSERT if row.op is READ else row.op
                if candidate.table != "orders" or op not in candidate.ops:
                    continue
                wanted = True
                count = counts[one.id]
                if not passes(row, candidate):
                    counts[one.id] = replace(count, filtered_out=count.filtered_out + 1)
                    continue
                counts[one.id] = replace(count, routed=count.routed + 1)
                before, after = images(row)
                key = text({"id": (after if after is not None else before or {})["id"]})
                (partition,) = partition_of_keys(pa.array([key]), one.partitions).tolist()
                value = value_of(row, candidate, one.settings.envelope, ts)
                part = records[one.id, partition]
                part.append((ts, key, value, int(row.op), int(candidate.payload)))
                if row.op is DELETE and one.settings.envelope is Envelope.DEBEZIUM:
                    part.append((ts, key, None, int(row.op), int(candidate.payload)))
        unrouted += not wanted
    return dict(records), counts, unrouted


@settings(max_examples=150, deadline=None)
@given(ROWS, topics())
def test_whole_columns_route_as_rows_do_one_by_one(rows: list[Row], made: list[Topic]) -> None:
    routed = route(changes_of(rows), RoutingPlan.of(made))
    records, counts, unrouted = routed_by_hand(rows, made)
    found = {
        (part.topic_id, part.partition): [
            (r["ts"], r["key"], r["value"], r["op"], r["payload"]) for r in part.records.to_pylist()
        ]
        for part in routed.records
    }
    assert found == records
    assert routed.counts == counts
    assert routed.unrouted == unrouted


def test_a_topic_may_have_its_64_bit_integers_as_strings_in_json() -> None:
    settings = TopicSettings(json_int64_as_string=True)
    plan = RoutingPlan.of([topic(1, orders(), settings=settings), topic(2, orders())])
    routed = route(inserted(7), plan)
    keys = [part.records.column("key").to_pylist() for part in routed.records]
    values = [json.loads(part.records.column("value")[0].as_py())["id"] for part in routed.records]
    assert keys == [[b'{"id":"7"}'], [b'{"id":7}']]
    assert values == ["7", 7]
