"""Topics and routes, on every form of a log."""

from __future__ import annotations

from dataclasses import replace

import pytest

from duolog.errors import (
    InvalidFilter,
    InvalidName,
    InvalidSetting,
    NameTaken,
    RouteTaken,
    UnknownPartition,
    UnknownRoute,
    UnknownTopic,
)
from duolog.log.access import LogAccess
from duolog.log.model import (
    Envelope,
    Expression,
    Filter,
    Format,
    Op,
    PayloadMode,
    Record,
    Retention,
    Route,
    Topic,
    TopicSettings,
)
from duolog.log.routing.filter.parse import parse_filter
from duolog.log.routing.filter.tree import Column, Constant, Like
from tests.contract.conftest import Form

UPSERTS = frozenset({Op.INSERT, Op.UPDATE})


def test_a_topic_is_found_by_name_alias_and_id(log: LogAccess) -> None:
    topic = log.create_topic("orders", TopicSettings(alias="o", partitions=3))
    assert topic == log.topic("orders") == log.topic("o") == log.topic(topic.id)
    assert topic == log.topic(str(topic.id))


def test_a_topic_named_like_a_number_comes_before_the_id(log: LogAccess) -> None:
    first = log.create_topic("first")
    named = log.create_topic(str(first.id))
    assert log.topic(str(first.id)) == named
    assert log.topic(first.id) == first


@pytest.mark.parametrize("reference", ["nope", 77, "77", None])
def test_an_unknown_topic_is_named(log: LogAccess, reference: str) -> None:
    log.create_topic("orders")
    with pytest.raises(UnknownTopic, match="orders"):
        log.topic(reference)


@pytest.mark.parametrize(
    "name", ["", "a b", "naïve", "a/b", "..", ".", "x" * 250, None, 3, "a\n", "a\0"]
)
def test_bad_names_are_refused(log: LogAccess, name: str) -> None:
    with pytest.raises(InvalidName):
        log.create_topic(name)
    with pytest.raises(InvalidName):
        log.create_topic("fine", TopicSettings(alias=name or "?"))


@pytest.mark.parametrize(
    "settings",
    [
        TopicSettings(partitions=0),
        TopicSettings(partitions=-1),
        TopicSettings(partitions=True),
        TopicSettings(partitions=1 << 20),
        TopicSettings(retention=Retention(seconds=-1)),
        TopicSettings(retention=Retention(seconds=0)),
        TopicSettings(retention=Retention(seconds=float("nan"))),
        TopicSettings(retention=Retention(max_bytes=-5)),
        TopicSettings(retention=Retention(max_bytes=0)),
        TopicSettings(dedup_window_seconds=0),
    ],
)
def test_bad_settings_are_refused(log: LogAccess, settings: TopicSettings) -> None:
    with pytest.raises(InvalidSetting):
        log.create_topic("orders", settings)
    assert log.topics() == ()


def test_names_and_aliases_are_unique_together(log: LogAccess) -> None:
    log.create_topic("orders", TopicSettings(alias="o"))
    for name, alias in [("orders", None), ("o", None), ("x", "orders"), ("x", "o"), ("x", "x")]:
        with pytest.raises(NameTaken):
            log.create_topic(name, TopicSettings(alias=alias))


def test_if_not_exists_gives_the_topic_that_is_there(log: LogAccess) -> None:
    topic = log.create_topic("orders", TopicSettings(partitions=2))
    assert log.create_topic("orders", if_not_exists=True) == topic
    with pytest.raises(NameTaken):
        log.create_topic("orders")


def test_times_of_creation_and_change(form: Form) -> None:
    log = form.open()
    topic = log.create_topic("orders")
    assert topic.created_at_ms == topic.updated_at_ms == form.clock.at_ms
    form.clock.advance(seconds=5)
    changed = log.set_retention("orders", Retention(seconds=60))
    assert changed.created_at_ms == topic.created_at_ms
    assert changed.updated_at_ms == topic.created_at_ms + 5000


def _route(table: str = "shop.orders", ops: frozenset[Op] = UPSERTS) -> Route:
    return Route(table, ops, parse_filter("amount > 10"), PayloadMode.DIFF, ("region",))


def test_a_new_route_has_no_pattern_that_takes_seconds_whichever_way_it_comes(
    log: LogAccess,
) -> None:
    log.create_topic("orders")
    tree = Like(Column("row", ("a",)), Constant("%" + "a%" * 40 + "b"), None, True)
    slow = replace(_route(), filter=Filter("a ILIKE …", tree))
    with pytest.raises(InvalidFilter, match="41 of these"):
        log.add_route("orders", slow)
    by_it = replace(_route(), partition_by=(Expression("a ILIKE …", tree),))
    with pytest.raises(InvalidFilter, match="41 of these"):
        log.add_route("orders", by_it)
    assert log.topic("orders").routes == ()


def test_everything_survives_a_restart(form: Form) -> None:
    log = form.open()
    everything = TopicSettings(
        alias="o",
        partitions=2,
        key_format=Format.RAW,
        value_format=Format.RAW,
        envelope=Envelope.DEBEZIUM,
        tombstones_on_delete=False,
        kafka_topic="shop.orders",
        dedup_window_seconds=1.5,
        json_int64_as_string=True,
    )
    log.create_topic("orders", everything)
    log.add_route("orders", _route())
    log.set_retention("orders", Retention(seconds=3600.5, max_bytes=1 << 30))
    topic = log.create_topic("other")
    before = log.topics()
    log = form.restart()
    assert log.topics() == before
    assert log.topic("orders").routes == (_route(),)
    assert log.create_topic("third").id > topic.id


def test_an_id_is_never_given_out_again(form: Form) -> None:
    log = form.open()
    dropped = log.create_topic("orders")
    log.drop_topic("orders")
    log = form.restart()
    assert log.create_topic("orders").id > dropped.id


def test_a_second_route_for_a_table_and_operation_is_refused(log: LogAccess) -> None:
    log.create_topic("orders")
    log.add_route("orders", Route("shop.orders", UPSERTS))
    with pytest.raises(RouteTaken, match="update"):
        log.add_route("orders", Route("shop.orders", frozenset({Op.UPDATE, Op.DELETE})))
    topic = log.add_route("orders", Route("shop.orders", frozenset({Op.DELETE})))
    assert len(topic.routes) == 2


@pytest.mark.parametrize(
    "route",
    [
        Route("t", frozenset()),
        Route("t", frozenset({Op.NONE})),
        Route("t", frozenset({Op.READ})),
        Route("t", UPSERTS, payload=PayloadMode.NONE),
    ],
)
def test_routes_without_sense_are_refused(log: LogAccess, route: Route) -> None:
    log.create_topic("orders")
    with pytest.raises(InvalidSetting):
        log.add_route("orders", route)


def test_a_route_is_dropped_whole_or_by_operation(log: LogAccess) -> None:
    log.create_topic("orders")
    log.add_route("orders", Route("shop.orders", UPSERTS))
    topic = log.drop_route("orders", "shop.orders", frozenset({Op.INSERT}))
    assert [route.ops for route in topic.routes] == [frozenset({Op.UPDATE})]
    assert log.drop_route("orders", "shop.orders").routes == ()
    with pytest.raises(UnknownRoute):
        log.drop_route("orders", "shop.orders")


def test_the_routing_plan_follows_the_routes(log: LogAccess) -> None:
    orders, audit = log.create_topic("orders"), log.create_topic("audit")
    log.add_route("orders", Route("shop.orders", UPSERTS))
    log.add_route("audit", Route("shop.orders", frozenset({Op.UPDATE, Op.DELETE})))

    def reached(op: Op) -> list[int]:
        return [topic.id for topic, _ in log.routing_plan().routes_for("shop.orders", op)]

    assert reached(Op.INSERT) == reached(Op.READ) == [orders.id]
    assert reached(Op.UPDATE) == [orders.id, audit.id]
    assert reached(Op.DELETE) == [audit.id]
    log.drop_topic("audit")
    assert reached(Op.DELETE) == []
    assert log.stats().routes_cached == 1


def test_stats_count_what_the_log_holds_now(form: Form) -> None:
    log = form.open()
    log.create_topic("orders", TopicSettings(partitions=2))
    log.create_topic("audit")
    log.publish("orders", [Record(b"%d" % number, partition=number % 2) for number in range(5)])
    log.ack("billing", "orders", 0, 0)
    log.ack("search", "orders", 0, 1)
    for opened in form.now_and_restarted(log):
        stats = opened.stats()
        size = sum(each.bytes for each in opened.offsets("orders"))
        held = (stats.topics, stats.partitions, stats.records, stats.bytes, stats.groups)
        assert held == (2, 3, 5, size, 2)
    opened.clear_topic("orders")
    opened.drop_topic("audit")
    opened.delete_group("billing")
    stats = opened.stats()
    held = (stats.topics, stats.partitions, stats.records, stats.bytes, stats.groups)
    assert held == (1, 2, 0, 0, 1)


@pytest.mark.parametrize(
    "settings",
    [
        TopicSettings(retention=Retention(seconds=1e306)),
        TopicSettings(retention=Retention(seconds=10**400)),
        TopicSettings(retention=Retention(max_bytes=2**63)),
        TopicSettings(dedup_window_seconds=1e306),
    ],
)
def test_numbers_that_nobody_can_work_with_are_refused(
    log: LogAccess, settings: TopicSettings
) -> None:
    with pytest.raises(InvalidSetting):
        log.create_topic("orders", settings)
    log.create_topic("orders")
    if settings.retention.is_limited:
        with pytest.raises(InvalidSetting):
            log.set_retention("orders", settings.retention)
    log.enforce_retention()


def test_an_unknown_topic_is_told_beside_how_many_others(log: LogAccess) -> None:
    for number in range(7):
        log.create_topic(f"t{number}")
    with pytest.raises(UnknownTopic, match="There are: t0, t1, t2, t3, t4 and 2 more"):
        log.topic("nobody")


def test_a_topic_grows_and_never_shrinks(log: LogAccess) -> None:
    log.create_topic("orders", TopicSettings(partitions=2))
    with pytest.raises(UnknownPartition):
        log.fetch("orders", 3, 0)
    assert log.set_partitions("orders", 4).partitions == 4
    assert log.fetch("orders", 3, 0).count == 0
    with pytest.raises(InvalidSetting):
        log.set_partitions("orders", 3)


def test_a_dropped_topic_takes_everything_along(form: Form) -> None:
    log = form.open()
    log.create_topic("orders")
    log.publish("orders", [Record(b"a"), Record(b"b")])
    log.ack("billing", "orders", 0)
    swept = log.drop_topic("orders")
    assert swept.messages_deleted == 2
    assert swept.bytes_freed > 0
    for opened in form.now_and_restarted(log):
        assert opened.topics() == ()
        assert opened.group_positions() == ()
    fresh: Topic = form.restart().create_topic("orders")
    assert form.restart().offsets(fresh.id)[0].next_offset == 0


def test_dropping_what_is_not_there(log: LogAccess) -> None:
    with pytest.raises(UnknownTopic):
        log.drop_topic("orders")
    assert log.drop_topic("orders", if_exists=True).messages_deleted == 0


def test_a_cleared_topic_counts_on_and_keeps_positions(form: Form) -> None:
    log = form.open()
    log.create_topic("orders")
    log.publish("orders", [Record(b"a"), Record(b"b")])
    log.ack("billing", "orders", 0)
    assert log.clear_topic("orders").messages_deleted == 2
    for opened in form.now_and_restarted(log):
        (offsets,) = opened.offsets("orders")
        assert (offsets.start, offsets.next_offset, offsets.bytes) == (2, 2, 0)
        assert offsets.last_offset is None
        position = opened.group_position("billing", "orders", 0)
        assert position is not None
        assert position.position == 1
    assert form.restart().publish("orders", Record(b"c"))[0].offset == 2
