"""Small tables that lie side by side in a partition become one; nothing else is rewritten."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from duolog.log import joining, record_files
from duolog.log.embedded import EmbeddedLog, open_log
from duolog.log.joining import runs_to_join
from duolog.log.keys import record_key
from duolog.log.manifest import Table
from duolog.log.model import TopicPartition, TopicSettings
from tests.support.records import STREAM, part_of

MIB = 1 << 20


def table(partition: int, first: int, size_mib: int, *, upto: int | None = None) -> Table:
    where = TopicPartition(1, partition)
    last = TopicPartition(1, upto) if upto is not None else where
    return Table(first, size_mib * MIB, record_key(where, first), record_key(last, first + 9))


def offsets(runs: list[Sequence[Table]]) -> list[list[int]]:
    return [[each.number for each in run] for run in runs]


def test_a_run_is_as_long_as_one_table_may_be() -> None:
    tables = [table(0, first, 8) for first in range(0, 190, 10)]
    runs = [list(range(0, 80, 10)), list(range(80, 160, 10))]
    assert offsets(runs_to_join(tables)) == runs
    random.Random(1).shuffle(tables)
    assert offsets(runs_to_join(tables)) == runs


@pytest.mark.parametrize(
    "tables",
    [
        [],
        [table(0, first, 8) for first in range(0, 30, 10)],  # too few
        [table(0, first, 40) for first in range(0, 100, 10)],  # large ones
        [table(partition, 0, 8) for partition in range(10)],  # each of its own partition
        [table(0, 0, 8, upto=3), *(table(0, n, 8) for n in (10, 20, 30))],  # of several
        [table(0, n, 8 if n % 20 else 64) for n in range(0, 100, 10)],  # none side by side
    ],
)
def test_what_is_not_worth_it_is_left(tables: list[Table]) -> None:
    assert runs_to_join(tables) == []


def test_the_longest_run_goes_first() -> None:
    tables = [table(0, n, 8) for n in (0, 10, 20, 30)] + [table(0, 40, 64)]
    tables += [table(0, n, 4) for n in range(50, 120, 10)]
    assert offsets(runs_to_join(tables)) == [list(range(50, 120, 10)), [0, 10, 20, 30]]


def test_joining_ends() -> None:
    """What has been joined is not small any more, or has no neighbour."""
    chance = random.Random(5)
    tables = [table(p, n * 10, chance.choice((1, 8, 20, 64))) for p in range(3) for n in range(99)]
    written = 0
    while runs := runs_to_join(tables):
        run = runs[0]
        size = sum(each.size_bytes for each in run)
        written += size
        tables = [each for each in tables if each not in run]
        tables.append(Table(0, size, run[0].first_key, run[-1].last_key))
    assert written < 4 * sum(each.size_bytes for each in tables)


@pytest.fixture
def small_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_files, "SHARE_BYTES", 1000)


def rows(epoch: int) -> list[bytes | None]:
    chance = random.Random(epoch)
    return [b"%04d" % epoch + chance.randbytes(100) for _ in range(30)]


def append(log: EmbeddedLog, epoch: int) -> None:
    part = part_of(log.topic("orders"), {0: rows(epoch), 1: rows(epoch)})
    log.append(STREAM, epoch, [part])


def tables_of(log: EmbeddedLog) -> int:
    return log._state.store.lowest_tables("records")


@pytest.mark.usefixtures("small_tables")
def test_joined_records_are_the_same(tmp_path: Path) -> None:
    with open_log(tmp_path / "log") as log:
        log.create_topic("orders", TopicSettings(partitions=2))
        for epoch in range(12):
            append(log, epoch)
        assert tables_of(log) == 24
        assert log.join_small_tables() == 12
        assert log.join_small_tables() == 12
        assert log.join_small_tables() == 0
        assert tables_of(log) == 2
        append(log, 12)
        assert tables_of(log) == 4  # still taken below all others
    expected = [row for epoch in range(13) for row in rows(epoch)]
    with open_log(tmp_path / "log") as log:
        assert log.check_whole().records == 2 * len(expected)
        assert [record.value for record in log.fetch("orders", 1, 0)] == expected


@pytest.mark.usefixtures("small_tables")
def test_many_tables_are_joined_by_appends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joining, "MANY_TABLES", 20)
    monkeypatch.setattr(joining, "_KNOWN_FOR", 0)
    with open_log(tmp_path / "log") as log:
        log.create_topic("orders", TopicSettings(partitions=2))
        for epoch in range(40):
            append(log, epoch)
            assert tables_of(log) <= 20
        assert log.check_whole().records == 40 * 60


@pytest.mark.usefixtures("small_tables")
def test_what_cannot_be_joined_is_not_tried_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RocksDB says nothing when a disk does not let it."""
    with open_log(tmp_path / "log") as log:
        log.create_topic("orders", TopicSettings(partitions=2))
        for epoch in range(6):
            append(log, epoch)
        with monkeypatch.context() as patch:
            patch.setattr(log._state.store, "join", lambda *_: None)
            assert log.join_small_tables() == 0
        assert log.join_small_tables() == 0  # not before there are others
        append(log, 6)
        assert log.join_small_tables() == 7


@pytest.mark.usefixtures("small_tables")
def test_nothing_is_rewritten_where_there_is_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_log(tmp_path / "log") as log:
        log.create_topic("orders", TopicSettings(partitions=2))
        for epoch in range(6):
            append(log, epoch)
        left = os.statvfs_result((4096, 4096, 10**6, 10, 10, 10, 10, 10, 0, 255))
        monkeypatch.setattr(os, "statvfs", lambda _: left)
        assert log.join_small_tables() == 0
        assert tables_of(log) == 12
