"""Readers that never pause hold up neither a recovery nor the end of a log."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from duolog.errors import LogClosed, WritesRefused
from duolog.log.embedded import EmbeddedLog, open_log
from duolog.log.model import Record
from duolog.log.options import FaultPoint, LogOptions

DEADLINE = 30.0  # before: more than 40 s


class FailingSync:
    def __init__(self) -> None:
        self.armed = False

    def __call__(self, point: FaultPoint) -> None:
        if self.armed and point == "store.sync":
            self.armed = False
            raise OSError(5, "Input/output error")


@contextmanager
def reading(log: EmbeddedLog, readers: int) -> Iterator[None]:
    """So many threads read without a pause, each until the next one does: one always reads."""
    stop, begun = threading.Event(), threading.Barrier(readers + 1)
    turns = [threading.Semaphore(0) for _ in range(readers)]
    store = log._state.store

    def read(me: int) -> None:
        first = True
        while not stop.is_set():
            try:
                with store._using():
                    assert log.fetch("orders", 0, 0, max_records=300).count >= 300
                    if first:
                        begun.wait(DEADLINE)
                        first = False
                    turns[(me + 1) % readers].release()
                    turns[me].acquire(timeout=0.1)  # it may have to wait outside
            except (LogClosed, WritesRefused):
                return

    with ThreadPoolExecutor(readers) as pool:
        running = [pool.submit(read, me) for me in range(readers)]
        try:
            begun.wait(DEADLINE)
            yield
        finally:
            stop.set()
        for reader in running:
            reader.result(DEADLINE)


def filled(folder: Path, fault: FailingSync) -> EmbeddedLog:
    log = open_log(folder, options=LogOptions(fault=fault, cache_bytes=0))
    log.create_topic("orders")
    for _ in range(3):
        log.publish("orders", [Record(bytes(200))] * 100)
    return log


@pytest.mark.timeout(120)
def test_a_failed_sync_is_recovered_from_under_busy_readers(tmp_path: Path) -> None:
    fault = FailingSync()
    with filled(tmp_path / "log", fault) as log, reading(log, 4), ThreadPoolExecutor(1) as pool:
        for sequence in range(3):
            fault.armed = True
            published = pool.submit(
                log.publish, "orders", Record(b"x"), writer="w", sequence=sequence
            )
            try:
                published.result(DEADLINE)
            except WritesRefused:
                log.publish("orders", Record(b"x"), writer="w", sequence=sequence)
        assert log.offsets("orders")[0].next_offset == 303


@pytest.mark.timeout(120)
def test_a_log_is_closed_under_busy_readers(tmp_path: Path) -> None:
    log = filled(tmp_path / "log", FailingSync())
    with reading(log, 8), ThreadPoolExecutor(1) as pool:
        pool.submit(log.close).result(DEADLINE)
    assert log.closed


class Changed:
    """A part of RocksDB with some methods changed."""

    def __init__(self, original: Any, **methods: Any) -> None:
        self._original = original
        self.__dict__.update(methods)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)


def test_what_runs_for_long_is_ended_when_the_log_is_closed(tmp_path: Path) -> None:
    log = filled(tmp_path / "log", FailingSync())
    store, begun, cancelled = log._state.store, threading.Event(), threading.Event()

    def compact_range(*_: object) -> None:
        begun.set()
        assert cancelled.wait(DEADLINE)

    def cancel_all_background(wait: bool) -> None:
        assert not wait
        cancelled.set()

    store._database = Changed(store._database, cancel_all_background=cancel_all_background)
    store._families["records"] = Changed(store._families["records"], compact_range=compact_range)
    with ThreadPoolExecutor(2) as pool:
        reclaimed = pool.submit(store.reclaim, "records", b"", b"z")
        assert begun.wait(DEADLINE)
        pool.submit(log.close).result(DEADLINE)
        reclaimed.result(DEADLINE)


def test_a_log_whose_upkeep_was_ended_is_whole(tmp_path: Path) -> None:
    """For real: RocksDB has ended its background work, and then the log is closed."""
    log = filled(tmp_path / "log", FailingSync())
    store = log._state.store
    ended = threading.Event()
    database = store._database

    def cancel_all_background(wait: bool) -> None:
        database.cancel_all_background(wait)
        ended.set()

    store._database = Changed(database, cancel_all_background=cancel_all_background)
    with ThreadPoolExecutor(1) as pool:
        with store._keeping_up():
            closed = pool.submit(log.close)
            assert ended.wait(DEADLINE)
        closed.result(DEADLINE)
    with open_log(tmp_path / "log") as again:
        assert again.check_whole().records == 300
        again.publish("orders", Record(b"x"))
