"""An append that is broken off anywhere, by Ctrl-C or by a mistake: it is there, or it is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from duolog.log import EmbeddedLog, LogOptions, appends, open_log
from duolog.log.heads import Heads
from duolog.log.keys import LAST_OFFSET, record_key
from duolog.log.model import Record, TopicPartition
from tests.support.records import BATCH, part_of

VALUES = [b"%d" % number for number in range(10)]


class Breaking:
    """Raises once, at one of the places where tests may."""

    def __init__(self) -> None:
        self.at: str | None = None
        self.error: BaseException = KeyboardInterrupt()

    def __call__(self, point: str) -> None:
        if point == self.at:
            self.at = None
            raise self.error


@pytest.fixture
def breaking() -> Breaking:
    return Breaking()


@pytest.fixture
def log(tmp_path: Path, breaking: Breaking) -> Iterator[EmbeddedLog]:
    with open_log(tmp_path / "log", options=LogOptions(fault=breaking)) as opened:
        opened.create_topic("orders")
        opened.publish("orders", Record(b"before"))
        yield opened


def values(log: EmbeddedLog) -> list[bytes | None]:
    return [record.value for record in log.fetch("orders", 0, 0)]


def check_all_or_nothing(log: EmbeddedLog, append: Callable[[], object]) -> None:
    """After a broken append: what there is agrees with what is remembered, now and later."""
    there = log.last_epoch(BATCH) is not None
    expected: list[bytes | None] = [b"before", *(VALUES if there else [])]
    assert values(log) == expected
    where = TopicPartition(log.topic("orders").id, 0)
    keys = log._state.store.scan_keys(
        "records", record_key(where, 0), record_key(where, LAST_OFFSET)
    )
    assert len(keys) == (2 if there else 1)
    log.publish("orders", Record(b"after"))
    append()
    assert values(log) == [*expected, b"after", *([] if there else VALUES)]
    log.check_whole()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError(), ValueError("a mistake")])
@pytest.mark.parametrize(
    "point", ["append.verified", "append.records_written", "store.sync", "append.committed"]
)
def test_an_append_that_is_broken_off_is_there_or_not(
    log: EmbeddedLog, breaking: Breaking, point: str, error: BaseException
) -> None:
    part = part_of(log.topic("orders"), {0: VALUES})

    def append() -> object:
        return log.append(BATCH, 1, [part])

    breaking.at, breaking.error = point, error
    if isinstance(error, KeyboardInterrupt):
        with pytest.raises(KeyboardInterrupt):
            append()
    else:
        with suppress(Exception):
            append()
    check_all_or_nothing(log, append)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError(), ValueError("a mistake")])
def test_an_epoch_that_cannot_be_packed_leaves_nothing(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    part = part_of(log.topic("orders"), {0: VALUES})

    def raise_it(_: object) -> bytes:
        raise error

    with monkeypatch.context() as broken:
        broken.setattr(appends, "pack_epoch", raise_it)
        with pytest.raises(type(error)):
            log.append(BATCH, 1, [part])
    assert log.last_epoch(BATCH) is None
    check_all_or_nothing(log, lambda: log.append(BATCH, 1, [part]))


def test_a_durable_epoch_that_cannot_be_shown_is_no_error(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = part_of(log.topic("orders"), {0: VALUES})

    def raise_it(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as broken:
        broken.setattr(Heads, "publish", raise_it)
        assert not log.append(BATCH, 1, [part]).repeated
    check_all_or_nothing(log, lambda: log.append(BATCH, 1, [part]))
