"""Opening a log: who may, what is refused, and what a copy becomes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from duolog.errors import (
    DamagedLog,
    LogBusy,
    LogClosed,
    LogNotFound,
    UnsupportedFormat,
    UnsupportedLocation,
)
from duolog.log.embedded import EmbeddedLog, open_log
from duolog.log.model import Record
from duolog.log.options import LogOptions
from duolog.log.owner import HostHint, host_hint, take_ownership

IMPATIENT = LogOptions(lock_wait_seconds=0.05)

HOLD = """
import sys
from duolog.log.embedded import open_log
with open_log(sys.argv[1]) as log:
    print("open", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "log"


def fill(log: EmbeddedLog) -> None:
    log.create_topic("orders")
    log.publish("orders", [Record(b"a"), Record(b"b")])


def test_another_process_is_kept_out_and_told_who_is_in(folder: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(LogBusy, match=f"process {holder.pid}"):
            open_log(folder, options=IMPATIENT)
        holder.communicate("\n", timeout=30)
    with open_log(folder, options=IMPATIENT) as log:
        assert log.topics() == ()


def test_the_lock_outlives_its_holder_only_as_long_as_the_process(folder: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        holder.kill()
        holder.wait(30)
        open_log(folder, options=IMPATIENT).close()


def test_short_contention_is_waited_out(folder: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == "open\n"
        holder.stdin.write("\n")
        holder.stdin.flush()
        open_log(folder, options=LogOptions(lock_wait_seconds=30)).close()


def test_within_one_process_there_is_one_owner_too(folder: Path) -> None:
    with open_log(folder), pytest.raises(LogBusy):
        open_log(folder, options=IMPATIENT)


def test_a_hosts_address_is_named(folder: Path) -> None:
    clock = IMPATIENT.clock
    ownership = take_ownership(folder, wait_seconds=0, clock=clock)
    ownership.announce(HostHint("127.0.0.1:4242", "abc"))
    with pytest.raises(LogBusy, match=r"127\.0\.0\.1:4242"):
        take_ownership(folder, wait_seconds=0, clock=clock)
    ownership.release()
    assert host_hint(folder) is None
    (folder / "host.json").write_text("{")  # left behind, half written: only a hint
    assert host_hint(folder) is None
    take_ownership(folder, wait_seconds=0, clock=clock).release()


def test_a_forked_child_does_not_keep_the_lock(folder: Path) -> None:
    # A child made by fork shares the lock's descriptor unless it lets go of it.
    code = f"""
import os, signal, sys, warnings
warnings.simplefilter("ignore")
from duolog.log.embedded import open_log
log = open_log({str(folder)!r})
child = os.fork()
if not child:
    signal.pause()
log.close()
open_log({str(folder)!r}).close()
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_log_that_is_not_there(folder: Path) -> None:
    with pytest.raises(LogNotFound):
        open_log(folder, create=False)
    assert not folder.exists()


def test_a_folder_with_something_else_is_left_alone(folder: Path) -> None:
    folder.mkdir()
    (folder / "thesis.tex").write_text("precious")
    with pytest.raises(UnsupportedFormat, match=r"thesis\.tex"):
        open_log(folder)
    assert sorted(entry.name for entry in folder.iterdir()) == ["owner.lock", "thesis.tex"]


def test_a_log_of_a_newer_format_is_left_alone(folder: Path) -> None:
    with open_log(folder) as log:
        fill(log)
    (folder / "FORMAT").write_text("duolog log format 2\n")
    before = {path: path.stat().st_mtime_ns for path in (folder / "db").iterdir()}
    with pytest.raises(UnsupportedFormat, match="newer Duolog"):
        open_log(folder)
    assert before == {path: path.stat().st_mtime_ns for path in (folder / "db").iterdir()}


@pytest.mark.parametrize("line", ["", "duolog log format one\n", "duolog log format 1", "\0" * 20])
def test_an_unreadable_format_is_damage(folder: Path, line: str) -> None:
    open_log(folder).close()
    (folder / "FORMAT").write_text(line)
    with pytest.raises(DamagedLog):
        open_log(folder)


@pytest.mark.parametrize("left", ["FORMAT", "FORMAT mark", "FORMAT mark db", ""])
def test_a_making_that_was_cut_short_is_made_good(folder: Path, left: str) -> None:
    open_log(folder).close()
    (folder / "mark").write_bytes((folder / "mark").read_bytes()[:0])
    for entry in list(folder.iterdir()):
        if entry.name not in left.split():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    if "mark" in left:
        from duolog.log.mark import Mark

        mark = Mark(folder / "mark")
        mark.read_or_create(is_new=True)
        mark.close()
    if "db" in left:
        (folder / "db" / "CURRENT").unlink()
    with open_log(folder) as log:
        fill(log)
        assert log.fetch("orders", 0, 0).count == 2


@pytest.mark.parametrize("lost", ["mark", "db"])
def test_a_lost_piece_is_damage(folder: Path, lost: str) -> None:
    with open_log(folder) as log:
        fill(log)
    piece = folder / lost
    shutil.rmtree(piece) if piece.is_dir() else piece.unlink()
    with pytest.raises(DamagedLog, match="backup"):
        open_log(folder)
    with pytest.raises(DamagedLog, match="backup"):
        open_log(folder)


def test_moving_keeps_the_id_and_copying_does_not(folder: Path, tmp_path: Path) -> None:
    with open_log(folder) as log:
        fill(log)
        original = log.log_id
    moved = folder.rename(tmp_path / "moved")
    with open_log(moved) as log:
        assert log.log_id == original
    shutil.copytree(moved, tmp_path / "copy")
    with open_log(tmp_path / "copy") as copy:
        assert copy.log_id != original
        assert copy.identity.copied_from == original
        assert copy.fetch("orders", 0, 0).count == 2
        renewed = copy.log_id
    with open_log(tmp_path / "copy") as copy, open_log(moved) as log:
        assert (copy.log_id, log.log_id) == (renewed, original)


def test_a_backup_of_a_log_in_use_is_a_log_of_its_own(folder: Path, tmp_path: Path) -> None:
    with open_log(folder) as log:
        fill(log)
        log.ack("billing", "orders", 0)
        log.backup(tmp_path / "backup")
        log.publish("orders", Record(b"later"))
        with pytest.raises(UnsupportedLocation):
            log.backup(tmp_path / "backup")
        with pytest.raises(UnsupportedLocation):
            log.backup(folder / "inside")
        with open_log(tmp_path / "backup") as backup:
            assert backup.log_id != log.log_id
            assert [r.value for r in backup.fetch("orders", 0, 0)] == [b"a", b"b"]
            assert [p.position for p in backup.group_positions()] == [1]
            assert backup.publish("orders", Record(b"own"))[0].offset == 2


def test_a_closed_log_says_so(folder: Path) -> None:
    log = open_log(folder)
    fill(log)
    log.close()
    log.close()
    assert log.closed
    for use in (
        lambda: log.publish("orders", Record(b"c")),
        lambda: log.fetch("orders", 0, 0),
        lambda: log.create_topic("more"),
        lambda: log.ack("g", "orders", 0),
    ):
        with pytest.raises(LogClosed):
            use()


def test_the_folder_is_private(folder: Path) -> None:
    open_log(folder).close()
    assert folder.stat().st_mode & 0o077 == 0
    assert json.loads((folder / "owner.lock").read_text())["pid"] == os.getpid()
