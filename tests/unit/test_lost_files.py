"""A file that RocksDB names and has removed is put back, when it is the very same file."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from duolog.errors import DamagedLog
from duolog.log import record_files
from duolog.log.embedded import open_log
from duolog.log.lost_files import left_files, named_by_keys, relinkings
from duolog.log.manifest import Table, Unreadable, _masked_crc, tables_of
from duolog.log.model import TopicSettings
from tests.support.records import STREAM, part_of

ROWS = [b"%05d" % n + bytes(2000) for n in range(30)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A closed log with tables of its own for two partitions and two epochs."""
    monkeypatch.setattr(record_files, "SHARE_BYTES", 100)
    path = tmp_path / "log"
    with open_log(path) as log:
        topic = log.create_topic("orders", TopicSettings(partitions=2))
        for epoch in range(2):
            rows = [b"%d" % epoch + row for row in ROWS]
            log.append(STREAM, epoch, [part_of(topic, {0: rows, 1: rows})])
    return path


def table_path(folder: Path, table: Table) -> Path:
    return folder / "db" / f"{table.number:06}.sst"


def lose(folder: Path, *tables: Table) -> list[Path]:
    """Take tables away; they are kept as what was handed over is."""
    kept = []
    for number, table in enumerate(tables):
        place = folder / "staging" / ("0" * 24) / "9"
        place.mkdir(parents=True, exist_ok=True)
        path = named_by_keys(place / f"{number:032}.sst", table.first_key, table.last_key)
        kept.append(table_path(folder, table).rename(path))
    return kept


def whole(folder: Path) -> int:
    with open_log(folder) as log:
        return log.check_whole().records


def test_the_manifest_names_the_tables_that_are_there(folder: Path) -> None:
    tables = tables_of(folder / "db", "records")
    assert len(tables) == 4
    for table in tables:
        assert table_path(folder, table).stat().st_size == table.size_bytes
        assert table.first_key <= table.last_key
        assert len(table.first_key) == 16
    assert tables_of(folder / "db", "meta") != tables
    assert tables_of(folder / "db", "nothing") == ()


def test_lost_tables_are_put_back(folder: Path) -> None:
    tables = tables_of(folder / "db", "records")
    lose(folder, *tables[:3])
    assert whole(folder) == 120
    assert left_files(folder / "staging") == []  # it is open: nobody needs them
    assert whole(folder) == 120


def test_a_table_that_was_not_kept_is_damage_and_nothing_is_changed(folder: Path) -> None:
    tables = tables_of(folder / "db", "records")
    kept, lost = lose(folder, *tables[:2])
    lost.unlink()
    before = sorted(path.name for path in (folder / "db").glob("*.sst"))
    with pytest.raises(DamagedLog, match="No such file"):
        open_log(folder)
    assert sorted(path.name for path in (folder / "db").glob("*.sst")) == before
    assert kept.exists()


def test_another_file_with_the_same_keys_and_size_is_not_taken(
    folder: Path, tmp_path: Path
) -> None:
    """RocksDB knows its files by an id: one of another log, alike in all else, is refused."""
    other = tmp_path / "other"
    with open_log(other) as log:
        topic = log.create_topic("orders", TopicSettings(partitions=2))
        for epoch in range(2):
            rows = [b"%d" % epoch + row for row in ROWS]
            log.append(STREAM, epoch, [part_of(topic, {0: rows, 1: rows})])
    table = tables_of(folder / "db", "records")[0]
    twin = next(
        each
        for each in tables_of(other / "db", "records")
        if (each.first_key, each.size_bytes) == (table.first_key, table.size_bytes)
    )
    (real,) = lose(folder, table)
    away = real.rename(tmp_path / "away")
    shutil.copy(table_path(other, twin), real)
    with pytest.raises(DamagedLog):
        open_log(folder)
    assert not table_path(folder, table).exists()
    assert real.exists()
    # With the right one beside it the right one is found, whichever is tried first.
    right = real.with_name("1" * 32 + real.name[32:])
    shutil.copy(away, right)
    os.utime(right, (1, 1))
    assert whole(folder) == 120


def test_a_file_of_another_size_is_not_tried(folder: Path) -> None:
    table = tables_of(folder / "db", "records")[0]
    (kept,) = lose(folder, table)
    kept.write_bytes(kept.read_bytes()[:-1])
    assert list(relinkings(folder / "db", folder / "staging")) == []
    with pytest.raises(DamagedLog):
        open_log(folder)


def test_a_manifest_with_something_unknown_is_left_to_rocksdb(folder: Path) -> None:
    (table, *_) = tables_of(folder / "db", "records")
    lose(folder, table)
    manifest = folder / "db" / (folder / "db" / "CURRENT").read_text().strip()
    content = manifest.read_bytes()
    checked = b"\x01" + b"\x7f\x00"
    checksum = _masked_crc(checked).to_bytes(4, "little")
    manifest.write_bytes(content + checksum + (2).to_bytes(2, "little") + checked)
    with pytest.raises(Unreadable, match="tag 127"):
        tables_of(folder / "db", "records")
    assert list(relinkings(folder / "db", folder / "staging")) == []


def test_a_manifest_that_is_cut_off_is_read_to_its_last_record(folder: Path) -> None:
    manifest = folder / "db" / (folder / "db" / "CURRENT").read_text().strip()
    content = manifest.read_bytes()
    whole_one = tables_of(folder / "db", "records")
    for cut in (1, 3, 5):
        manifest.write_bytes(content + b"\0\0\0\0\x20\x00\x01abc"[:cut])
        assert tables_of(folder / "db", "records") == whole_one
    manifest.write_bytes(content + bytes(4096))  # room made ahead
    assert tables_of(folder / "db", "records") == whole_one


def test_what_a_dead_owner_made_and_did_not_hand_over_is_removed(folder: Path) -> None:
    place = folder / "staging" / ("0" * 24) / "9"
    place.mkdir(parents=True)
    for name in (f"{'1' * 32}.sst", f"{'1' * 32}-00-01.sst", f"{'1' * 32}-00-01.given"):
        (place / name).write_bytes(b"half of it")
    assert whole(folder) == 120
    assert left_files(folder / "staging") == []
