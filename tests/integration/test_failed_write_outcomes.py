"""What a caller is told of a write that failed: for sure that it is there, or that it is not, or
that nobody knows. "Nothing was kept" is never said of what is there.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest

from duolog.errors import DiskFull, NotWritten, OutcomeUnknown, WritesRefused
from duolog.log import record_files, store
from duolog.log.embedded import EmbeddedLog, open_log
from duolog.log.model import Record
from duolog.log.options import FaultPoint, LogOptions
from tests.support.records import STREAM, part_of

Reopening = Literal["works", "fails", "reads only"]
Step = Literal["write", "sync", "ingest"]

EIO = OSError(5, "Input/output error")
ENOSPC = OSError(28, "No space left on device")
LARGE = [b"%04d" % n + bytes(2000) for n in range(20)]


class Changed:
    """RocksDB with some methods changed, until it is opened again."""

    def __init__(self, original: Any, **methods: Any) -> None:
        self._original = original
        self.__dict__.update(methods)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)


class Faults:
    """Does something at a point, once."""

    def __init__(self) -> None:
        self.at: dict[FaultPoint, Callable[[], None]] = {}

    def __call__(self, point: FaultPoint) -> None:
        if point in self.at:
            self.at.pop(point)()


@pytest.fixture
def faults() -> Faults:
    return Faults()


@pytest.fixture
def log(tmp_path: Path, faults: Faults, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedLog]:
    monkeypatch.setattr(record_files, "SHARE_BYTES", 2000)
    with open_log(tmp_path / "log", options=LogOptions(fault=faults)) as log:
        log.create_topic("orders")
        log.publish("orders", Record(b"before"))
        yield log


def raising(error: Exception) -> Callable[[], None]:
    def act() -> None:
        raise error

    return act


def fail(log: EmbeddedLog, faults: Faults, step: Step, error: Exception, *, is_there: bool) -> None:
    """Let the next write fail at a step; what was written until then is there, or gets lost."""
    opened = log._state.store
    database = opened._database

    def write(batch: Any) -> None:
        if is_there:
            database.write(batch)
        if step == "write":
            raise error

    opened._database = Changed(database, write=write)
    if step == "sync":
        faults.at["store.sync"] = raising(error)
    elif step == "ingest":
        faults.at["store.take_files"] = raising(error)


def reopen_so(monkeypatch: pytest.MonkeyPatch, reopening: Reopening) -> None:
    real = store._open

    def open_so(path: Path, *, read_only: bool = False) -> Any:
        if reopening == "fails" or not read_only:
            raise DiskFull("No space is left for the log.")
        return real(path, read_only=True)

    if reopening != "works":
        monkeypatch.setattr(store, "_open", open_so)


def values(log: EmbeddedLog) -> list[bytes | None]:
    return [record.value for record in log.fetch("orders", 0, 0)]


CASES = [
    ("write", "works", True, None),
    ("write", "works", False, DiskFull),
    ("write", "fails", True, OutcomeUnknown),
    ("write", "fails", False, OutcomeUnknown),
    ("write", "reads only", True, OutcomeUnknown),
    ("write", "reads only", False, OutcomeUnknown),
    ("sync", "works", True, None),
    ("sync", "works", False, DiskFull),
    ("sync", "fails", True, OutcomeUnknown),
    ("sync", "fails", False, OutcomeUnknown),
    ("sync", "reads only", True, OutcomeUnknown),
    ("sync", "reads only", False, OutcomeUnknown),
]


@pytest.mark.parametrize(("step", "reopening", "is_there", "told"), CASES)
def test_a_publisher_is_told_what_is_certain(
    log: EmbeddedLog,
    faults: Faults,
    step: Step,
    reopening: Reopening,
    is_there: bool,
    told: type[WritesRefused] | None,
) -> None:
    def publish() -> int:
        return log.publish("orders", Record(b"once"), writer="w", sequence=0)[0].offset

    with pytest.MonkeyPatch.context() as patch:
        reopen_so(patch, reopening)
        fail(log, faults, step, ENOSPC, is_there=is_there)
        if told is None:
            assert publish() == 1
        else:
            with pytest.raises(told) as refused:
                publish()
            assert type(refused.value) is told
    assert publish() == 1
    assert values(log) == [b"before", b"once"]


@pytest.mark.parametrize(
    ("step", "reopening", "is_there", "told"),
    [
        ("write", "works", True, DiskFull),  # its records are there, and no head has them
        *CASES[1:],
        ("ingest", "works", True, DiskFull),
        ("ingest", "fails", True, OutcomeUnknown),
        ("ingest", "reads only", True, OutcomeUnknown),
    ],
)
def test_a_writer_of_an_epoch_is_told_what_is_certain(
    log: EmbeddedLog,
    faults: Faults,
    step: Step,
    reopening: Reopening,
    is_there: bool,
    told: type[WritesRefused] | None,
) -> None:
    part = part_of(log.topic("orders"), {0: LARGE}, target_bytes=8000)
    with pytest.MonkeyPatch.context() as patch:
        reopen_so(patch, reopening)
        fail(log, faults, step, ENOSPC, is_there=is_there)
        if told is None:
            log.append(STREAM, 0, [part])
        else:
            with pytest.raises(told) as refused:
                log.append(STREAM, 0, [part])
            assert type(refused.value) is told
    log.append(STREAM, 0, [part])
    assert values(log) == [b"before", *LARGE]


def test_other_failures_are_told_by_name(log: EmbeddedLog, faults: Faults) -> None:
    fail(log, faults, "write", EIO, is_there=False)
    with pytest.raises(NotWritten, match="Input/output"):
        log.publish("orders", Record(b"x"))
    too_many = OSError(24, "Too many open files")
    fail(log, faults, "write", too_many, is_there=False)
    with pytest.raises(NotWritten, match="ulimit"):
        log.publish("orders", Record(b"x"))
    assert values(log) == [b"before"]


def test_a_repeat_is_not_told_that_the_disk_is_full_while_nobody_knows(
    log: EmbeddedLog, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guard that keeps some space free comes before the write: of an earlier one it says
    nothing.
    """
    with pytest.MonkeyPatch.context() as patch:
        reopen_so(patch, "fails")
        fail(log, faults, "sync", ENOSPC, is_there=True)
        with pytest.raises(OutcomeUnknown):
            log.publish("orders", Record(b"once"), writer="w", sequence=0)
    usage = SimpleNamespace(free=0)
    log._state._disk_known_until = 0.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda _: usage)
        with pytest.raises(OutcomeUnknown, match="0 MiB are free"):
            log.publish("orders", Record(b"once"), writer="w", sequence=0)
    assert log.publish("orders", Record(b"once"), writer="w", sequence=0)[0].offset == 1


def superseded_and_unknown(log: EmbeddedLog, patch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Somebody else's write fails between our write and our sync, and the first reopening too."""
    real = store._open
    tries = [0]

    def at_first_not(path: Path, *, read_only: bool = False) -> Any:
        tries[0] += 1
        if tries[0] <= 2:
            raise DiskFull("No space is left for the log.")
        return real(path, read_only=read_only)

    def act() -> None:
        patch.setattr(store, "_open", at_first_not)
        log._state.store._state = store._State.IN_DOUBT

    return act


def test_a_publish_that_another_failure_has_passed_is_not_written_twice(
    log: EmbeddedLog, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults.at["publish.written"] = superseded_and_unknown(log, monkeypatch)
    with pytest.raises(OutcomeUnknown):
        log.publish("orders", Record(b"once"))
    log.publish("orders", Record(b"after"))
    assert values(log) == [b"before", b"once", b"after"]


def test_an_epoch_that_another_failure_has_passed_is_not_written_twice(
    log: EmbeddedLog, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = part_of(log.topic("orders"), {0: [b"a", b"b"]})
    real = log._state.store.write

    def write(batch: store.WriteBatch, incarnation: int | None = None) -> None:
        real(batch, incarnation)
        if any(family == "epochs" for _, family, _, _ in batch.operations):
            monkeypatch.setattr(log._state.store, "write", real)
            act()

    act = superseded_and_unknown(log, monkeypatch)
    monkeypatch.setattr(log._state.store, "write", write)
    with pytest.raises(OutcomeUnknown):
        log.append(STREAM, 0, [part])
    assert log.append(STREAM, 0, [part]).repeated
    assert values(log) == [b"before", b"a", b"b"]


def test_what_cannot_be_looked_up_is_unknown(
    log: EmbeddedLog, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opened again, but what says whether the write is there cannot be read."""
    from duolog.log.rounds import Round

    fail(log, faults, "sync", EIO, is_there=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Round, "is_stored", lambda _: raising(EIO)())
        with pytest.raises(OutcomeUnknown):
            log.publish("orders", Record(b"once"), writer="w", sequence=0)
    assert log.publish("orders", Record(b"once"), writer="w", sequence=0)[0].offset == 1
    assert values(log) == [b"before", b"once"]


class TestHeldErrors:
    """Whoever keeps an error keeps the variables of all frames that it passed."""

    def test_a_failed_write(self, log: EmbeddedLog, faults: Faults) -> None:
        held = []
        for step in ("write", "sync"):
            fail(log, faults, step, ENOSPC, is_there=False)
            with pytest.raises(DiskFull) as refused:
                log.publish("orders", Record(b"x"))
            held.append(refused.value)
        fail(log, faults, "ingest", ENOSPC, is_there=True)
        with pytest.raises(DiskFull) as refused:
            log.append(STREAM, 0, [part_of(log.topic("orders"), {0: LARGE}, target_bytes=8000)])
        held.append(refused.value)
        log.publish("orders", Record(b"after"))
        assert values(log) == [b"before", b"after"]
        assert len(held) == 3

    def test_every_use_of_the_store(self, log: EmbeddedLog, faults: Faults) -> None:
        used = log._state.store
        wrong: Any = 5  # no key of RocksDB's
        batch = store.WriteBatch()
        batch.operations.append(("put", "meta", b"key", wrong))
        ranges = store.WriteBatch()
        ranges.operations.append(("delete_range", "meta", b"key", wrong))
        uses: list[Callable[[], object]] = [
            lambda: used.write(batch),
            lambda: used.write(ranges),
            lambda: used.get("meta", wrong),
            lambda: used.scan("meta", wrong, b"z"),
            lambda: used.scan("meta", b"", wrong),
            lambda: used.scan_keys("meta", b"", wrong),
            lambda: used.last_at_or_before("meta", wrong, b""),
            lambda: used.last_at_or_before("meta", b"z", wrong),
            lambda: used.reclaim("meta", wrong, b""),
            lambda: used.checkpoint(Path("/proc/nowhere")),
        ]
        held: list[BaseException] = []
        for use in uses:
            try:
                use()
            except Exception as error:
                held.append(error)
        assert len(held) >= 8
        fail(log, faults, "sync", EIO, is_there=False)
        with pytest.raises(NotWritten) as refused:
            log.publish("orders", Record(b"x"))
        held.append(refused.value)
        log.publish("orders", Record(b"after"))
        assert values(log) == [b"before", b"after"]
