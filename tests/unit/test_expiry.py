"""Writers that older Duologs have remembered without a time, and those that write meanwhile."""

from __future__ import annotations

import struct
from pathlib import Path

from duolog.log import EmbeddedLog, LogOptions, open_log
from duolog.log.keys import epoch_key, sequence_key
from duolog.log.model import Record
from duolog.log.published import content_of, unpack_published
from duolog.log.store import WriteBatch
from tests.support.clock import ManualClock
from tests.support.records import BATCH

HOUR_SECONDS = 3600
WEEK_SECONDS = 7 * 24 * HOUR_SECONDS
OLD_EPOCH = (
    b'{"v":1,"epoch":4,"ranges":[["orders",0,5,7]],"fingerprints":{"1":[2,1,77]},'
    b'"duplicates_dropped":0,"at":1500000000000}'
)


def old_entry(log: EmbeddedLog, record: Record) -> bytes:
    """As version 1 remembered a published record: without a time."""
    return struct.pack(">BIIQ16s", 1, log.topic("orders").id, 0, 0, content_of(record, 1))


def test_what_was_remembered_without_a_time_is_as_old_as_the_first_look_at_it(
    tmp_path: Path,
) -> None:
    clock, record = ManualClock(), Record(b"v")
    options = LogOptions(clock=clock)
    with open_log(tmp_path / "log", options=options) as log:
        log.create_topic("orders")
        log.publish("orders", record)
        old = WriteBatch()
        old.put("epochs", sequence_key("old", 3), old_entry(log, record))
        old.put("epochs", epoch_key("batch:job:orders"), OLD_EPOCH)
        log._state.store.commit(old)
        assert unpack_published(old_entry(log, record)).at_ms is None
    clock.advance(seconds=2 * WEEK_SECONDS)
    with open_log(tmp_path / "log", options=options) as log:
        log.enforce_retention()  # begins to count
        clock.advance(seconds=WEEK_SECONDS - 3600)
        log.enforce_retention()
        assert log.last_sequence("old") == 3
        assert log.publish("orders", record, writer="old", sequence=3)[0].offset == 0
        last = log.last_epoch(BATCH)
        assert last is not None
        assert last.epoch == 4
    with open_log(tmp_path / "log", options=options) as log:
        clock.advance(seconds=2 * 3600)
        log.enforce_retention()  # finds them idle
        clock.advance(seconds=HOUR_SECONDS)
        log.enforce_retention()
        assert log.last_sequence("old") is None
        assert log.last_epoch(BATCH) is None


def test_a_publisher_that_publishes_while_it_is_looked_at_is_not_forgotten(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    with open_log(tmp_path / "log", options=LogOptions(clock=clock)) as log:
        log.create_topic("orders")
        for writer in ("idle", "woken"):
            log.publish("orders", Record(b"v"), writer=writer, sequence=5)
        clock.advance(seconds=2 * WEEK_SECONDS)
        log.enforce_retention()
        clock.advance(seconds=HOUR_SECONDS)

        def wake() -> bool:
            """Asked after each writer: an earlier sequence, so that the last one stays old."""
            log.publish("orders", Record(b"new"), writer="woken", sequence=3)
            return False

        log.enforce_retention(cancelled=wake)
        assert log.last_sequence("idle") is None
        assert log.last_sequence("woken") == 5
        assert log.stats().publishers_expired == 1


def test_many_publishers_are_forgotten_in_few_writes(tmp_path: Path) -> None:
    clock = ManualClock()
    with open_log(tmp_path / "log", options=LogOptions(clock=clock)) as log:
        log.create_topic("orders")
        for number in range(300):
            log.publish("orders", Record(b"v"), writer=f"w{number}", sequence=0)
        clock.advance(seconds=2 * WEEK_SECONDS)
        log.enforce_retention()
        clock.advance(seconds=HOUR_SECONDS)
        before = log.stats().syncs
        log.enforce_retention()
        assert log.stats().publishers_expired == 300
        assert log.stats().syncs - before == 2
        assert log._state.store.scan_keys("epochs", b"", b"\xff") == []
