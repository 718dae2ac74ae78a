"""What a removal notes on the disk, and how it is read again."""

from __future__ import annotations

from pathlib import Path

import pytest

from duolog.errors import UnsupportedFormat
from duolog.log import open_log
from duolog.log.keys import LAST_OFFSET, parse_hole_key, record_key
from duolog.log.model import Record, Retention, TopicPartition
from duolog.log.removals import Removal, all_below, load_removals, note_removals, remove
from duolog.log.store import WriteBatch

WHERE = TopicPartition(7, 2)
KEY = b"removing/\0\0\0\x07\0\0\0\x02"
NOTED = b"\x01" + b"".join(number.to_bytes(8, "big") for number in (15, 1_700_000_000_000, 12))


def test_a_note_has_these_bytes() -> None:
    batch = WriteBatch()
    note_removals(batch, [Removal(WHERE, 15, 1_700_000_000_000, 12)])
    assert batch.operations == [("put", "meta", KEY, NOTED)]


def test_a_note_of_these_bytes_is_understood_and_carried_out(tmp_path: Path) -> None:
    with open_log(tmp_path / "log") as log:
        store = log._state.store
        batch = WriteBatch()
        batch.put("meta", KEY, NOTED)
        store.commit(batch)
        assert load_removals(store) == [Removal(WHERE, 15, 1_700_000_000_000, 12)]
    with open_log(tmp_path / "log") as log:
        assert load_removals(log._state.store) == []


def test_a_note_of_a_later_version_is_refused(tmp_path: Path) -> None:
    with open_log(tmp_path / "log") as log:
        batch = WriteBatch()
        batch.put("meta", KEY, b"\x02" + NOTED[1:])
        log._state.store.commit(batch)
    with pytest.raises(UnsupportedFormat, match=r"version 2\. Use a newer Duolog"):
        open_log(tmp_path / "log")


def test_nothing_at_or_beyond_the_start_is_removed(tmp_path: Path) -> None:
    batch = WriteBatch()
    with open_log(tmp_path / "log") as log:
        remove(log._state.store, batch, [all_below(WHERE, 15)])
    (_, _, first, upto), (_, _, first_time, upto_time), (kind, family, key, _) = batch.operations
    assert (first, upto) == (KEY[9:] + bytes(8), KEY[9:] + bytes(7) + b"\x0f")
    last_time = KEY[9:] + 2 * LAST_OFFSET.to_bytes(8, "big")
    assert first_time == KEY[9:] + bytes(16)
    assert upto_time > last_time
    assert (kind, family, key) == ("delete", "meta", KEY)


@pytest.mark.parametrize("way", ["clear", "retention", "drop"])
def test_what_is_remembered_of_holes_goes_with_what_was_around_them(
    tmp_path: Path, way: str
) -> None:
    with open_log(tmp_path / "log") as log:
        for name in ("orders", "beside"):
            topic = log.create_topic(name)
            for _ in range(3):
                log.publish(name, Record(b"1"))
            damaged = WriteBatch()
            damaged.put("records", record_key(TopicPartition(topic.id, 0), 1), b"x")
            log._state.store.commit(damaged)
            assert [hole.first_offset for hole in log.skip_to(name, 0, 2)] == [1]
        if way == "clear":
            log.clear_topic("orders")
        elif way == "drop":
            log.drop_topic("orders")
        else:
            log.set_retention("orders", Retention(max_bytes=1))
            log.enforce_retention()
        left = log._state.store.scan_keys("meta", b"hole", b"holf")
        assert [parse_hole_key(key) for key in left] == [
            (TopicPartition(log.topic("beside").id, 0), 1)
        ]
