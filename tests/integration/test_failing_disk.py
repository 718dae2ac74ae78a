"""Writes that fail: never lost, never doubled, reads go on. By fault points; drills use disks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from duolog.errors import DiskFull, WritesRefused
from duolog.log.embedded import EmbeddedLog, open_log
from duolog.log.model import Record
from duolog.log.options import FaultPoint, LogOptions
from tests.support.records import STREAM, part_of


class Faults:
    """Raises what a disk raises, at one point, so many times."""

    def __init__(self) -> None:
        self._armed: dict[FaultPoint, list[BaseException]] = {}

    def arm(self, point: FaultPoint, *errors: BaseException) -> None:
        self._armed[point] = list(errors)

    def __call__(self, point: FaultPoint) -> None:
        if self._armed.get(point):
            raise self._armed[point].pop(0)


@pytest.fixture
def faults() -> Faults:
    return Faults()


@pytest.fixture
def log(tmp_path: Path, faults: Faults) -> Iterator[EmbeddedLog]:
    with open_log(tmp_path / "log", options=LogOptions(fault=faults)) as log:
        log.create_topic("orders")
        log.publish("orders", Record(b"before"))
        yield log


def contents(log: EmbeddedLog) -> list[bytes | None]:
    return [record.value for record in log.fetch("orders", 0, 0)]


EIO = OSError(5, "Input/output error")
ENOSPC = OSError(28, "No space left on device")


def until_it_works(call: Callable[[], object]) -> None:
    for _ in range(10):
        try:
            call()
        except WritesRefused:
            continue
        return
    raise AssertionError("it never worked")


@pytest.mark.parametrize("error", [EIO, ENOSPC])
def test_a_publish_whose_sync_failed_is_settled_by_sending_it_again(
    log: EmbeddedLog, faults: Faults, error: OSError
) -> None:
    faults.arm("store.sync", error)
    until_it_works(lambda: log.publish("orders", Record(b"once"), writer="w", sequence=0))
    until_it_works(lambda: log.publish("orders", Record(b"once"), writer="w", sequence=0))
    assert contents(log) == [b"before", b"once"]


def test_an_epoch_whose_sync_failed_is_settled_by_sending_it_again(
    log: EmbeddedLog, faults: Faults
) -> None:
    part = part_of(log.topic("orders"), {0: [b"a", b"b"]})
    faults.arm("store.sync", EIO)
    until_it_works(lambda: log.append(STREAM, 0, [part]))
    assert log.append(STREAM, 0, [part]).repeated
    assert contents(log) == [b"before", b"a", b"b"]


def test_an_epoch_that_died_before_its_heads_leaves_nothing(
    log: EmbeddedLog, faults: Faults
) -> None:
    part = part_of(log.topic("orders"), {0: [b"a", b"b"]})
    faults.arm("append.records_written", RuntimeError("interrupted"))
    with pytest.raises(RuntimeError):
        log.append(STREAM, 0, [part])
    log.publish("orders", Record(b"after"))
    assert contents(log) == [b"before", b"after"]
    log.append(STREAM, 0, [part])
    assert contents(log) == [b"before", b"after", b"a", b"b"]


def test_topics_and_positions_are_as_they_were_told(log: EmbeddedLog, faults: Faults) -> None:
    faults.arm("store.sync", EIO)
    until_it_works(lambda: log.create_topic("more", if_not_exists=True))
    faults.arm("store.sync", EIO)
    until_it_works(lambda: log.ack("billing", "orders", 0))
    assert [topic.name for topic in log.topics()] == ["more", "orders"]
    assert [p.position for p in log.group_positions()] == [1]


def test_concurrent_publishers_lose_and_double_nothing(log: EmbeddedLog, faults: Faults) -> None:
    def publish(publisher: int) -> None:
        for sequence in range(20):
            until_it_works(
                partial(
                    log.publish,
                    "orders",
                    Record(b"%d/%d" % (publisher, sequence)),
                    writer=f"w{publisher}",
                    sequence=sequence,
                )
            )
            if sequence % 7 == publisher % 7:
                faults.arm("store.sync", EIO)

    def append() -> None:
        for epoch in range(10):
            part = part_of(log.topic("orders"), {0: [b"e%d" % epoch] * 50}, target_bytes=100)
            until_it_works(partial(log.append, STREAM, epoch, [part]))

    with ThreadPoolExecutor(9) as pool:
        for done in [pool.submit(append), *(pool.submit(publish, n) for n in range(8))]:
            done.result(120)
    found = contents(log)
    assert found[0] == b"before"
    expected = [b"%d/%d" % (p, s) for p in range(8) for s in range(20)]
    expected += [b"e%d" % epoch for epoch in range(10) for _ in range(50)]
    assert sorted(v for v in found[1:] if v is not None) == sorted(expected)


def test_reads_go_on_while_writes_are_refused(
    log: EmbeddedLog, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = __import__("duolog.log.store", fromlist=["_open"])._open

    def full(path: Path, *, read_only: bool = False) -> object:
        if not read_only:
            raise DiskFull("still full")
        return real(path, read_only=True)

    monkeypatch.setattr("duolog.log.store._open", full)
    faults.arm("store.sync", ENOSPC)
    for _ in range(3):
        with pytest.raises(WritesRefused):
            log.publish("orders", Record(b"refused"), writer="w", sequence=0)
        assert contents(log) == [b"before"]
    monkeypatch.setattr("duolog.log.store._open", real)
    log.publish("orders", Record(b"refused"), writer="w", sequence=0)
    assert contents(log) == [b"before", b"refused"]


def test_a_disk_that_cannot_even_be_read_for_a_while(
    log: EmbeddedLog, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = __import__("duolog.log.store", fromlist=["_open"])._open

    def broken(path: Path, *, read_only: bool = False) -> object:
        raise DiskFull("nothing opens")

    monkeypatch.setattr("duolog.log.store._open", broken)
    faults.arm("store.sync", EIO)
    for _ in range(2):
        with pytest.raises(WritesRefused):
            log.publish("orders", Record(b"once"), writer="w", sequence=0)
    with pytest.raises(WritesRefused):
        log.fetch("orders", 0, 0)
    monkeypatch.setattr("duolog.log.store._open", real)
    log.publish("orders", Record(b"once"), writer="w", sequence=0)
    assert contents(log) == [b"before", b"once"]


def test_little_space_refuses_writes_before_they_begin(tmp_path: Path) -> None:
    with open_log(tmp_path / "log") as log:
        log.create_topic("orders")
        log.publish("orders", Record(b"before"))
    with open_log(tmp_path / "log", options=LogOptions(min_free_bytes=1 << 60)) as log:
        with pytest.raises(DiskFull, match="Free some space"):
            log.publish("orders", Record(b"refused"))
        with pytest.raises(DiskFull):
            log.append(STREAM, 0, [part_of(log.topic("orders"), {0: [b"refused"]})])
        with pytest.raises(DiskFull):
            log.ack("billing", "orders", 0)
        assert contents(log) == [b"before"]
        assert log.enforce_retention().by_topic == {}


def test_nothing_is_readable_before_it_is_synced(tmp_path: Path) -> None:
    reached, go_on = threading.Event(), threading.Event()

    def pause(point: FaultPoint) -> None:
        if point == "publish.written" and armed.is_set():
            reached.set()
            assert go_on.wait(30)

    armed = threading.Event()
    with open_log(tmp_path / "log", options=LogOptions(fault=pause)) as log:
        log.create_topic("orders")
        armed.set()
        with ThreadPoolExecutor(1) as pool:
            placed = pool.submit(log.publish, "orders", Record(b"a"))
            assert reached.wait(30)
            assert log.offsets("orders")[0].next_offset == 0
            assert log.fetch("orders", 0, 0).count == 0
            assert not log.wait_for_append({("orders", 0): 0}, 0)
            go_on.set()
            assert placed.result(30)[0].offset == 0
        assert contents(log) == [b"a"]


def test_a_big_epoch_does_not_hold_up_other_topics(tmp_path: Path) -> None:
    reached, go_on = threading.Event(), threading.Event()

    def pause(point: FaultPoint) -> None:
        if point == "append.records_written":
            reached.set()
            assert go_on.wait(30)

    with open_log(tmp_path / "log", options=LogOptions(fault=pause)) as log:
        orders = log.create_topic("orders")
        log.create_topic("other")
        with ThreadPoolExecutor(2) as pool:
            epoch = pool.submit(log.append, STREAM, 0, [part_of(orders, {0: [b"e"]})])
            assert reached.wait(30)
            behind = pool.submit(log.publish, "orders", Record(b"behind"))
            assert log.publish("other", Record(b"beside"))[0].offset == 0
            assert log.ack("g", "other", 0).position == 1
            assert not behind.done()
            assert log.fetch("orders", 0, 0).count == 0
            go_on.set()
            assert epoch.result(30).ranges[0].start == 0
            assert behind.result(30)[0].offset == 1
