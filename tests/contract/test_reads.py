"""Reading by offset and by time, on every form of a log."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from duolog.errors import InvalidRequest, OffsetOutOfRange, UnknownPartition
from duolog.log.access import LogAccess, Place
from duolog.log.fetched import FETCHED_SCHEMA
from duolog.log.model import (
    AtOffset,
    AtTimestamp,
    Earliest,
    Latest,
    Record,
    Retention,
    Start,
    TopicSettings,
)
from tests.contract.conftest import Form
from tests.support.clock import ManualClock
from tests.support.records import STREAM, part_of

FEW = [b"%03d" % n for n in range(100)]


@pytest.fixture
def filled(form: Form) -> LogAccess:
    """100 records of three bytes in small batches, 1 s apart."""
    log = form.open()
    topic = log.create_topic("orders")
    times = [n * 1000 for n in range(100)]
    for epoch in range(10):
        at = slice(epoch * 10, epoch * 10 + 10)
        log.append(STREAM, epoch, [part_of(topic, {0: FEW[at]}, ts_ms=times[at])])
    return log


def test_every_offset_can_be_read_from(filled: LogAccess) -> None:
    for offset in range(100):
        fetched = filled.fetch("orders", 0, offset)
        assert [r.value for r in fetched] == FEW[offset:]
        assert [r.offset for r in fetched] == list(range(offset, 100))
        assert (fetched.next_offset, fetched.earliest, fetched.latest) == (100, 0, 100)
        assert not fetched.has_more


def test_the_end_is_a_place_to_read_from(filled: LogAccess) -> None:
    fetched = filled.fetch("orders", 0, 100)
    assert (fetched.count, fetched.next_offset, fetched.has_more) == (0, 100, False)
    assert fetched.table().num_rows == 0


def test_arrow_is_what_is_read(filled: LogAccess) -> None:
    table = filled.fetch("orders", 0, 5, max_records=20).table()
    assert table.schema == FETCHED_SCHEMA
    assert table.column("offset").to_pylist() == list(range(5, 25))
    assert table.column("value").to_pylist() == FEW[5:25]


@pytest.mark.parametrize("limit", [1, 7, 10, 11, 99, 100, 1000])
def test_limit_by_records(filled: LogAccess, limit: int) -> None:
    fetched = filled.fetch("orders", 0, 0, max_records=limit)
    assert fetched.count == fetched.next_offset == min(limit, 100)
    assert fetched.has_more == (limit < 100)


@pytest.mark.parametrize(("limit", "count"), [(1, 1), (3, 1), (5, 1), (6, 2), (30, 10), (32, 10)])
def test_limit_by_bytes_gives_at_least_one(filled: LogAccess, limit: int, count: int) -> None:
    assert filled.fetch("orders", 0, 0, max_bytes=limit).count == count


def test_a_record_larger_than_the_limit_is_given_alone(log: LogAccess) -> None:
    log.create_topic("orders")
    log.publish("orders", [Record(b"x" * 5000), Record(b"y" * 5000)])
    fetched = log.fetch("orders", 0, 0, max_bytes=10)
    assert (fetched.count, fetched.next_offset) == (1, 1)


@pytest.mark.parametrize("offset", [-1, 101, 10**18])
def test_an_offset_out_of_range_names_both_ends(filled: LogAccess, offset: int) -> None:
    with pytest.raises(OffsetOutOfRange) as caught:
        filled.fetch("orders", 0, offset)
    assert (caught.value.earliest, caught.value.latest) == (0, 100)
    with pytest.raises(OffsetOutOfRange):
        filled.resolve("orders", 0, AtOffset(offset))


@pytest.mark.parametrize("value", [0, -1, 1.5, True, None])
def test_limits_are_numbers(filled: LogAccess, value: int) -> None:
    with pytest.raises(InvalidRequest):
        filled.fetch("orders", 0, 0, max_records=value)
    with pytest.raises(InvalidRequest):
        filled.fetch("orders", 0, 0, max_bytes=value)


def test_partitions_that_are_not_there(filled: LogAccess) -> None:
    for partition in (-1, 1, None):
        with pytest.raises(UnknownPartition):
            filled.fetch("orders", partition, 0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("start", "offset"),
    [
        (Earliest(), 0),
        (Latest(), 100),
        (AtOffset(42), 42),
        (AtTimestamp(-5), 0),
        (AtTimestamp(0), 0),
        (AtTimestamp(1), 1),
        (AtTimestamp(9000), 9),
        (AtTimestamp(9001), 10),
        (AtTimestamp(99_000), 99),
        (AtTimestamp(99_001), 100),
        (AtTimestamp(10**15), 100),
    ],
)
def test_where_a_read_starts(filled: LogAccess, start: Start, offset: int) -> None:
    assert filled.resolve("orders", 0, start) == offset


def test_a_seek_by_time_skips_no_earlier_match(form: Form) -> None:
    log = form.open()
    topic = log.create_topic("orders")
    chance = random.Random(11)
    times = [chance.randrange(1000) for _ in range(300)]
    for epoch in range(30):
        at = slice(epoch * 10, epoch * 10 + 10)
        content = [b"%d" % n for n in times[at]]
        log.append(STREAM, epoch, [part_of(topic, {0: content}, ts_ms=times[at])])
    log = form.restart()
    for ts_ms in range(-1, 1002, 7):
        expected = next((n for n, time in enumerate(times) if time >= ts_ms), 300)
        assert log.resolve("orders", 0, AtTimestamp(ts_ms)) == expected


def test_reading_after_retention(filled: LogAccess) -> None:
    filled.set_retention("orders", Retention(max_bytes=1))
    filled.publish("orders", Record(b"kept"))
    filled.enforce_retention()
    (offsets,) = filled.offsets("orders")
    with pytest.raises(OffsetOutOfRange):
        filled.fetch("orders", 0, 0)
    assert filled.resolve("orders", 0, Earliest()) == offsets.start == 101
    assert filled.resolve("orders", 0, AtTimestamp(0)) == 101


def test_a_seek_by_time_does_not_stop_at_what_is_gone(form: Form) -> None:
    """A later time than all that follows went with CLEAR, or with retention by bytes."""
    log = form.open()
    now_ms = form.clock.now_ms()
    for name in ("cleared", "cut"):
        log.create_topic(name)
        log.publish(name, Record(b"latest" * 1000, ts_ms=now_ms + 9_000))
    log.clear_topic("cleared")
    for name in ("cleared", "cut"):
        for ts_ms in (1_000, 3_000, 2_000):
            log.publish(name, Record(b"later", ts_ms=now_ms + ts_ms))
    log.set_retention("cut", Retention(max_bytes=1_000))
    assert log.enforce_retention().by_topic["cut"].messages_deleted == 1
    for opened in form.now_and_restarted(log):
        for name in ("cleared", "cut"):
            for ts_ms, offset in ((500, 1), (1_000, 1), (2_000, 2), (3_000, 2), (3_001, 4)):
                assert opened.resolve(name, 0, AtTimestamp(now_ms + ts_ms)) == offset


def test_the_cache_answers_what_was_read_before(form: Form) -> None:
    log = form.open()
    topic = log.create_topic("orders")
    log.append(STREAM, 0, [part_of(topic, {0: FEW})])
    for _ in range(3):
        assert log.fetch("orders", 0, 50).count == 50
    stats = log.stats()
    assert (stats.cache_misses, stats.cache_hits) == (1, 2)
    form.configure(cache_bytes=0)
    log = form.restart()
    for _ in range(3):
        assert log.fetch("orders", 0, 50).count == 50
    assert log.stats().cache_hits == 0


def test_what_is_gone_is_not_given_although_a_part_of_it_was_read(log: LogAccess) -> None:
    def filled(content: list[bytes], epoch: int) -> None:
        topic = log.create_topic("orders")
        log.append(STREAM, epoch, [part_of(topic, {0: content})])
        assert [r.value for r in log.fetch("orders", 0, 0, max_records=10)] == content[:10]

    filled(FEW, 0)
    log.clear_topic("orders")
    with pytest.raises(OffsetOutOfRange) as refusal:
        log.fetch("orders", 0, 10, max_records=10)
    assert (refusal.value.offset, refusal.value.earliest, refusal.value.latest) == (10, 100, 100)
    log.drop_topic("orders")
    filled(FEW[::-1], 1)  # another topic of this name
    assert [r.value for r in log.fetch("orders", 0, 10)] == FEW[::-1][10:]


def test_an_append_wakes_who_waits_for_it(log: LogAccess) -> None:
    log.create_topic("orders", TopicSettings(partitions=2))
    log.create_topic("other")
    waiting = threading.Barrier(2)

    def wait() -> bool:
        waiting.wait(10)
        return log.wait_for_append({("orders", 0): 0, ("orders", 1): 0}, timeout_seconds=30)

    with ThreadPoolExecutor(1) as pool:
        woken = pool.submit(wait)
        waiting.wait(10)
        log.publish("other", Record(b"not for you"))
        log.publish("orders", Record(b"for you", partition=1))
        assert woken.result(30)


def test_waiting_ends_at_once_or_in_time(log: LogAccess) -> None:
    log.create_topic("orders")
    assert not log.wait_for_append({("orders", 0): 0}, timeout_seconds=0)
    assert not log.wait_for_append({("orders", 0): 0}, timeout_seconds=0.01)
    log.publish("orders", Record(b"a"))
    assert log.wait_for_append({("orders", 0): 0}, timeout_seconds=0)
    assert not log.wait_for_append({("orders", 0): 1}, timeout_seconds=0)


def test_a_group_that_moves_wakes_who_waits_for_positions(log: LogAccess) -> None:
    log.create_topic("orders")
    log.publish("orders", Record(b"x"))
    stored = log.stats().positions_stored
    assert log.wait_for_positions(stored, timeout_seconds=0) == stored
    assert log.wait_for_positions(stored, timeout_seconds=0.01) == stored
    with ThreadPoolExecutor(1) as pool:
        woken = pool.submit(log.wait_for_positions, stored, 30)
        log.publish("orders", Record(b"not for you"))
        log.ack("billing", "orders", 0)
        assert woken.result(30) == stored + 1
    assert log.wait_for_positions(stored) == stored + 1


def test_readers_and_writers_at_once_see_only_whole_prefixes(log: LogAccess) -> None:
    log.create_topic("orders")
    done = threading.Event()

    def read() -> int:
        at = 0
        while not (done.is_set() and at == 400):
            for record in log.fetch("orders", 0, at):
                assert record.offset == at
                at += 1
            log.wait_for_append({("orders", 0): at}, timeout_seconds=0.05)
        return at

    with ThreadPoolExecutor(8) as pool:
        readers = [pool.submit(read) for _ in range(4)]
        writers = [
            pool.submit(lambda: [log.publish("orders", Record(b"v")) for _ in range(100)])
            for _ in range(4)
        ]
        for writer in writers:
            writer.result(60)
        done.set()
        assert [reader.result(60) for reader in readers] == [400] * 4


def test_the_offsets_of_all_topics_are_told_at_once(form: Form) -> None:
    log = form.open()
    assert log.all_offsets() == ()
    for name, partitions in (("b", 2), ("a", 1)):
        log.create_topic(name, TopicSettings(partitions=partitions))
    log.publish("b", [Record(b"v", partition=1)] * 3)
    assert log.all_offsets() == (*log.offsets("a"), *log.offsets("b"))
    log.drop_topic("b")
    assert log.all_offsets() == log.offsets("a")


def test_the_times_of_many_records_are_told_at_once(form: Form) -> None:
    log = form.open()
    topic = log.create_topic("orders", TopicSettings(partitions=2))
    for first in (0, 10, 20):
        records = [Record(b"v", partition=1, ts_ms=1000 + n) for n in range(first, first + 10)]
        log.publish("orders", records)
    places: list[Place] = [
        *(("orders", 1, offset) for offset in (29, 30, 0, 15, 15)),
        (topic.id, 1, 7),
        ("orders", 0, 0),
        ("orders", 1, -1),
        ("gone", 0, 0),
    ]
    assert log.record_times(places) == (1029, None, 1000, 1015, 1015, 1007, None, None, None)
    assert log.record_times([]) == ()


def test_the_time_at_what_was_removed_is_that_of_nothing(form: Form) -> None:
    form.configure(clock=ManualClock(1_000_000))
    log = form.open()
    log.create_topic("orders", TopicSettings(retention=Retention(60)))
    log.publish("orders", Record(b"old", ts_ms=900_000))
    log.publish("orders", Record(b"new", ts_ms=990_000))
    form.do_duties(log)
    assert log.record_times([("orders", 0, 0), ("orders", 0, 1)]) == (None, 990_000)


@pytest.mark.parametrize("places", ["x", 7, ["ab"], [("orders", 0)], [("orders", 0, "1")]])
def test_what_is_no_place_is_refused(form: Form, places: Any) -> None:
    log = form.open()
    log.create_topic("orders")
    with pytest.raises(InvalidRequest, match="lace"):
        log.record_times(places)


@pytest.mark.parametrize("many_headers", [False, True])
def test_headers_and_tables_count_towards_the_limit(form: Form, many_headers: bool) -> None:
    log = form.open()
    log.create_topic("orders")
    headers: tuple[tuple[str, bytes | None], ...] = (("h", b"x" * 3000), ("n", None))
    if many_headers:
        headers = (("", None),) * 100
    records = [
        Record(b"v", headers=headers if n % 3 else (), table="t" * 1000 if n % 2 else None)
        for n in range(60)
    ]
    log.publish("orders", records)
    at, pages = 0, list[int]()
    while at < 60:
        page = log.fetch("orders", 0, at, max_bytes=10_000)
        assert page.next_offset > at
        pages.append(page.next_offset - at)
        at = page.next_offset
    assert max(pages) <= 10
    assert sum(pages) == 60
