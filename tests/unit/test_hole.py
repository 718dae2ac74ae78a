"""Holes as they are stored, and where they stand in the index of times."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

import duolog
from duolog.errors import DamagedLog, UnsupportedFormat
from duolog.log.batch import decode, read_header
from duolog.log.hole import HoleNote, decode_hole, encode_hole, is_hole
from duolog.log.model import Record, TopicPartition
from duolog.log.times import entry_at, timed_batches

NOTE = HoleNote("ann", 1_700_000_000_000, "A batch of 3 records fails its checksum.", 117)
VERSION_1 = (
    b"H\x01\x00\x00\x00\xe4\x83\x8e\x00\x00\x00\x00\x00\x00\x00\x03"
    b'{"by":"ann","at_ms":1700000000000,"reason":"A batch of 3 records fails its checksum.",'
    b'"batch_bytes":117,"is_damaged":false}'
)


def test_the_first_version_is_read_and_written() -> None:
    assert encode_hole(3, NOTE) == VERSION_1
    assert is_hole(VERSION_1)
    assert decode_hole(VERSION_1) == (3, NOTE)


@pytest.mark.parametrize("read", [read_header, decode])
def test_what_knows_only_batches_refuses_a_hole_by_name(read: object) -> None:
    """So does an older Duolog, and so does each door for batches that others have encoded."""
    assert callable(read)
    with pytest.raises(UnsupportedFormat, match="format 72"):
        read(VERSION_1)


def test_a_newer_hole_is_refused_by_name() -> None:
    before, after = b"H\x09\x00\x00", VERSION_1[8:]
    crc32 = zlib.crc32(after, zlib.crc32(before))
    with pytest.raises(UnsupportedFormat, match="version 9"):
        decode_hole(before + crc32.to_bytes(4) + after)


@pytest.mark.parametrize("at", [4, 10, 15, 20, len(VERSION_1) - 1])
def test_a_damaged_hole_is_damage(at: int) -> None:
    flipped = bytearray(VERSION_1)
    flipped[at] ^= 1
    with pytest.raises(DamagedLog):
        decode_hole(bytes(flipped))
    with pytest.raises(DamagedLog):
        decode_hole(VERSION_1[:10])


@pytest.mark.parametrize(
    ("count", "note"),
    [
        (0, VERSION_1[16:]),
        (2**32, VERSION_1[16:]),
        (2**64 - 1, VERSION_1[16:]),
        (3, b""),
        (3, b"[]"),
        (3, b"null"),
        (3, b"\xff"),
        (3, b"[" * 100_000),
        (3, b'{"more":1}'),
        (3, b'{"by":1'),
    ],
)
def test_a_hole_that_is_wrong_inside_is_damage(count: int, note: bytes) -> None:
    """Whatever its checksum says."""
    after = count.to_bytes(8) + note
    crc32 = zlib.crc32(after, zlib.crc32(VERSION_1[:4]))
    with pytest.raises(DamagedLog):
        decode_hole(VERSION_1[:4] + crc32.to_bytes(4) + after)


@pytest.mark.parametrize("times", [[5, 5, 5, 5], [1, 2, 3, 4], [9, 1, 9, 2], [0, 0, 2**40, 1]])
def test_the_entry_of_times_of_each_batch_is_found(tmp_path: Path, times: list[int]) -> None:
    with duolog.open_log(tmp_path / "log") as log:
        where = TopicPartition(log.create_topic("orders").id, 0)
        assert entry_at(log._state.store, where, 0) is None
        for ts_ms in times:
            log.publish("orders", Record(b"v", ts_ms=ts_ms))
        entries = list(timed_batches(log._state.store, where))
        assert [entry.base_offset for entry in entries] == [0, 1, 2, 3]
        for entry in entries:
            assert entry_at(log._state.store, where, entry.base_offset) == entry
        assert entry_at(log._state.store, where, 99) == entries[-1]
