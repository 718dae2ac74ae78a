"""A backup is one moment of a log; a restored log is all of it, or none."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from duolog import open_log
from duolog.cli.program import app
from duolog.errors import (
    DamagedLog,
    DiskFull,
    DuologError,
    FolderNotEmpty,
    LogBusy,
    NotABackup,
    RestoreUnfinished,
    UnsupportedFormat,
)
from duolog.log.from_backup import RestoredBackup, restore_backup
from duolog.log.mirror_model import MirrorProducer, MirrorTarget
from duolog.log.model import Record, TopicSettings
from duolog.log.options import LogOptions
from tests.support import restoring
from tests.support.children import Child
from tests.support.host_server import Host

COUNT = 300
POINTS = ("store.sync", "restore.made", "restore.moved_some", "restore.moved", "restore.is_log")
Duolog = Callable[..., Result]


@pytest.fixture
def duolog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Duolog:
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(app, arguments)


@pytest.fixture
def backup(tmp_path: Path, duolog: Duolog) -> Path:
    """Of a log with records in two partitions, and a group."""
    fill(tmp_path / "log")
    result = duolog("backup", "--log", "log", "backup", "--json")
    assert result.exit_code == 0, result.output
    return tmp_path / "backup"


def fill(folder: Path) -> str:
    with open_log(folder) as log:
        log.create_topic("orders", TopicSettings(partitions=2))
        for first in range(0, COUNT, 100):
            log.publish(
                "orders", [Record(b"%d" % n, key=b"%d" % n) for n in range(first, first + 100)]
            )
        log.ack("billing", "orders", 4, 1)
        return log.log_id


def content(folder: Path) -> Any:
    with open_log(folder, create=False) as log:
        return (
            [
                [
                    (r.offset, r.key, r.value, r.ts_ms)
                    for r in log.fetch("orders", part.partition, 0)
                ]
                for part in log.offsets("orders")
            ],
            [(p.group, p.partition, p.position) for p in log.group_positions()],
        )


def restore(source: Path, folder: Path, **options: Any) -> RestoredBackup:
    return restore_backup(
        source, folder, LogOptions(**options), lambda _words, _total: lambda _: None
    )


def test_a_restored_log_has_what_the_log_had_and_an_id_of_its_own(
    tmp_path: Path, duolog: Duolog, backup: Path
) -> None:
    with open_log(tmp_path / "log") as log:
        original = log.log_id
    result = duolog("restore", "backup", "--log", "again", "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert (told["records"], told["copied_from"]) == (COUNT, original)
    with open_log(tmp_path / "again") as log:
        assert (log.log_id, log.identity.copied_from) == (told["log_id"], original)
        assert log.log_id != original
    assert content(tmp_path / "again") == content(tmp_path / "log")
    assert not (tmp_path / "again" / "restoring").exists()


def test_a_log_that_is_served_is_backed_up_while_it_is_written_to(
    tmp_path: Path, duolog: Duolog
) -> None:
    with Host(tmp_path / "log") as host:
        host.log.announce(host.url)
        host.log.create_topic("orders")
        host.log.publish("orders", [Record(b"before")])
        result = duolog("backup", "--log", "log", "backup")
        assert result.exit_code == 0, result.output
        assert "the log's own disk" in result.stderr
        host.log.publish("orders", [Record(b"after")])
        assert not (tmp_path / "log" / "checkpoints").exists()
    restore(tmp_path / "backup", tmp_path / "again")
    with open_log(tmp_path / "again") as log:
        assert [r.value for r in log.fetch("orders", 0, 0)] == [b"before"]


def test_a_backup_shares_nothing_with_its_log_unless_told(
    tmp_path: Path, duolog: Duolog, backup: Path
) -> None:
    def links(folder: Path) -> set[int]:
        return {file.stat().st_nlink for file in (folder / "db").glob("*.sst")}

    assert links(backup) == {1}
    assert duolog("backup", "--log", "log", "linked", "--link").exit_code == 0
    assert max(links(tmp_path / "linked")) == 2
    restore(tmp_path / "linked", tmp_path / "again")
    assert links(tmp_path / "again") == {1}


def test_the_mirror_of_a_restored_log_is_not_its_own_and_that_is_said(
    tmp_path: Path, duolog: Duolog
) -> None:
    fill(tmp_path / "log")
    with open_log(tmp_path / "log") as log:
        log.keep_mirror_producer(MirrorProducer("cluster", 7, 0))
        log.begin_mirror("orders", 0, MirrorTarget("cluster", "orders", "id", 7, 0, 0, 0))
    duolog("backup", "--log", "log", "backup")
    result = duolog("restore", "backup", "--log", "again")
    assert "duolog mirror restart" in result.stderr
    with open_log(tmp_path / "again") as log:
        assert log.mirror("orders", 0) is not None
        assert log.mirror_producer("cluster") is None


def test_a_folder_that_has_something_is_never_written_into(tmp_path: Path, backup: Path) -> None:
    with pytest.raises(FolderNotEmpty, match="There is a log"):
        restore(backup, tmp_path / "log")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    with pytest.raises(FolderNotEmpty, match=r"notes\.txt"):
        restore(backup, tmp_path / "full")
    assert [entry.name for entry in (tmp_path / "full").iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("lost", ["FORMAT", "mark", "db"])
def test_what_is_no_whole_backup_is_refused(tmp_path: Path, backup: Path, lost: str) -> None:
    piece = backup / lost
    shutil.rmtree(piece) if piece.is_dir() else piece.unlink()
    with pytest.raises(NotABackup, match=lost):
        restore(backup, tmp_path / "again")
    assert not (tmp_path / "again").exists()


@pytest.mark.parametrize(
    ("file", "text", "error"),
    [
        ("FORMAT", "duolog log format 99\n", UnsupportedFormat),
        ("backup.json", '{"version": 99, "log_id": "x", "taken_ms": 1}', UnsupportedFormat),
        ("backup.json", "{", NotABackup),
    ],
)
def test_a_newer_or_unreadable_backup_is_refused_by_name(
    tmp_path: Path, backup: Path, file: str, text: str, error: type[DuologError]
) -> None:
    (backup / file).write_text(text)
    with pytest.raises(error):
        restore(backup, tmp_path / "again")


def test_version_1_of_what_a_backup_says_stays_readable(tmp_path: Path, backup: Path) -> None:
    (backup / "backup.json").write_text('{"log_id": "ab", "taken_ms": 1, "version": 1}')
    assert restore(backup, tmp_path / "again").whole.records == COUNT


def test_damage_anywhere_in_the_records_is_found_before_it_is_a_log(
    tmp_path: Path, backup: Path
) -> None:
    largest = max((backup / "db").glob("*.sst"), key=lambda file: file.stat().st_size)
    whole = largest.read_bytes()
    for share in (0.1, 0.5, 0.9):
        at = int(len(whole) * share)
        largest.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(DamagedLog, match="backup"):
            restore(backup, tmp_path / "again")
        assert not (tmp_path / "again").exists()
    largest.write_bytes(whole)
    assert restore(backup, tmp_path / "again").whole.records == COUNT


def test_a_lost_batch_is_found_although_every_checksum_is_right(tmp_path: Path) -> None:
    fill(tmp_path / "log")
    with open_log(tmp_path / "log") as log:
        store = log._state.store
        (first, *_), *_ = [store.scan("records", b"", b"\xff" * 16)]
        from duolog.log.store import WriteBatch

        batch = WriteBatch()
        batch.delete("records", first[0])
        store.commit(batch)
        with pytest.raises(DamagedLog, match="do not join"):
            log.check_whole()


def test_a_log_in_use_is_no_backup(tmp_path: Path) -> None:
    fill(tmp_path / "log")
    with open_log(tmp_path / "log"), pytest.raises(LogBusy, match="duolog backup"):
        restore(tmp_path / "log", tmp_path / "again")
    assert restore(tmp_path / "log", tmp_path / "again").whole.records == COUNT


def test_a_disk_without_room_is_said_before_anything_is_copied(
    tmp_path: Path, backup: Path
) -> None:
    with pytest.raises(DiskFull, match="nothing was changed"):
        restore(backup, tmp_path / "again", min_free_bytes=1 << 60)
    assert not (tmp_path / "again").exists()


def test_a_backup_that_was_cut_short_is_none_and_says_what_to_do(
    tmp_path: Path, duolog: Duolog
) -> None:
    fill(tmp_path / "log")
    (tmp_path / "backup" / "db").mkdir(parents=True)
    result = duolog("backup", "--log", "log", "backup")
    assert result.exit_code == 1
    assert "cut short" in result.stderr
    with pytest.raises(NotABackup):
        restore(tmp_path / "backup", tmp_path / "again")


def test_a_backup_through_a_url_is_refused_by_name(duolog: Duolog) -> None:
    result = duolog("backup", "--url", "http://127.0.0.1:1", "x")
    assert result.exit_code == 2
    assert "--log DIR" in result.stderr


@pytest.mark.parametrize("point", POINTS)
def test_a_restore_that_is_killed_is_no_log_and_begins_anew(
    tmp_path: Path, backup: Path, point: str
) -> None:
    again = tmp_path / "again"
    killed(again, backup, point)
    check_killed(again, backup, point)


def test_the_mutant_that_says_too_early_that_it_is_a_log_is_caught(
    tmp_path: Path, backup: Path
) -> None:
    again = tmp_path / "again"
    killed(again, backup, "restore.moved_some", mutant=True)
    with pytest.raises((AssertionError, DamagedLog)):
        check_killed(again, backup, "restore.moved_some")


def killed(folder: Path, source: Path, point: str, *, mutant: bool = False) -> None:
    asked = {"folder": str(folder), "source": str(source), "point": point, "mutant": mutant}
    with Child(restoring.__name__, asked) as child:
        assert child.says() is None
        assert child.wait() == -9, child.errors()


def check_killed(folder: Path, source: Path, point: str) -> None:
    """Not a log until the last moment; then the next restore makes it one."""
    if point != "restore.is_log":
        with pytest.raises(RestoreUnfinished, match="begins anew"):
            open_log(folder)
        with pytest.raises(RestoreUnfinished):
            open_log(folder, create=False)
        assert restore(source, folder).whole.records == COUNT
    assert content(folder) == content(source.parent / "log")
    left = {entry.name for entry in folder.iterdir()}
    assert left <= {"FORMAT", "db", "mark", "owner.lock", "staging"}
