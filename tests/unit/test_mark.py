"""The mark may lag, never lead, and survives a torn write."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from duolog.errors import DamagedLog
from duolog.log.mark import Mark

OLD = bytes.fromhex("0100000000000000000000000000002a")


def marked(path: Path, *sequences: int) -> bytes:
    mark = Mark(path)
    mark.read_or_create(is_new=True)
    for sequence in sequences:
        mark.advance(sequence)
    mark.close()
    return path.read_bytes()


def read(path: Path) -> int:
    mark = Mark(path)
    try:
        return mark.read_or_create(is_new=False)
    finally:
        mark.close()


def test_the_highest_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "mark"
    marked(path, 5, 9, 7)
    assert read(path) == 9


@pytest.mark.parametrize("at", range(0, 128, 5))
def test_one_torn_slot_leaves_the_other(tmp_path: Path, at: int) -> None:
    path = tmp_path / "mark"
    content = bytearray(marked(path, 5, 9))
    content[at] ^= 0x40
    path.write_bytes(content)
    assert read(path) in {5, 9}


def test_a_mark_that_is_gone_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "mark"
    marked(path, 5)
    for content in (b"", b"\0" * 128, b"x" * 128):
        path.write_bytes(content)
        with pytest.raises(DamagedLog, match="backup"):
            read(path)


def test_the_bytes_of_version_1_stay_readable(tmp_path: Path) -> None:
    path = tmp_path / "mark"
    content = marked(path, 42)
    assert content[:16] == OLD
    path.write_bytes(OLD + bytes.fromhex("99681312") + b"\0" * (128 - 20))
    assert read(path) == 42


@pytest.mark.parametrize(("torn", "left"), [(0, 9), (1, 5)])
def test_after_a_torn_write_the_good_slot_is_not_written_next(
    tmp_path: Path, torn: int, left: int
) -> None:
    path = tmp_path / "mark"
    content = bytearray(marked(path, 5, 9))
    content[torn * 64] ^= 0x40
    path.write_bytes(content)
    mark = Mark(path)
    assert mark.read_or_create(is_new=False) == left
    mark.advance(10)
    mark.close()
    again = bytearray(path.read_bytes())
    again[torn * 64] ^= 0x40  # torn once more
    path.write_bytes(again)
    assert read(path) == left


def test_a_short_write_is_an_error_and_leaves_the_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mark"
    marked(path, 5, 9)
    mark = Mark(path)
    mark.read_or_create(is_new=False)
    whole = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, content, at: whole(fd, content[:20], at))
    for sequence in (10, 11, 12):
        with pytest.raises(OSError, match="20 of 64 bytes"):
            mark.advance(sequence)
        assert mark.sequence == 9
    monkeypatch.undo()
    assert read(path) in {9, 12}
    mark.advance(13)
    mark.close()
    assert read(path) == 13
