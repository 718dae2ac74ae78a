"""A log whose folder is moved, removed or replaced while it is open harms no other log.

RocksDB finds its files by their names: an owner that went on would write into the log that lies at
its path by then, and remove that one's files.
"""

from __future__ import annotations

import json
import multiprocessing
import shutil
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Self

import pytest

from duolog.clock import SystemClock
from duolog.errors import LogMoved, OutcomeUnknown
from duolog.log import EmbeddedLog, LogOptions, open_log
from duolog.log.model import Record
from duolog.log.owner import take_ownership
from tests.support.records import STREAM, part_of

COUNT = 300
DEADLINE_SECONDS = 30
LARGE = b"x" * 20_000


def filled(folder: Path) -> EmbeddedLog:
    log = open_log(folder)
    log.create_topic("orders")
    log.publish("orders", [Record(b"%d" % number + LARGE) for number in range(COUNT)])
    return log


def removed(folder: Path) -> None:
    shutil.rmtree(folder)


def moved(folder: Path) -> None:
    folder.rename(folder.with_name("moved"))


def lock_replaced(folder: Path) -> None:
    (folder / "owner.lock").unlink()


@pytest.fixture(params=[removed, moved, lock_replaced])
def lose(request: pytest.FixtureRequest) -> Callable[[Path], None]:
    how: Callable[[Path], None] = request.param
    return how


def refused_from_now_on(log: EmbeddedLog) -> None:
    """Within a moment, since it is not looked at with each write."""
    give_up = time.monotonic() + DEADLINE_SECONDS
    while True:
        assert time.monotonic() < give_up
        try:
            log.publish("orders", Record(b"too late"))
        except LogMoved:
            break
    topic = log.topic("orders")
    for call in (
        lambda: log.append(STREAM, 0, [part_of(topic, {0: [b"1"]})]),
        lambda: log.ack("g", "orders", 0),
        lambda: log.clear_topic("orders"),
        log.checkpoint,
        log.sweep_staged,
        log.join_small_tables,
    ):
        with pytest.raises(LogMoved, match="moved, removed or replaced"):
            call()


def test_nothing_more_is_written_and_closing_ends(
    tmp_path: Path, lose: Callable[[Path], None]
) -> None:
    folder = tmp_path / "log"
    log = filled(folder)
    assert log.is_in_place()
    lose(folder)
    assert not log.is_in_place()
    refused_from_now_on(log)
    log.close()
    assert log.closed


class Other:
    """Another process that owns the log at a path: RocksDB opens a path once in a process."""

    def __init__(self, folder: Path) -> None:
        processes = multiprocessing.get_context("spawn")
        self._pipe, theirs = processes.Pipe()
        self._process = processes.Process(target=own, args=(str(folder), theirs))
        self._process.start()

    def ask(self, what: str) -> int:
        self._pipe.send(what)
        assert self._pipe.poll(DEADLINE_SECONDS)
        answer: int = self._pipe.recv()
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pipe.send("end")
        self._process.join(DEADLINE_SECONDS)
        assert self._process.exitcode == 0


def own(folder: str, pipe: Connection) -> None:
    with open_log(folder) as log:
        log.create_topic("orders", if_not_exists=True)
        while (asked := pipe.recv()) != "end":
            if asked == "fill":
                large = [Record(b"new" + LARGE) for _ in range(COUNT)]
                log.publish("orders", large)
            if asked == "announce":
                log.announce("127.0.0.1:1")
            pipe.send(log.check_whole().records)


@pytest.mark.parametrize("written", [True, False], ids=["written to", "only closed"])
def test_a_log_that_lies_there_by_then_is_left_alone(tmp_path: Path, *, written: bool) -> None:
    folder, backup = tmp_path / "log", tmp_path / "backup"
    old = filled(folder)
    old.backup(backup)
    old.publish("orders", [Record(b"later" + LARGE) for _ in range(COUNT)])
    moved(folder)
    shutil.copytree(backup, folder)
    with Other(folder) as new:
        assert new.ask("announce") == COUNT
        assert new.ask("fill") == 2 * COUNT
        if written:
            refused_from_now_on(old)
        old.close()
        assert json.loads((folder / "host.json").read_text())["address"] == "127.0.0.1:1"
        assert new.ask("fill") == 3 * COUNT
    with Other(folder) as new:
        assert new.ask("check") == 3 * COUNT


def test_a_moved_log_opens_where_it_lies_when_its_process_has_ended(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    with Other(folder) as old:
        assert old.ask("fill") == COUNT
        moved(folder)
        with Other(folder) as new:
            assert new.ask("fill") == COUNT
    with Other(tmp_path / "moved") as found, Other(folder) as new:
        assert found.ask("fill") == 2 * COUNT
        assert new.ask("fill") == 2 * COUNT


def test_a_failed_write_does_not_open_what_lies_there_now(tmp_path: Path) -> None:
    failing = threading.Event()

    def fault(point: str) -> None:
        if failing.is_set() and point == "store.sync":
            raise OSError(5, "Input/output error")

    folder = tmp_path / "log"
    with open_log(folder, options=LogOptions(fault=fault)) as old:
        old.create_topic("orders")
        moved(folder)
        with Other(folder) as new:
            assert new.ask("fill") == COUNT
            failing.set()
            with pytest.raises((LogMoved, OutcomeUnknown)):
                old.publish("orders", Record(b"1"))
            failing.clear()
            refused_from_now_on(old)
            assert new.ask("check") == COUNT


def test_a_released_ownership_is_in_no_place(tmp_path: Path) -> None:
    ownership = take_ownership(tmp_path / "log", wait_seconds=0, clock=SystemClock())
    assert ownership.is_in_place()
    ownership.release()
    assert not ownership.is_in_place()
