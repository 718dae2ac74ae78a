"""Where reads begin and end in a real log."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import duolog
from duolog.connector.source.batch import batch_ranges
from duolog.connector.source.choice import chosen_places
from duolog.connector.source.options import SourceOptions
from duolog.connector.source.resolving import starts
from duolog.errors import DuologError, InvalidSetting, OffsetOutOfRange, UnknownTopic
from duolog.log import EmbeddedLog
from duolog.log.model import Record, Retention, TopicSettings

Ends = dict[tuple[str, int], tuple[int, int]]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    """orders/0 keeps 3 up to 10 with times 1003 to 1009, orders/1 is empty, items/0 has 2."""
    with duolog.open_log(tmp_path / "log") as log:
        log.create_topic("orders", TopicSettings(alias="o", partitions=2))
        log.create_topic("items")
        for number in range(10):
            record = Record(b"x" * 2000, partition=0, ts_ms=1000 + number)
            log.publish("orders", record)
        sizes = log.offsets("orders")[0].bytes
        log.set_retention("orders", Retention(max_bytes=sizes * 7 // 10))
        log.enforce_retention("orders")
        log.publish("items", [Record(b"a", ts_ms=5), Record(b"b", ts_ms=6)])
        yield log


def planned(log: EmbeddedLog, **given: object) -> Ends:
    if not {"subscribe", "assign", "subscribePattern"} & set(given):
        given["subscribe"] = "orders,items"
    options = SourceOptions.of({"path": "l", **given}, streaming=False)
    return {
        (range_.place.topic, range_.place.partition): (range_.start, range_.end)
        for range_ in batch_ranges(log, options)
    }


def as_json(orders_0: int, orders_1: int, items_0: int) -> str:
    return json.dumps({"o": {"0": orders_0, "1": orders_1}, "items": {"0": items_0}})


ALL = {("orders", 0): (3, 10), ("items", 0): (0, 2)}


@pytest.mark.parametrize(
    ("given", "ranges"),
    [
        ({}, ALL),
        ({"subscribe": "o"}, {("orders", 0): (3, 10)}),
        ({"subscribePattern": "item.?|ord"}, {("items", 0): (0, 2)}),
        ({"subscribePattern": "nothing"}, {}),
        ({"assign": '{"o": [0]}'}, {("orders", 0): (3, 10)}),
        ({"assign": '{"orders": [1]}'}, {}),
        ({"startingOffsets": as_json(4, -2, 1)}, {("orders", 0): (4, 10), ("items", 0): (1, 2)}),
        ({"endingOffsets": as_json(5, -1, 0)}, {("orders", 0): (3, 5)}),
        ({"startingOffsets": as_json(4, 0, 1), "endingOffsets": as_json(4, 0, 1)}, {}),
        ({"subscribe": "items", "startingTimestamp": 6}, {("items", 0): (1, 2)}),
        ({"endingTimestamp": 1005}, {("orders", 0): (3, 5), ("items", 0): (0, 2)}),
        (
            {"endingOffsetsByTimestamp": as_json(1005, 9, 6)},
            {("orders", 0): (3, 5), ("items", 0): (0, 1)},
        ),
        (
            {
                "startingTimestamp": 1005,
                "startingOffsetsByTimestampStrategy": "latest",
            },
            {("orders", 0): (5, 10)},
        ),
    ],
)
def test_batch_reads(log: EmbeddedLog, given: dict[str, object], ranges: Ends) -> None:
    assert planned(log, **given) == ranges


def test_lost_offsets_are_moved_to_what_is_there_when_loss_is_passed_over(
    log: EmbeddedLog,
) -> None:
    given = {"failOnDataLoss": "false", "startingOffsets": as_json(1, 9, 0)}
    assert planned(log, **given, endingOffsets=as_json(99, 99, 99)) == ALL


@pytest.mark.parametrize(
    ("given", "error", "told"),
    [
        ({"subscribe": "nowhere"}, UnknownTopic, "nowhere"),
        ({"assign": '{"orders": [0, 2]}'}, DuologError, "names partition 2 of topic 'orders'"),
        ({"startingOffsets": as_json(1, 0, 0)}, OffsetOutOfRange, "keeps 3 up to"),
        ({"startingOffsets": as_json(11, 0, 0)}, OffsetOutOfRange, "keeps 3 up to"),
        ({"endingOffsets": as_json(11, 0, 0)}, OffsetOutOfRange, "Offset 11 of topic 'orders'"),
        (
            {"startingOffsets": as_json(6, 0, 0), "endingOffsets": as_json(5, 0, 0)},
            InvalidSetting,
            "starts at 6 and ends before that, at 5",
        ),
        (
            {"startingOffsets": '{"orders": {"0": 4}}'},
            InvalidSetting,
            "leaves out topic 'items' partition 0, topic 'orders' partition 1",
        ),
        (
            {"subscribe": "items", "startingOffsets": '{"items": {"0": 0, "7": 0}}'},
            InvalidSetting,
            "names topic 'items' partition 7, which is not among what is read",
        ),
        (
            {"subscribe": "items", "startingOffsets": '{"orders": {"0": 4}}'},
            InvalidSetting,
            "names topic 'orders' partition 0",
        ),
        ({"startingTimestamp": 2000}, InvalidSetting, "has no record as late as 2000"),
        ({"startingTimestamp": 5}, InvalidSetting, "'orders' partition 1 has no record as late"),
    ],
)
def test_what_cannot_be_read_is_named(
    log: EmbeddedLog, given: dict[str, object], error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=re.escape(told)):
        planned(log, **given)


def test_a_stream_may_begin_at_latest_for_some(log: EmbeddedLog) -> None:
    options = SourceOptions.of(
        {"path": "l", "subscribe": "o", "startingOffsets": '{"orders": {"0": -1, "1": -2}}'},
        streaming=True,
    )
    found = starts(
        log,
        options.starting,
        chosen_places(log, options.choice),
        error_without_match=True,
        fail_on_data_loss=True,
    )
    assert {place.partition: offset for place, offset in found.items()} == {0: 10, 1: 0}
