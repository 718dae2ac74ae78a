"""Small batches that are stored already are merged, and nobody who reads notices."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from duolog.errors import DamagedLog, DuologError
from duolog.log import EmbeddedLog, LogOptions, open_log, readback, whole
from duolog.log.keys import record_key
from duolog.log.merge_queue import ENOUGH
from duolog.log.model import AtTimestamp, Op, Record, Retention, TopicPartition, TopicSettings
from duolog.log.options import FaultPoint
from duolog.log.store import WriteBatch
from duolog.log.times import TimedBatch, first_reaching, timed_batches
from tests.support.clock import ManualClock
from tests.support.records import STREAM, part_of

DEADLINE_SECONDS = 30
NOT_CACHED = LogOptions(cache_bytes=0)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    with open_log(tmp_path / "log", options=NOT_CACHED) as opened:
        opened.create_topic("orders")
        yield opened


def publish(log: EmbeddedLog, count: int, first: int = 0, topic: str = "orders") -> None:
    """One batch each."""
    for number in range(first, first + count):
        log.publish(topic, Record(b"%d" % number, key=b"k", ts_ms=1000 + 10 * number))


def stored(log: EmbeddedLog, topic: str = "orders") -> list[tuple[int, int]]:
    """The first offset and the count of each batch."""
    start = log.offsets(topic)[0].start
    return [(b.base_offset, b.count) for b in log.fetch_encoded(topic, 0, start).batches]


def values(log: EmbeddedLog, offset: int = 0) -> list[bytes | None]:
    return [record.value for record in log.fetch("orders", 0, offset)]


def numbers(count: int, first: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(first, first + count)]


def wait_until_merged(log: EmbeddedLog, most: int) -> None:
    give_up = time.monotonic() + DEADLINE_SECONDS
    while len(stored(log)) > most:
        assert time.monotonic() < give_up, stored(log)


def test_many_publishes_are_merged_by_themselves(tmp_path: Path) -> None:
    with open_log(tmp_path / "log", options=NOT_CACHED) as log:
        log.create_topic("orders")
        publish(log, 5 * ENOUGH)
        wait_until_merged(log, ENOUGH + 8)  # fewer than ENOUGH new ones may stay as they are
        assert values(log) == numbers(5 * ENOUGH)
    with open_log(tmp_path / "log") as log:
        assert values(log) == numbers(5 * ENOUGH)
        assert log.check_whole().records == 5 * ENOUGH


def test_small_epochs_are_merged_with_publishes(log: EmbeddedLog) -> None:
    topic = log.topic("orders")
    for epoch in range(ENOUGH):
        log.append(STREAM, epoch, [part_of(topic, {0: [b"epoch-%d" % epoch]})])
        publish(log, 1, epoch)
    wait_until_merged(log, ENOUGH)
    expected = [value for n in range(ENOUGH) for value in (b"epoch-%d" % n, b"%d" % n)]
    assert values(log) == expected


def test_a_log_with_few_small_batches_has_no_thread_for_them(log: EmbeddedLog) -> None:
    publish(log, ENOUGH - 1)
    assert "duolog-merger" not in {thread.name for thread in threading.enumerate()}
    assert len(stored(log)) == ENOUGH - 1


def test_offsets_times_and_what_partitions_hold_stay_as_they_were(log: EmbeddedLog) -> None:
    publish(log, 40)
    before = log.offsets("orders")
    assert log.merge_small_batches("orders", 0) == 39
    assert stored(log) == [(0, 40)]
    assert log.offsets("orders") == before
    for number in range(40):
        assert log.resolve("orders", 0, AtTimestamp(1000 + 10 * number)) == number
        assert log.resolve("orders", 0, AtTimestamp(1000 + 10 * number - 9)) == number
        assert values(log, number)[0] == b"%d" % number
    assert log.resolve("orders", 0, AtTimestamp(10_000)) == 40
    publish(log, 10, 40)
    assert values(log) == numbers(50)
    assert log.check_whole().records == 50
    assert log.merge_small_batches("orders", 0) > 0
    assert log.merge_small_batches("orders", 0) == 0


def test_retention_takes_merged_batches_and_leaves_none_in_pieces(tmp_path: Path) -> None:
    clock = ManualClock()
    with open_log(tmp_path / "log", options=LogOptions(cache_bytes=0, clock=clock)) as log:
        log.create_topic("orders", TopicSettings(retention=Retention(seconds=1000)))
        for number in range(60):
            log.publish("orders", Record(b"%d" % number, key=b"k"))
            clock.advance(seconds=20)
        assert log.merge_small_batches("orders", 0) > 0
        assert max(count for _, count in stored(log)) <= 6  # a tenth of 1000 s has 5
        log.enforce_retention()
        start = log.offsets("orders")[0].start
        assert 5 <= start <= 10
        assert values(log, start) == numbers(60 - start, start)
        assert log.merge_small_batches("orders", 0) == 0
        clock.advance(seconds=2000)
        log.enforce_retention()
        (gone,) = log.offsets("orders")
        assert (gone.start, gone.next_offset, gone.bytes) == (60, 60, 0)


def test_what_was_cleared_or_dropped_does_not_come_back(log: EmbeddedLog) -> None:
    publish(log, 20)
    merging = log._merger
    tp = TopicPartition(log.topic("orders").id, 0)
    (planned,) = merging.planned(tp)
    log.clear_topic("orders")
    publish(log, 3, 20)
    assert merging.replace(planned) == 0
    assert values(log, 20) == numbers(3, 20)
    publish(log, 17, 23)
    (planned,) = merging.planned(tp)
    log.drop_topic("orders")
    log.create_topic("orders")
    assert merging.replace(planned) == 0
    assert log.offsets("orders")[0].next_offset == 0


def test_what_has_changed_since_it_was_read_is_left_as_it_is(log: EmbeddedLog) -> None:
    publish(log, 20)
    tp = TopicPartition(log.topic("orders").id, 0)
    (planned,) = log._merger.planned(tp)
    assert log.merge_small_batches("orders", 0) == 19
    assert log._merger.replace(planned) == 0
    assert values(log) == numbers(20)


def test_a_damaged_batch_stays_where_it_is_and_the_others_are_merged(log: EmbeddedLog) -> None:
    publish(log, 30)
    store = log._state.store
    key = record_key(TopicPartition(log.topic("orders").id, 0), 10)
    sound = store.get("records", key)
    assert sound is not None
    damaged = WriteBatch()
    damaged.put("records", key, sound[:-1] + bytes([sound[-1] ^ 1]))
    store.commit(damaged)
    assert log.merge_small_batches("orders", 0) == 9 + 18
    assert stored(log) == [(0, 10), (10, 1), (11, 19)]
    with pytest.raises(DamagedLog):
        values(log, 10)
    assert values(log, 11) == numbers(19, 11)


@pytest.mark.parametrize("point", ["publish.written", "publish.synced"])
def test_a_failure_while_merging_loses_and_doubles_nothing(
    tmp_path: Path, point: FaultPoint
) -> None:
    dying = False

    def fault(at: FaultPoint) -> None:
        if dying and at == point:
            raise OSError(5, "Input/output error")

    log = open_log(tmp_path / "log", options=LogOptions(cache_bytes=0, fault=fault))
    log.create_topic("orders")
    publish(log, 20)
    dying = True
    with suppress(OSError, DuologError):  # it may be found to be there all the same
        log.merge_small_batches("orders", 0)
    dying = False
    assert values(log) == numbers(20)
    publish(log, 1, 20)
    log.close()
    with open_log(tmp_path / "log") as again:
        assert values(again) == numbers(21)
        assert again.check_whole().records == 21


def test_readers_see_every_record_once_while_batches_are_merged(log: EmbeddedLog) -> None:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    count, failures, done = 300, [], threading.Event()

    def read(number: int) -> None:
        chosen = random.Random(seed + number)
        try:
            while not done.is_set():
                end = log.offsets("orders")[0].next_offset
                at = chosen.randrange(end) if end else 0
                if number % 2:
                    found = [record.value for record in log.fetch("orders", 0, at)]
                else:
                    encoded = log.fetch_encoded("orders", 0, at)
                    found = [
                        value
                        for batch in encoded.decode()
                        for value in batch.records["value"].to_pylist()
                    ]
                assert found == numbers(len(found), at)
                assert log.resolve("orders", 0, AtTimestamp(1000 + 10 * at)) == at
        except BaseException as error:
            failures.append(error)

    readers = [threading.Thread(target=read, args=(number,)) for number in range(3)]
    for reader in readers:
        reader.start()
    try:
        for first in range(0, count, 20):
            publish(log, 20, first)
            log.merge_small_batches("orders", 0)
    finally:
        done.set()
        for reader in readers:
            reader.join()
    assert not failures
    assert values(log) == numbers(count)


def test_retention_and_merging_take_turns(tmp_path: Path) -> None:
    """A cut that was found before a merge would fall into the middle of a merged batch."""
    options = LogOptions(cache_bytes=0)
    with open_log(tmp_path / "log", options=options) as log:
        log.create_topic("orders", TopicSettings(retention=Retention(max_bytes=8_000)))
        done = threading.Event()

        def enforce() -> None:
            while not done.is_set():
                log.enforce_retention()

        keeper = threading.Thread(target=enforce)
        keeper.start()
        try:
            for first in range(0, 500, 10):
                publish(log, 10, first)
                log.merge_small_batches("orders", 0)
                start = log.offsets("orders")[0].start
                assert sum(each.bytes for each in log.offsets("orders")) >= 0
                batches = log.fetch_encoded("orders", 0, start).batches
                assert batches[0].base_offset <= start
        finally:
            done.set()
            keeper.join()
        log.enforce_retention()
        (kept,) = log.offsets("orders")
        assert values(log, kept.start) == numbers(500 - kept.start, kept.start)
        assert 0 < kept.bytes <= 8_000
        assert log.check_whole().records == 500 - kept.start


@pytest.mark.parametrize("merged_before", ["the first page", "a later page"])
def test_what_is_read_back_for_deduplication_misses_nothing_beside_a_merge(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch, merged_before: str
) -> None:
    """A page would begin behind the merged batch that holds its first offset."""
    publish(log, 20)
    tp = TopicPartition(log.topic("orders").id, 0)
    monkeypatch.setattr(readback, "_PAGE_BYTES", 1)
    if merged_before == "the first page":

        def found_and_merged(*arguments: Any) -> TimedBatch | None:
            found = first_reaching(*arguments)
            log.merge_small_batches("orders", 0)
            return found

        monkeypatch.setattr(readback, "first_reaching", found_and_merged)
    read = iter(readback.read_back(log._state)(tp, 1000 + 10 * 5))
    found = [next(read)]
    log.merge_small_batches("orders", 0)
    found += read
    assert len(stored(log)) == 1
    assert [(value, offset) for *_, value, offset in found] == [
        (b"%d" % number, number) for number in range(5, 20)
    ]


def test_a_repeat_is_left_out_after_its_key_was_merged(tmp_path: Path) -> None:
    settings = TopicSettings(dedup_window_seconds=86_400)
    with open_log(tmp_path / "log", options=NOT_CACHED) as log:
        log.create_topic("orders", settings)
        for number in range(20):
            change = Record(b"same", key=b"%d" % number, op=Op.UPDATE)
            assert log.publish("orders", change)[0].offset == number
    with open_log(tmp_path / "log", options=NOT_CACHED) as log:
        log.merge_small_batches("orders", 0)
        for number in range(20):
            change = Record(b"same", key=b"%d" % number, op=Op.UPDATE)
            assert log.publish("orders", change)[0].offset == number


def test_a_log_is_whole_while_it_is_merged_and_written(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches that were merged between two pages, also with what was written meanwhile."""
    monkeypatch.setattr(whole, "_PAGE_BYTES", 1)
    publish(log, 30)
    merged: list[int] = []

    def write_and_merge(_: int) -> None:
        publish(log, 5, 30 + 5 * len(merged))
        merged.append(log.merge_small_batches("orders", 0))

    assert log.check_whole(write_and_merge).records == 30
    assert merged
    assert all(merged)
    assert log.check_whole().records == 30 + 5 * len(merged)


def test_the_index_of_times_is_counted_while_nothing_is_merged(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(log, 10)
    held: list[bool] = []

    def counted(*arguments: Any) -> Iterator[TimedBatch]:
        for each in timed_batches(*arguments):
            held.append(log._state.one_rearranges.locked())
            yield each

    monkeypatch.setattr(whole, "timed_batches", counted)
    assert log.check_whole().records == 10
    assert held == [True] * 10


def test_a_log_whose_batches_do_not_join_is_still_found(log: EmbeddedLog) -> None:
    publish(log, 9)
    tp = TopicPartition(log.topic("orders").id, 0)
    for missing in (8, 4, 0):
        gone = WriteBatch()
        gone.delete("records", record_key(tp, missing))
        log._state.store.commit(gone)
        with pytest.raises(DamagedLog, match=f"between offset {missing} "):
            log.check_whole()


def test_a_seek_by_time_finds_what_was_merged_while_its_parts_are_cached(tmp_path: Path) -> None:
    """A new group would begin behind records that it should get."""
    with open_log(tmp_path / "log") as log:
        log.create_topic("orders")
        for number in range(100):
            publish(log, 1, number)
            log.fetch("orders", 0, number)  # a reader at the head
        assert log.merge_small_batches("orders", 0) > 0
        found = [log.resolve("orders", 0, AtTimestamp(1000 + 10 * n)) for n in range(100)]
        assert found == list(range(100))
