"""One caller's bad record, name or time never touches what others publish, on every form."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from duolog.errors import InvalidRecord, InvalidRequest, InvalidTimestamp, UnsupportedFormat
from duolog.log.access import LogAccess
from duolog.log.model import (
    AtOffset,
    AtTimestamp,
    Filter,
    Mode,
    Op,
    Record,
    Route,
    TopicSettings,
    Writer,
)
from tests.contract.conftest import Form
from tests.support.poisons import HALF, POISONS


@pytest.mark.parametrize("poison", POISONS.values(), ids=POISONS.keys())
def test_an_acknowledged_record_survives_next_to_each_poison(
    form: Form, poison: dict[str, Any]
) -> None:
    log = form.open()
    log.create_topic("orders")
    bad = Record(**{"value": b"bad", **poison})

    def publish(number: int) -> int | None:
        if number % 3 == 0:
            with pytest.raises(InvalidRecord):
                log.publish("orders", [Record(b"beside it"), bad] if number % 2 else bad)
            return None
        return log.publish("orders", Record(b"%d" % number, headers=(("n", b"1"),)))[0].offset

    with ThreadPoolExecutor(6) as pool:
        answered = dict(enumerate(pool.map(publish, range(18))))
    acknowledged = {offset: b"%d" % n for n, offset in answered.items() if offset is not None}
    for opened in form.now_and_restarted(log):
        found = {record.offset: record.value for record in opened.fetch("orders", 0, 0)}
        assert found == acknowledged


def test_a_time_far_ahead_of_the_logs_clock_is_refused(form: Form) -> None:
    log = form.open()
    log.create_topic("orders")
    log.add_route("orders", Route("t", frozenset({Op.INSERT})))
    now_ms = form.clock.at_ms
    log.publish("orders", Record(b"v", ts_ms=now_ms + 3_600_000))
    for ts_ms in (now_ms + 3_600_001, now_ms * 1000, 2**62, 2**63 - 1, 2**64 - 1):
        with pytest.raises(InvalidTimestamp):
            log.publish("orders", Record(b"v", ts_ms=ts_ms))
        with pytest.raises(InvalidTimestamp):
            log.publish_rows("t", Op.INSERT, [{"a": 1}], [], ts_ms=ts_ms)
    with pytest.raises(InvalidTimestamp, match="microseconds"):
        log.publish("orders", Record(b"v", ts_ms=now_ms * 1000))
    form.clock.advance(seconds=1)
    log.publish("orders", Record(b"v", ts_ms=now_ms + 3_600_001))
    assert log.offsets("orders")[0].next_offset == 2


def test_how_far_ahead_a_time_may_be_is_an_option_of_the_log(form: Form) -> None:
    form.configure(max_timestamp_ahead_seconds=10)
    log = form.open()
    log.create_topic("orders")
    log.publish("orders", Record(b"v", ts_ms=form.clock.at_ms + 10_000))
    with pytest.raises(InvalidTimestamp):
        log.publish("orders", Record(b"v", ts_ms=form.clock.at_ms + 10_001))


_STREAM = Writer(Mode.STREAM, "w", "t")
_BAD_CALLS: dict[str, Callable[[LogAccess], object]] = {
    "rows with half a pair": lambda log: log.publish_rows("t", Op.INSERT, [{"a": HALF}], []),
    "a column with half a pair": lambda log: log.publish_rows("t", Op.INSERT, [{HALF: 1}], []),
    "a column that is a number": lambda log: log.publish_rows("t", Op.INSERT, [{1: 1}], []),
    "rows that are none": lambda log: log.publish_rows("t", Op.INSERT, [1], []),
    "a key column": lambda log: log.publish_rows("t", Op.INSERT, [{"a": 1}], [HALF]),
    "rows' table": lambda log: log.publish_rows(HALF, Op.INSERT, [{"a": 1}], []),
    "rows' op": lambda log: log.publish_rows("t", 9, [{"a": 1}], []),  # type: ignore[arg-type]
    "rows' op as a number": lambda log: log.publish_rows("t", True, [{"a": 1}], []),  # type: ignore[arg-type]
    "rows' time": lambda log: log.publish_rows("t", Op.INSERT, [{"a": 1}], [], ts_ms=1.5),  # type: ignore[arg-type]
    "rows' time is a bool": lambda log: log.publish_rows(
        "t", Op.INSERT, [{"a": 1}], [], ts_ms=True
    ),
    "a publisher": lambda log: log.publish("orders", Record(b"v"), writer=HALF, sequence=1),
    "a publisher that is asked for": lambda log: log.last_sequence(HALF),
    "a sequence": lambda log: log.publish("orders", Record(b"v"), writer="w", sequence=True),
    "a sequence that is a float": lambda log: log.publish(
        "orders",
        Record(b"v"),
        writer="w",
        sequence=1.0,  # type: ignore[arg-type]
    ),
    "the last sequence": lambda log: log.publish(
        "orders", [Record(b"v")] * 3, writer="w", sequence=2**64 - 2
    ),
    "a topic": lambda log: log.create_topic(HALF),
    "an alias": lambda log: log.create_topic("x", TopicSettings(alias=HALF)),
    "a Kafka topic": lambda log: log.create_topic("x", TopicSettings(kafka_topic=HALF)),
    "a topic's format": lambda log: log.create_topic("x", TopicSettings(key_format="none")),  # type: ignore[arg-type]
    "a topic's flag": lambda log: log.create_topic("x", TopicSettings(tombstones_on_delete=5)),  # type: ignore[arg-type]
    "a route's table": lambda log: log.add_route("orders", Route(HALF, frozenset({Op.INSERT}))),
    "a route's column": lambda log: log.add_route(
        "orders", Route("u", frozenset({Op.INSERT}), partition_by=(HALF,))
    ),
    "a route's filter": lambda log: log.add_route(
        "orders",
        Route("u", frozenset({Op.INSERT}), filter=Filter("a > 1", "x")),  # type: ignore[arg-type]
    ),
    "a route's payload": lambda log: log.add_route(
        "orders",
        Route("u", frozenset({Op.INSERT}), payload=9),  # type: ignore[arg-type]
    ),
    "a group": lambda log: log.ack(HALF, "orders", 0),
    "a group that is moved": lambda log: log.seek(HALF, "orders", 0, 0),
    "a group that is deleted": lambda log: log.delete_group(HALF),
    "who moves a group": lambda log: log.seek("g", "orders", 0, 0, side="x"),  # type: ignore[arg-type]
    "who acknowledges": lambda log: log.ack("g", "orders", 0, side=5),  # type: ignore[arg-type]
    "what Kafka holds": lambda log: log.remember_kafka(
        "g",
        "orders",
        0,
        "x",  # type: ignore[arg-type]
        expected_version=0,
        position=0,
    ),
    "a writer": lambda log: log.append(Writer(Mode.STREAM, HALF, "t"), 0, []),
    "a writer's target": lambda log: log.append(Writer(Mode.STREAM, "w", HALF), 0, []),
    "a writer that is asked for": lambda log: log.last_epoch(Writer(Mode.STREAM, HALF, "t")),
    "a writer that is forgotten": lambda log: log.forget_writer(Writer(Mode.STREAM, HALF, "t")),
    "a writer that stages": lambda log: log.staging(Writer(Mode.STREAM, HALF, "t"), 0),
    "an epoch's note": lambda log: log.append(_STREAM, 0, [], note=HALF),
    "an epoch's time": lambda log: log.append(_STREAM, 0, [], at_ms=1.5),  # type: ignore[arg-type]
    "an epoch's time that is too large": lambda log: log.append(_STREAM, 0, [], at_ms=2**70),
    "an epoch": lambda log: log.append(_STREAM, 2**70, []),
    "a time to read from": lambda log: log.resolve("orders", 0, AtTimestamp(1.5)),  # type: ignore[arg-type]
    "an offset to read from": lambda log: log.resolve("orders", 0, AtOffset(1.5)),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("call", _BAD_CALLS.values(), ids=_BAD_CALLS.keys())
def test_what_cannot_be_stored_is_refused_by_name_and_leaves_the_log_as_it_was(
    form: Form, call: Callable[[LogAccess], object]
) -> None:
    log = form.open()
    log.create_topic("orders")
    log.add_route("orders", Route("t", frozenset({Op.INSERT})))
    log.publish("orders", Record(b"acknowledged"))
    topics = log.topics()
    # The wire knows no filter of a newer Duolog, the log itself none that it could not load.
    with pytest.raises((InvalidRequest, UnsupportedFormat)) as refused:
        call(log)
    str(refused.value).encode()  # can be shown and sent
    for opened in form.now_and_restarted(log):
        assert opened.topics() == topics
        assert [record.value for record in opened.fetch("orders", 0, 0)] == [b"acknowledged"]
        assert opened.group_positions() == ()
        assert opened.last_epoch(_STREAM) is None


def test_a_time_beyond_all_that_is_stored_is_found_at_the_end(log: LogAccess) -> None:
    log.create_topic("orders")
    log.publish("orders", Record(b"v"))
    for ts_ms in (2**62, 2**64, 2**200):
        assert log.resolve("orders", 0, AtTimestamp(ts_ms)) == 1


@pytest.mark.parametrize("payload", [True, 1.0, "1"])
def test_a_partition_that_only_looks_like_a_number_is_refused(form: Form, payload: Any) -> None:
    log = form.open()
    log.create_topic("orders", TopicSettings(partitions=2))
    with pytest.raises(InvalidRecord):
        log.publish("orders", Record(b"v", partition=payload))
    with pytest.raises(InvalidRecord):
        log.publish("orders", Record(b"v", payload=payload))
    assert [offsets.next_offset for offsets in log.offsets("orders")] == [0, 0]
