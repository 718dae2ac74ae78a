"""A MANIFEST whose end is not as it was written: cut where nothing is missing, else refused."""

from __future__ import annotations

import errno
import os
import shutil
from contextlib import suppress
from pathlib import Path

import google_crc32c
import pytest

from duolog.errors import DamagedLog, DiskFull, NotWritten
from duolog.log import manifest, record_files
from duolog.log.embedded import open_log
from duolog.log.manifest import manifest_path, needed_logs, readable_length
from duolog.log.mark import Mark
from duolog.log.model import Record, TopicSettings
from duolog.log.torn_manifest import TRIAL, find_torn_manifest
from tests.support.records import STREAM, part_of

ROWS = [b"%05d" % n + bytes(2000) for n in range(30)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A log as a power loss leaves it: with a table of its own for an epoch, and with records in
    the write-ahead log.
    """
    monkeypatch.setattr(record_files, "SHARE_BYTES", 100)
    with open_log(tmp_path / "log") as log:
        topic = log.create_topic("orders", TopicSettings(partitions=1))
        log.append(STREAM, 0, [part_of(topic, {0: ROWS})])
        log.publish("orders", Record(b"last"))
        shutil.copytree(tmp_path / "log", tmp_path / "left")
    return tmp_path / "left"


def records_of(content: bytes) -> list[tuple[int, int]]:
    """Where each record of a MANIFEST begins and ends."""
    ends = [record.end for record in manifest._records(content)]
    return list(zip([0, *ends], ends, strict=False))


def oldest_log_of(folder: Path, content: bytes) -> Path:
    needed = needed_logs(content)
    assert needed is not None
    return folder / "db" / f"{needed.oldest:06}.log"


def rot(folder: Path, at: int) -> None:
    path = manifest_path(folder / "db")
    content = bytearray(path.read_bytes())
    content[at] ^= 0xFF
    path.write_bytes(content)


def values(folder: Path) -> list[bytes | None]:
    with open_log(folder) as log:
        log.check_whole()
        return [record.value for record in log.fetch("orders", 0, 0)]


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "db").iterdir() if path.is_file()}


def test_a_sound_manifest_is_not_touched(folder: Path) -> None:
    content = manifest_path(folder / "db").read_bytes()
    assert readable_length(content, checksums=True) == len(content)
    assert oldest_log_of(folder, content).exists()
    assert find_torn_manifest(folder / "db", checksums=True) is None


TAILS = [b"\x01", b"\x99" * 6, b"\x99" * 40, bytes(100) + b"\x01", bytes(50)]


@pytest.mark.parametrize("tail", TAILS)
def test_what_a_power_loss_left_of_a_record_is_cut(folder: Path, tail: bytes) -> None:
    path = manifest_path(folder / "db")
    sound = path.read_bytes()
    path.write_bytes(sound + tail)
    torn = find_torn_manifest(folder / "db", checksums=True)
    assert torn is not None
    assert torn.length == len(sound)
    assert values(folder) == [*ROWS, b"last"]
    assert not (folder / TRIAL).exists()


@pytest.mark.parametrize("is_killed", [False, True])
@pytest.mark.parametrize("tail", TAILS)
def test_so_it_is_after_a_restart(folder: Path, tail: bytes, is_killed: bool) -> None:
    """RocksDB then asks for logs from a number on that no file has."""
    if not is_killed:
        values(folder)
    with open_log(folder) as log:
        log.publish("orders", Record(b"again"))
        log._state.store._families["records"].flush()
        shutil.copytree(folder, folder.with_name("again"))
    folder = folder.with_name("again")
    path = manifest_path(folder / "db")
    assert not oldest_log_of(folder, path.read_bytes()).exists()
    path.write_bytes(path.read_bytes() + tail)
    assert values(folder) == [*ROWS, b"last", b"again"]


def test_logs_that_went_after_a_restart_are_missed(folder: Path) -> None:
    with open_log(folder) as log:
        log.ack("readers", "orders", 5, 0)
        for name in ("groups", "heads", "topics", "records", "times", "meta", "epochs"):
            log._state.store._families[name].flush()
        log.publish("orders", Record(b"again"))
        shutil.copytree(folder, folder.with_name("again"))
    folder = folder.with_name("again")
    content = manifest_path(folder / "db").read_bytes()
    tables = [end for begin, end in records_of(content)
              if len(manifest._tables(content[:end], "groups"))]  # fmt: skip
    begin = max(begin for begin, end in records_of(content) if end == tables[0])
    manifest_path(folder / "db").write_bytes(content[:begin] + bytes(len(content) - begin))
    with pytest.raises(DamagedLog, match=r"write-ahead logs from \d+.log on are gone"):
        open_log(folder)


def test_a_trial_that_cannot_be_made_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = manifest_path(folder / "db")
    path.write_bytes(path.read_bytes() + b"\x99" * 40)
    (folder / "db" / "lost+found").mkdir()
    (folder / TRIAL).write_bytes(b"somebody's")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "copy", full)
        with pytest.raises(DiskFull, match=r"is torn.*nothing was changed"):
            open_log(folder)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(NotWritten, match="nothing of it is lost"):
            open_log(folder)
    assert values(folder) == [*ROWS, b"last"]


def test_a_record_that_names_a_table_is_not_cut_off_when_the_table_is_needed(folder: Path) -> None:
    content = manifest_path(folder / "db").read_bytes()
    begin, _ = next(
        (begin, end)
        for begin, end in records_of(content)
        if needed_logs(content[:end]) and len(manifest._tables(content[:end], "records"))
    )
    rot(folder, begin + 20)
    before = files(folder)
    with pytest.raises(DamagedLog, match=rf"from byte {begin:,} on.*records of it are missing"):
        open_log(folder)
    after = files(folder)
    assert {name: after[name] for name in before if not name.startswith("LOG")} == {
        name: content for name, content in before.items() if not name.startswith("LOG")
    }
    assert not (folder / TRIAL).exists()


def test_nothing_is_cut_off_when_the_log_before_it_is_gone(folder: Path) -> None:
    content = manifest_path(folder / "db").read_bytes()
    begin, _ = records_of(content)[-1]
    rot(folder, begin + 8)
    log = oldest_log_of(folder, content)
    log.unlink()
    with pytest.raises(DamagedLog, match=f"write-ahead logs from {log.name} on are gone"):
        open_log(folder)


def test_a_manifest_that_names_nothing_yet_is_refused(folder: Path) -> None:
    rot(folder, 8)
    with pytest.raises(DamagedLog, match=r"from byte 0 on.*names no write-ahead log"):
        open_log(folder)


def test_checksums_are_those_of_the_library() -> None:
    for content in (b"", b"a", b"123456789", bytes(range(256)) * 9):
        crc = google_crc32c.value(content)
        rotated = crc >> 15 | crc << 17
        assert manifest._masked_crc(content) == (rotated + 0xA282EAD8) & 0xFFFFFFFF


def test_a_length_that_rots_does_not_hide_what_follows(folder: Path) -> None:
    """RocksDB takes such a record for a torn one, and opens without what follows it."""
    content = manifest_path(folder / "db").read_bytes()
    for begin, _ in records_of(content):
        copy = folder.with_name(f"copy{begin}")
        shutil.copytree(folder, copy)
        rot(copy, begin + 5)  # the high byte of the length: far beyond the end
        with suppress(DamagedLog):
            assert values(copy) == [*ROWS, b"last"]


def test_a_log_that_was_torn_while_it_was_made_is_made_again(tmp_path: Path) -> None:
    """Nothing was ever written into it, so nothing can be lost."""
    with open_log(tmp_path / "log") as log:
        log_id = log.log_id
        shutil.copytree(tmp_path / "log", tmp_path / "left")
    left = tmp_path / "left"
    for path in (left / "db").glob("*.log"):
        path.write_bytes(b"")
    (left / "mark").unlink()
    mark = Mark(left / "mark")
    mark.read_or_create(is_new=True)
    mark.close()
    begin, _ = records_of(manifest_path(left / "db").read_bytes())[-1]
    rot(left, begin + 10)
    with open_log(left) as log:
        assert log.log_id != log_id
        log.create_topic("orders")
