"""Large shares of an epoch go into the store as files; everything else is as it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from duolog.errors import DiskFull, NotWritten, WritesRefused
from duolog.log import record_files, slice_merge
from duolog.log.embedded import EmbeddedLog, open_log
from duolog.log.model import Op, Record, TopicSettings
from duolog.log.options import FaultPoint, LogOptions
from duolog.log.part import Part, PartBuilder
from tests.support.records import STREAM, part_of, record_batch

LARGE = [b"%06d" % n + bytes(2000) for n in range(60)]
SMALL = [b"small-%d" % n for n in range(5)]


@pytest.fixture(autouse=True)
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a few records are a large share, and several files."""
    monkeypatch.setattr(record_files, "SHARE_BYTES", 2000)
    monkeypatch.setattr(record_files, "_FILE_BYTES", 1500)
    monkeypatch.setattr(slice_merge, "SMALL_BYTES", 0)


class Faults:
    """Raises at one point, once."""

    def __init__(self) -> None:
        self.at: FaultPoint | None = None
        self.error: BaseException = RuntimeError("interrupted")
        self.passed: list[FaultPoint] = []

    def __call__(self, point: FaultPoint) -> None:
        self.passed.append(point)
        if point == self.at:
            self.at = None
            raise self.error


@pytest.fixture
def faults() -> Faults:
    return Faults()


@pytest.fixture
def log(tmp_path: Path, faults: Faults) -> Iterator[EmbeddedLog]:
    with open_log(tmp_path / "log", options=LogOptions(fault=faults)) as log:
        log.create_topic("orders", TopicSettings(partitions=3))
        yield log


def opened(tmp_path: Path) -> EmbeddedLog:
    return open_log(tmp_path / "log")


def parts(log: EmbeddedLog) -> list[Part]:
    """Two tasks' parts: two partitions get many records, one a few."""
    topic = log.topic("orders")
    return [
        part_of(topic, {0: LARGE[:30], 1: LARGE[30:], 2: SMALL[:2]}, target_bytes=8000),
        part_of(topic, {0: LARGE[30:], 1: LARGE[:30], 2: SMALL[2:]}, target_bytes=8000),
    ]


def values(log: EmbeddedLog, partition: int) -> list[bytes | None]:
    return [record.value for record in log.fetch("orders", partition, 0)]


def is_whole(log: EmbeddedLog) -> bool:
    expected = {0: LARGE, 1: LARGE[30:] + LARGE[:30], 2: SMALL}
    return {partition: values(log, partition) for partition in expected} == expected


def left_over(folder: Path) -> list[Path]:
    return list(folder.rglob("staging/**/*.sst"))


def test_large_shares_are_handed_over_and_small_ones_written(
    log: EmbeddedLog, faults: Faults, tmp_path: Path
) -> None:
    log.publish("orders", Record(b"before", partition=2))
    answer = log.append(STREAM, 0, parts(log))
    assert [(r.partition, r.start, r.next_offset) for r in answer.ranges] == [
        (0, 0, 60),
        (1, 0, 60),
        (2, 1, 6),
    ]
    assert faults.passed.count("store.take_files") == 1
    assert len(list(tmp_path.rglob("db/*.sst"))) > 4  # nothing was written out of memory
    assert values(log, 2) == [b"before", *SMALL]
    log.close()
    with opened(tmp_path) as again:
        assert (values(again, 0), values(again, 1)) == (LARGE, LARGE[30:] + LARGE[:30])
        assert not left_over(tmp_path)


def test_epochs_and_publishes_take_turns(log: EmbeddedLog, tmp_path: Path) -> None:
    expected: list[bytes | None] = []
    for epoch in range(4):
        log.publish("orders", Record(b"single-%d" % epoch, partition=0))
        log.append(STREAM, epoch, [part_of(log.topic("orders"), {0: LARGE}, ts_ms=1000 + epoch)])
        expected += [b"single-%d" % epoch, *LARGE]
    assert values(log, 0) == expected
    assert log.append(STREAM, 3, [part_of(log.topic("orders"), {0: LARGE})]).repeated
    log.close()
    with opened(tmp_path) as again:
        assert values(again, 0) == expected


def test_lower_orders_come_first(log: EmbeddedLog) -> None:
    topic = log.topic("orders")
    made = []
    for task in range(2):
        builder = PartBuilder(target_bytes=2000)
        for order in (1, 0):
            rows = [b"%d-%d-%02d" % (order, task, n) + bytes(500) for n in range(20)]
            builder.add(topic, 0, record_batch(rows), order=order)
        made.append(builder.finish())
    log.append(STREAM, 0, made)
    begins = [value[:6] for value in values(log, 0) if value]
    assert begins == sorted(begins)
    assert len(begins) == 80


@pytest.mark.parametrize("point", ["append.files_made", "append.records_written"])
def test_what_a_dead_writer_left_is_gone_and_its_epoch_can_be_sent_again(
    log: EmbeddedLog, faults: Faults, tmp_path: Path, point: FaultPoint
) -> None:
    log.publish("orders", Record(b"before", partition=0))
    faults.at = point
    with pytest.raises(RuntimeError, match="interrupted"):
        log.append(STREAM, 0, parts(log))
    log.close()  # as after a kill: nothing but what is on disk is known
    with opened(tmp_path) as again:
        assert [values(again, partition) for partition in range(3)] == [[b"before"], [], []]
        answer = again.append(STREAM, 0, parts(again))
        assert not answer.repeated
        assert values(again, 0) == [b"before", *LARGE]
        assert values(again, 1) == LARGE[30:] + LARGE[:30]
    with opened(tmp_path) as again:
        assert values(again, 0) == [b"before", *LARGE]
        assert values(again, 2) == SMALL
        assert not left_over(tmp_path)


def test_files_that_would_lie_over_removed_records_are_not_taken(
    log: EmbeddedLog, faults: Faults, tmp_path: Path
) -> None:
    """RocksDB would hide them, or give them a sequence number that the mark does not know."""
    faults.at = "append.records_written"
    with pytest.raises(RuntimeError):
        log.append(STREAM, 0, parts(log))
    log.close()
    counting = Faults()
    with open_log(tmp_path / "log", options=LogOptions(fault=counting)) as again:
        before = len(list(tmp_path.rglob("db/*.sst")))
        again.append(STREAM, 0, parts(again))
        assert counting.passed.count("store.take_files") == 1
        assert len(list(tmp_path.rglob("db/*.sst"))) <= before
        assert is_whole(again)
        again.append(STREAM, 1, parts(again))  # behind them there is nothing
        assert len(list(tmp_path.rglob("db/*.sst"))) > before
        assert values(again, 0) == LARGE + LARGE


@pytest.mark.parametrize(
    ("error", "named"),
    [
        (OSError(5, "Input/output error"), NotWritten),
        (OSError(28, "No space left on device"), DiskFull),
    ],
)
def test_a_disk_that_fails_while_files_are_taken_is_named(
    log: EmbeddedLog, faults: Faults, error: OSError, named: type[WritesRefused]
) -> None:
    faults.at, faults.error = "store.take_files", error
    with pytest.raises(named):
        log.append(STREAM, 0, parts(log))
    assert [values(log, partition) for partition in range(3)] == [[], [], []]
    log.append(STREAM, 0, parts(log))
    assert is_whole(log)


def test_a_place_where_no_file_can_be_made_is_named(log: EmbeddedLog, tmp_path: Path) -> None:
    (tmp_path / "log" / "staging").write_bytes(b"")
    with pytest.raises(NotWritten, match="staging"):
        log.append(STREAM, 0, parts(log))
    (tmp_path / "log" / "staging").unlink()
    log.append(STREAM, 0, parts(log))
    assert is_whole(log)


def test_a_topic_that_leaves_out_repeats_is_written_record_by_record(
    log: EmbeddedLog, faults: Faults
) -> None:
    topic = log.create_topic("latest", TopicSettings(dedup_window_seconds=3600))
    same = part_of(
        topic,
        {0: [b"same" + bytes(2000)] * 30},
        keys=[b"k"] * 30,
        op=Op.UPDATE,
        table="shop.orders",
    )
    answer = log.append(STREAM, 0, [same])
    assert "store.take_files" not in faults.passed
    assert answer.duplicates_dropped == 29
    assert [record.value for record in log.fetch("latest", 0, 0)] == [b"same" + bytes(2000)]


@pytest.mark.parametrize("taken", [True, False])
def test_small_slices_of_a_large_share_are_joined(
    log: EmbeddedLog,
    faults: Faults,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    taken: bool,
) -> None:
    monkeypatch.setattr(slice_merge, "SMALL_BYTES", 128 << 10)
    if not taken:  # what died there has to be removed, and files do not lie over removed records
        faults.at = "append.records_written"
        with pytest.raises(RuntimeError):
            log.append(STREAM, 0, parts(log))
    topic = log.topic("orders")
    made = [part_of(topic, {0: [value], 1: [value]}) for value in LARGE]
    log.append(STREAM, 0, made)
    assert faults.passed.count("store.take_files") == 1 + (not taken)
    for partition in (0, 1):
        assert values(log, partition) == LARGE
        assert len(log.fetch_encoded("orders", partition, 0).batches) == 1
    log.close()
    with opened(tmp_path) as again:
        assert (values(again, 0), values(again, 1)) == (LARGE, LARGE)
