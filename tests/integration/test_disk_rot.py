"""A byte of a file that the disk has changed: RocksDB's own checksum finds it, before ours does.

Its block may hold several batches. They are damaged batches like any other: named with their
offsets, passed over if a reader says so, and skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from duolog.errors import DamagedBatch
from duolog.log import EmbeddedLog, LogOptions, open_log
from duolog.log.model import AtTimestamp, Op, Record, TopicPartition, TopicSettings
from duolog.log.readback import read_back

COUNT = 200
NOT_CACHED = LogOptions(cache_bytes=0)
SIZES = pytest.mark.parametrize("value_bytes", [100, 20_000], ids=["small", "large"])


def value(number: int, size: int) -> bytes:
    return b"%05d" % number + b"x" * size


def rotten(folder: Path, value_bytes: int, at: float | bytes, settings: TopicSettings) -> None:
    """A log with a flipped bit at a part of its largest table, or where these bytes are in it."""
    with open_log(folder, options=NOT_CACHED) as log:
        log._state.merges.when_ready(lambda: None)  # which batches lie together is not left to time
        log.create_topic("orders", settings)
        log.create_topic("beside")
        for number in range(COUNT):
            record = Record(
                value(number, value_bytes), b"%d" % number, op=Op.UPDATE, ts_ms=1000 + number
            )
            log.publish("orders", record)
        log.publish("beside", Record(b"sound"))
    largest = max((folder / "db").glob("*.sst"), key=lambda file: file.stat().st_size)
    content = bytearray(largest.read_bytes())
    place = content.index(at) if isinstance(at, bytes) else int(len(content) * at)
    content[place] ^= 0x10
    largest.write_bytes(content)


@pytest.fixture(params=[0.1, 0.5, 0.8])
def at(request: pytest.FixtureRequest) -> float:
    place: float = request.param
    return place


@pytest.fixture
def log(tmp_path: Path, value_bytes: int, at: float) -> Iterator[EmbeddedLog]:
    settings = TopicSettings(dedup_window_seconds=10**9)
    rotten(tmp_path / "log", value_bytes, at, settings)
    with open_log(tmp_path / "log", options=NOT_CACHED) as opened:
        yield opened


def lost(log: EmbeddedLog) -> range:
    """The offsets that the disk does not give back, by reading to the end without them."""
    found: list[int] = []
    position = 0
    left_out: list[tuple[int, int]] = []
    while position < COUNT:
        fetched = log.fetch("orders", 0, position, skip_damaged=True)
        found += [record.offset for record in fetched]
        left_out += [(each.first_offset, each.next_offset) for each in fetched.left_out]
        position = fetched.next_offset
    gone = sorted(set(range(COUNT)) - set(found))
    assert [offset for first, stop in left_out for offset in range(first, stop)] == gone
    assert 0 < len(gone) < COUNT
    return range(gone[0], gone[-1] + 1)


@SIZES
def test_readers_get_all_else_and_the_offsets_of_the_damage(log: EmbeddedLog) -> None:
    gone = lost(log)
    if gone[0]:
        assert [record.offset for record in log.fetch("orders", 0, 0)] == list(range(gone[0]))
    for fetch in (log.fetch, log.fetch_encoded):
        with pytest.raises(DamagedBatch, match="does not give it back") as told:
            fetch("orders", 0, gone[0])
        assert told.value.first_offset == gone[0]
        assert fetch("orders", 0, gone[-1] + 1).next_offset == COUNT
    position = 0
    encoded: list[int] = []
    while position < COUNT:
        page = log.fetch_encoded("orders", 0, position, skip_damaged=True)
        encoded += [
            offset
            for batch in page.batches
            if not batch.is_hole
            for offset in range(batch.base_offset, batch.next_offset)
        ]
        position = page.next_offset
    assert encoded == [offset for offset in range(COUNT) if offset not in gone]
    assert [record.value for record in log.fetch("beside", 0, 0)] == [b"sound"]
    assert log.damage("orders")
    with pytest.raises(DamagedBatch):
        log.check_whole()


@SIZES
def test_times_are_found_and_the_rest_is_read_back_for_deduplication(
    log: EmbeddedLog, value_bytes: int
) -> None:
    gone = lost(log)
    for number in range(COUNT):
        found = log.resolve("orders", 0, AtTimestamp(1000 + number))
        if number in gone:  # where its batch begins: who reads there is told
            assert gone[0] <= found <= number
        else:
            assert found == number
    back = read_back(log._state)(TopicPartition(log.topic("orders").id, 0), 0)
    assert [offset for *_, offset in back] == [n for n in range(COUNT) if n not in gone]
    again = Record(value(COUNT - 1, value_bytes), b"%d" % (COUNT - 1), op=Op.UPDATE, ts_ms=2000)
    assert log.publish("orders", again)[0].offset == COUNT - 1


@SIZES
def test_what_is_skipped_stays_skipped_and_writers_go_on(log: EmbeddedLog, tmp_path: Path) -> None:
    gone = lost(log)
    holes = log.skip_to("orders", 0, gone[-1] + 1)
    skipped = [offset for hole in holes for offset in range(hole.first_offset, hole.next_offset)]
    assert skipped == list(gone)
    assert log.damage("orders") == ()
    assert log.publish("orders", Record(b"later"))[0].offset == COUNT
    log.merge_small_batches("orders", 0)
    sound_after_skip(log, gone)
    log.close()
    with open_log(tmp_path / "log", options=NOT_CACHED) as again:
        sound_after_skip(again, gone)


def sound_after_skip(log: EmbeddedLog, gone: range) -> None:
    offsets: list[int] = []
    position = 0
    while position <= COUNT:
        fetched = log.fetch("orders", 0, position)
        offsets += [record.offset for record in fetched]
        position = fetched.next_offset
    assert offsets == [offset for offset in range(COUNT + 1) if offset not in gone]
    assert log.check_whole().records == COUNT + 2


def test_a_block_of_two_partitions_damages_both_and_the_log_opens(tmp_path: Path) -> None:
    """Looking for what lies beyond the first one's end meets the damage, too."""
    rotten(tmp_path / "log", 100, b"sound", TopicSettings())
    with open_log(tmp_path / "log", options=NOT_CACHED) as log:
        assert log.publish("orders", Record(b"later"))[0].offset == COUNT
        with pytest.raises(DamagedBatch):
            log.fetch("orders", 0, COUNT - 1)
        assert [record.value for record in log.fetch("orders", 0, COUNT)] == [b"later"]
        with pytest.raises(DamagedBatch):
            log.fetch("beside", 0, 0)
        log.skip_to("beside", 0, 1)
        log.skip_to("orders", 0, COUNT)
        assert log.check_whole().records == COUNT + 2
