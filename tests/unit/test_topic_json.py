"""Topics as they are stored: older versions stay readable."""

from __future__ import annotations

from dataclasses import replace

import pytest

from duolog.errors import UnsupportedFormat
from duolog.log.model import Op, PayloadMode, Retention, Route, Topic, TopicSettings
from duolog.log.names import LONGEST_SECONDS, MOST_BYTES
from duolog.log.routing.filter.parse import parse_filter, parse_partition_by
from duolog.log.topic_json import topic_from_bytes, topic_to_bytes

TOPIC = Topic(
    7,
    "orders",
    TopicSettings(alias="o", partitions=3, retention=Retention(60.5, 1000)),
    (
        Route("shop.orders", frozenset({Op.INSERT, Op.DELETE})),
        Route(
            "shop.items",
            frozenset({Op.UPDATE}),
            parse_filter("amount > 10"),
            PayloadMode.DIFF,
            ("region",),
        ),
    ),
    1000,
    2000,
)
OLD = (
    b'{"v":1,"id":7,"name":"orders","settings":{"alias":"o","partitions":3,"retention":{"secon'
    b'ds":60.5,"max_bytes":1000},"key_format":"json","value_format":"json","envelope":"flat","'
    b'tombstones_on_delete":true,"kafka_topic":null,"dedup_window_seconds":null},"routes":[{"t'
    b'able":"shop.orders","ops":[1,3],"filter":null,"payload":1,"partition_by":[]},{"table":"s'
    b'hop.items","ops":[2],"filter":{"text":"amount > 10","tree":{"v":1,"filter":{"node":"comp'
    b'arison","op":">","left":{"node":"column","side":"row","path":["amount"]},"right":{"node"'
    b':"constant","value":10}}}},"payload":3,"partition_by":["region"]}],"created_at_ms":1000,'
    b'"updated_at_ms":2000}'
)


def test_a_topic_is_stored_whole() -> None:
    assert topic_from_bytes(topic_to_bytes(TOPIC)) == TOPIC


def test_the_bytes_of_version_1_stay_readable() -> None:
    assert topic_from_bytes(OLD) == TOPIC


def test_settings_that_came_later_have_their_defaults() -> None:
    assert topic_from_bytes(OLD.replace(b'"tombstones_on_delete":true,', b"")) == TOPIC


def test_that_retention_does_not_wait_is_stored() -> None:
    settings = replace(TOPIC.settings, retention=Retention(60.5, None, waits_for_mirror=False))
    topic = replace(TOPIC, settings=settings)
    stored = topic_to_bytes(topic)
    assert stored.startswith(b'{"v":3,')
    assert topic_from_bytes(stored) == topic


def test_a_newer_version_is_refused() -> None:
    with pytest.raises(UnsupportedFormat, match="newer"):
        topic_from_bytes(OLD.replace(b'{"v":1,"id"', b'{"v":4,"id"'))


def test_the_bytes_of_version_2_stay_readable() -> None:
    waits = b'"retention":{"seconds":60.5,"max_bytes":1000,"waits_for_mirror":true}'
    older = OLD.replace(b'{"v":1,"id"', b'{"v":2,"id"')
    older = older.replace(b'"retention":{"seconds":60.5,"max_bytes":1000}', waits)
    assert older != OLD
    assert topic_from_bytes(older) == TOPIC


def test_expressions_and_columns_of_a_route_are_stored() -> None:
    route = Route(
        "shop.orders",
        frozenset({Op.INSERT}),
        partition_by=parse_partition_by("region, lower(city)"),
        columns=("id", "item"),
    )
    topic = replace(TOPIC, routes=(route,))
    assert topic_from_bytes(topic_to_bytes(topic)) == topic


def test_an_expression_of_a_newer_duolog_is_refused() -> None:
    route = Route("t", frozenset({Op.INSERT}), partition_by=parse_partition_by("lower(city)"))
    stored = topic_to_bytes(replace(TOPIC, routes=(route,)))
    with pytest.raises(UnsupportedFormat, match="fold"):
        topic_from_bytes(stored.replace(b'"function":"lower"', b'"function":"fold"'))


def test_numbers_that_an_older_duolog_took_are_bounded() -> None:
    """It could not work with them: one such topic ended retention for all."""
    large = TOPIC.settings
    large = replace(large, retention=Retention(1e306, 10**30), dedup_window_seconds=1e306)
    read = topic_from_bytes(topic_to_bytes(replace(TOPIC, settings=large)))
    assert read.retention == Retention(LONGEST_SECONDS, MOST_BYTES)
    assert read.settings.dedup_window_seconds == LONGEST_SECONDS
