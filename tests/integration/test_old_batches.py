"""Logs from before batches were looked into: what is wrong in them is named, and goes to nobody."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from duolog.bridge.http.stored_pages import StoredBatch, fetch_stored
from duolog.errors import DamagedLog, InvalidRecord, InvalidSetting, UnsupportedFormat
from duolog.log import EmbeddedLog, LogOptions, open_log
from duolog.log.batch import encode
from duolog.log.checked import pack_checked, unpack_checked
from duolog.log.from_backup import restore_backup
from duolog.log.heads import pack_head
from duolog.log.keys import partition_key, record_key, time_key
from duolog.log.model import Head, Record, TopicPartition
from duolog.log.options import MOST_RECORD_BYTES
from duolog.log.store import WriteBatch
from duolog.log.times import BatchSize, pack_batch_size
from tests.support.hostile import ArrowPlaces, with_number
from tests.support.records import STREAM, part_of
from tests.unit.test_batch import NOW, arrow_of

MANY = [Record(b"value%d" % n, ts_ms=NOW) for n in range(2000)]
GOOD = encode(arrow_of(MANY))
HOSTILE = with_number(GOOD, ArrowPlaces.of(GOOD).nodes[2], 2001)
BUT_FOR_THE_MESSAGE = with_number(GOOD, ArrowPlaces.of(GOOD).nodes[1] + 8, 1999)  # nulls


def old_log(folder: Path, *batches: bytes) -> None:
    """A log with these batches, as one that has checked nothing but checksums."""
    with open_log(folder) as log:
        topic = log.create_topic("orders")
        where = TopicPartition(topic.id, 0)
        write = WriteBatch()
        at = 0
        for encoded in batches:
            write.put("records", record_key(where, at), encoded)
            write.put("times", time_key(where, NOW, at), pack_batch_size(BatchSize(2000, 1)))
            at += 2000
        write.put("heads", partition_key(where), pack_head(Head(0, at, 1, NOW)))
        write.delete("meta", b"batches_checked_from")
        log._state.store.commit(write)


def checked(log: EmbeddedLog) -> list[bool]:
    found = log.fetch_encoded("orders", 0, 0, max_bytes=1 << 30)
    return [batch.is_checked for batch in found.batches]


def passed_on(log: EmbeddedLog, offset: int = 0) -> list[bool]:
    """Which batches go out as they are stored."""
    page = fetch_stored(
        log, log.topic("orders").id, 0, offset, max_records=100_000, max_bytes=1 << 30
    )
    return [isinstance(batch, StoredBatch) for batch in page.batches]


@pytest.mark.parametrize("wrong", [HOSTILE, BUT_FOR_THE_MESSAGE])
def test_a_wrong_batch_of_an_old_log_is_named_and_passed_on_to_nobody(
    tmp_path: Path, wrong: bytes
) -> None:
    old_log(tmp_path / "log", GOOD, wrong, GOOD)
    with open_log(tmp_path / "log") as log:
        assert log.fetch("orders", 0, 0, max_records=2000).count == 2000
        with pytest.raises(DamagedLog, match="came in like this"):
            log.fetch("orders", 0, 2000)
        with pytest.raises(DamagedLog, match="came in like this"):
            list(log.fetch_encoded("orders", 0, 2000).decode())
        assert passed_on(log) == [False]  # the page ends before it, the next one begins with it
        with pytest.raises(DamagedLog, match="came in like this"):
            passed_on(log, 2000)
        assert log.fetch("orders", 0, 4000).count == 2000


def test_what_an_old_log_has_is_unpacked_and_what_is_added_is_passed_on(tmp_path: Path) -> None:
    old_log(tmp_path / "log", GOOD, GOOD)
    for _ in range(2):
        with open_log(tmp_path / "log") as log:
            assert checked(log) == [False, False]
            assert passed_on(log) == [False, False]
    with open_log(tmp_path / "log") as log:
        part = part_of(log.topic("orders"), {0: [b"x%d" % n for n in range(2000)]})
        log.append(STREAM, 0, [part])
    with open_log(tmp_path / "log") as log:
        assert checked(log) == [False, False, *[True] * len(part.batches)]
        assert passed_on(log) == [False, False, *[True] * len(part.batches)]


def test_all_of_a_new_log_is_checked(tmp_path: Path) -> None:
    with open_log(tmp_path / "log") as log:
        part = part_of(log.create_topic("orders"), {0: [b"x%d" % n for n in range(2000)]})
        log.append(STREAM, 0, [part])
        assert set(checked(log)) == {True}
    with open_log(tmp_path / "log") as log:
        assert set(checked(log)) == {True}


def begin(step: str, size: int) -> Callable[[int], object]:
    del step, size
    return lambda _: None


def test_a_restored_log_is_checked_from_its_beginning(tmp_path: Path) -> None:
    old_log(tmp_path / "log", GOOD, GOOD)
    with open_log(tmp_path / "log") as log:
        log.backup(tmp_path / "backup")
    restored = restore_backup(tmp_path / "backup", tmp_path / "again", LogOptions(), begin)
    assert restored.whole.unreadable == ()
    with open_log(tmp_path / "again") as log:
        assert checked(log) == [True, True]


def test_a_restore_names_what_nobody_can_read_and_keeps_the_rest(tmp_path: Path) -> None:
    old_log(tmp_path / "log", GOOD, HOSTILE, GOOD)
    with open_log(tmp_path / "log") as log:
        log.backup(tmp_path / "backup")
    restored = restore_backup(tmp_path / "backup", tmp_path / "again", LogOptions(), begin)
    (unreadable,) = restored.whole.unreadable
    assert unreadable.startswith("topic 'orders' partition 0 at offset 2,000: ")
    with open_log(tmp_path / "again") as log:
        assert checked(log) == [False, False, False]
        assert log.fetch("orders", 0, 4000).count == 2000


def test_a_backup_cannot_say_itself_that_it_was_checked(tmp_path: Path) -> None:
    old_log(tmp_path / "log", HOSTILE)
    with open_log(tmp_path / "log") as log:
        lie = WriteBatch()
        lie.put("meta", b"batches_checked_from", pack_checked({}))
        log._state.store.commit(lie)
        log.backup(tmp_path / "backup")
    restore_backup(tmp_path / "backup", tmp_path / "again", LogOptions(), begin)
    with open_log(tmp_path / "again") as log:
        assert checked(log) == [False]


def test_the_first_bytes_stay_readable() -> None:
    known = {TopicPartition(1, 0): 2**40, TopicPartition(1, 3): 7}
    first = bytes.fromhex(
        "01 00000001 00000000 0000010000000000 00000001 00000003 0000000000000007"
    )
    assert pack_checked(known) == first
    assert unpack_checked(first) == known
    with pytest.raises(UnsupportedFormat, match="newer"):
        unpack_checked(b"\x02")


def test_no_log_takes_records_that_it_could_not_give_back() -> None:
    LogOptions(max_record_bytes=MOST_RECORD_BYTES)
    with pytest.raises(InvalidSetting, match="at most"):
        LogOptions(max_record_bytes=MOST_RECORD_BYTES + 1)


def test_what_comes_back_from_elsewhere_is_looked_into(tmp_path: Path) -> None:
    records = arrow_of(MANY)
    wrong = {
        "table": pa.array([b"\xff"] * 2000).view(pa.string()),
        "op": pa.array([9] * 2000, pa.int8()),
    }
    with open_log(tmp_path / "log") as log:
        log.create_topic("orders")
        refill = log.refill("orders", 0, 100)
        for name, column in wrong.items():
            at = records.schema.get_field_index(name)
            with pytest.raises(InvalidRecord, match="partition 0 from offset 100"):
                refill.add(records.set_column(at, records.schema.field(at), column))
        refill.add(records)
        refill.sync()
        assert log.fetch("orders", 0, 100, max_records=5000).count == 2000
