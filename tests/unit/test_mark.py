"""The mark may lag, never lead, and survives a torn write."""

from __future__ import annotations

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
