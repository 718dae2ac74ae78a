"""Staging and committing on a real log, without Spark."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import duolog
from duolog.connector.options import SinkOptions
from duolog.connector.sink import Planned, abort, commit, plan_batch, plan_stream
from duolog.connector.stage import Staged
from duolog.connector.staged_part import INLINE_BYTES, StagedPart
from duolog.errors import (
    DuologError,
    EpochContentMismatch,
    EpochGap,
    EpochTooOld,
    InvalidRows,
    InvalidSetting,
    LogNotFound,
    NotWritten,
    UnknownRoute,
    UnknownTopic,
)
from duolog.log.model import Envelope, Op, Route, TopicSettings
from duolog.log.part import Fingerprint, Part
from duolog.log.staging import LocalStaging

ROWS = pa.schema([("key", pa.string()), ("value", pa.string())])
INSERTS = frozenset({Op.INSERT})


@pytest.fixture
def path(tmp_path: Path) -> str:
    folder = tmp_path / "shop.log"
    with duolog.open_log(folder) as log:
        log.create_topic("orders", TopicSettings(alias="o", partitions=2))
        log.create_topic("changes", TopicSettings(envelope=Envelope.DEBEZIUM))
        log.add_route("changes", Route("shop.orders", INSERTS))
    return str(folder)


def rows(values: Sequence[str], key: str = "k") -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array([key] * len(values)), pa.array(values)], schema=ROWS
    )


def staged(planned: Planned, epoch: int, *tasks: Sequence[str]) -> list[Staged]:
    """What one task for each list of values tells."""
    return [
        pickle.loads(pickle.dumps(planned.stage)).stage([rows(values)], epoch=epoch, turn=turn)
        for turn, values in enumerate(tasks)
    ]


def values_in(path: str, topic: str = "orders") -> list[str]:
    with duolog.open_log(path) as log:
        found = []
        for offsets in log.offsets(topic):
            table = log.fetch(topic, offsets.partition, 0).table()
            found.extend(table.column("value").to_pylist())
    return [value.decode() for value in found]


def staged_files(path: str) -> list[Path]:
    return sorted(Path(path).glob("staging/**/*.part"))


def stream(path: str, **options: object) -> Planned:
    given = {"path": path, "topic": "orders", "queryName": "q", **options}
    return plan_stream(SinkOptions.of(given), ROWS)


def test_parts_of_all_tasks_are_one_epoch(path: str) -> None:
    planned = stream(path)
    appended = commit(planned, 0, staged(planned, 0, ["a", "b"], [], ["c"]))
    assert sum(range_.count for range_ in appended.ranges) == 3
    assert sorted(values_in(path)) == ["a", "b", "c"]


def test_an_epoch_without_rows_counts(path: str) -> None:
    for epoch in range(2):
        planned = stream(path)
        assert commit(planned, epoch, staged(planned, epoch, [])).ranges == ()
    planned = stream(path)
    assert commit(planned, 2, []).epoch == 2


def test_the_same_again_is_answered_however_it_was_split(path: str) -> None:
    planned = stream(path)
    first = commit(planned, 0, staged(planned, 0, ["a", "b"], ["c"]))
    planned = stream(path)
    again = commit(planned, 0, staged(planned, 0, ["c", "a"], ["b"]))
    assert again.repeated
    assert again.ranges == first.ranges
    assert sorted(values_in(path)) == ["a", "b", "c"]


def test_a_repeat_takes_the_time_of_the_first_try(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The envelope has the time inside the value, so other times would be other content."""
    options = SinkOptions.of({"path": path, "table": "shop.orders", "queryName": "q"})
    clock = iter(range(1_700_000_000_000, 1_800_000_000_000, 60_000))
    monkeypatch.setattr("duolog.connector.sink._now_ms", lambda: next(clock))
    first = plan_stream(options, ROWS)
    commit(first, 0, staged(first, 0, ["a"]))
    again = plan_stream(options, ROWS)
    assert commit(again, 0, staged(again, 0, ["a"])).repeated
    later = plan_stream(options, ROWS)
    commit(later, 1, staged(later, 1, ["b"]))
    before, after = values_in(path, "changes")
    assert '"ts_ms":1700000000000}' in before
    assert '"ts_ms":1700000120000}' in after


def test_other_content_under_the_same_epoch_is_refused(path: str) -> None:
    planned = stream(path)
    commit(planned, 0, staged(planned, 0, ["a"]))
    planned = stream(path)
    with pytest.raises(EpochContentMismatch, match="or write under a new name"):
        commit(planned, 0, staged(planned, 0, ["b"]))
    assert values_in(path) == ["a"]


def test_a_new_checkpoint_under_an_old_name_is_refused(path: str) -> None:
    for epoch in range(2):
        planned = stream(path)
        commit(planned, epoch, staged(planned, epoch, ["a"]))
    planned = stream(path)
    with pytest.raises(EpochTooOld, match="new or restored checkpoint"):
        commit(planned, 0, staged(planned, 0, ["a"]))


def test_a_stream_begins_with_its_first_batch_unless_it_may_begin_anywhere(path: str) -> None:
    planned = stream(path)
    with pytest.raises(EpochGap, match="let the stream begin anywhere"):
        commit(planned, 7, staged(planned, 7, ["a"]))
    planned = stream(path, beginAnywhere=True)
    commit(planned, 7, staged(planned, 7, ["a"]))
    planned = stream(path, beginAnywhere=True)
    with pytest.raises(EpochGap):
        commit(planned, 9, staged(planned, 9, ["a"]))


def test_an_alias_and_its_topic_are_one_target(path: str) -> None:
    planned = stream(path)
    commit(planned, 0, staged(planned, 0, ["a"]))
    planned = stream(path, topic="o")
    assert commit(planned, 0, staged(planned, 0, ["a"])).repeated


def test_large_parts_are_staged_as_files_and_swept_by_the_commit(path: str) -> None:
    planned = stream(path)
    large = ["x" * 1000] * (INLINE_BYTES // 1000 + 1)
    messages = staged(planned, 0, large, ["small"])
    assert len(staged_files(path)) == 1
    assert max(len(told.part) for told in messages) < INLINE_BYTES
    commit(planned, 0, messages)
    assert staged_files(path) == []
    assert len(values_in(path)) == len(large) + 1


def test_a_second_run_of_a_task_is_swept_and_not_committed(path: str) -> None:
    planned = stream(path)
    large = ["x" * 1000] * (INLINE_BYTES // 1000 + 1)
    speculative, counted = staged(planned, 0, large)[0], staged(planned, 0, large)[0]
    assert len(staged_files(path)) == 2
    commit(planned, 0, [counted])
    assert staged_files(path) == []
    assert len(values_in(path)) == len(large)
    abort(planned, 0, [speculative])


def test_abort_removes_only_what_its_own_tasks_staged(path: str) -> None:
    large = ["x" * 1000] * (INLINE_BYTES // 1000 + 1)
    planned = stream(path)
    failed, others = staged(planned, 0, large), staged(planned, 0, large)
    abort(planned, 0, failed)
    (kept,) = staged_files(path)
    assert str(kept) == Part.from_message(others[0].part).path
    commit(planned, 0, others)
    assert len(values_in(path)) == len(large)


def test_abort_after_a_commit_that_raised_leaves_what_is_committed(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = ["x" * 1000] * (INLINE_BYTES // 1000 + 1)
    planned = stream(path)
    messages = staged(planned, 0, large)

    def lost(*_: object) -> None:
        raise ConnectionError("the answer was lost")

    with monkeypatch.context() as patched:
        patched.setattr("duolog.connector.sink._LOG.info", lost)
        with pytest.raises(ConnectionError):
            commit(planned, 0, messages)
    abort(planned, 0, messages)
    assert len(values_in(path)) == len(large)
    planned = stream(path)
    assert commit(planned, 0, staged(planned, 0, large)).repeated
    assert len(values_in(path)) == len(large)


def test_abort_of_a_write_without_a_name_leaves_no_folder(path: str) -> None:
    """Nobody will commit under its name, and sweep."""
    planned, epoch = plan_batch(SinkOptions.of({"path": path, "topic": "orders"}), ROWS)
    large = ["x" * 1000] * (INLINE_BYTES // 1000 + 1)
    lost, told = staged(planned, epoch, large)[0], staged(planned, epoch, large)
    assert lost.part
    assert len(staged_files(path)) == 2
    abort(planned, epoch, told)
    assert list((Path(path) / "staging").iterdir()) == []


def test_a_write_without_a_name_is_forgotten_once_it_is_committed(
    path: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def write() -> Planned:
        planned, epoch = plan_batch(SinkOptions.of({"path": path, "topic": "orders"}), ROWS)
        commit(planned, epoch, staged(planned, epoch, ["a"]))
        return planned

    def known(planned: Planned) -> bool:
        with duolog.open_log(path) as log:
            return log.last_epoch(planned.stage.writer) is not None

    assert not known(write())

    def fails(*_: object) -> None:
        raise NotWritten("the disk is tired")

    with monkeypatch.context() as patched:
        patched.setattr("duolog.log.embedded.EmbeddedLog.forget_writer", fails)
        assert known(write())  # and the write counts as done, for its rows are there
    assert "the disk is tired" in caplog.text
    assert values_in(path) == ["a", "a"]
    given = {"path": path, "topic": "orders", "txnAppId": "job", "txnVersion": 1}
    named, epoch = plan_batch(SinkOptions.of(given), ROWS)
    commit(named, epoch, staged(named, epoch, ["a"]))
    assert known(named)


def test_a_task_that_fails_leaves_no_file(path: str) -> None:
    planned = stream(path)

    def failing() -> Iterator[pa.RecordBatch]:
        yield rows(["x" * 1000] * (INLINE_BYTES // 1000 + 1))
        assert staged_files(path)
        raise ConnectionError("the source went away")

    with pytest.raises(ConnectionError):
        planned.stage.stage(failing(), epoch=0, turn=0)
    assert staged_files(path) == []


def test_rows_that_are_refused_are_told_not_raised(path: str) -> None:
    """Spark would run the task again, and wrap the error."""
    wrong = ROWS.append(pa.field("partition", pa.int32()))
    options = SinkOptions.of({"path": path, "topic": "orders", "queryName": "q"})
    planned = plan_stream(options, wrong)

    def told(partition: int) -> Staged:
        columns = {"key": ["a"], "value": ["b"], "partition": [partition]}
        batch = pa.RecordBatch.from_pydict(columns, wrong)
        return pickle.loads(pickle.dumps(planned.stage.stage([batch], epoch=0, turn=0)))  # type: ignore[no-any-return]

    assert isinstance(told(2).refusal, InvalidRows)
    with pytest.raises(InvalidRows, match="Column 'partition' is 2 in row 0"):
        commit(planned, 0, [told(1), told(2)])
    assert values_in(path) == []


def test_two_targets_of_one_job_are_two_writers(path: str) -> None:
    with duolog.open_log(path) as log:
        log.create_topic("bills")
    for topic in ("orders", "bills"):
        given = {"path": path, "topic": topic, "txnAppId": "job", "txnVersion": 5}
        planned, epoch = plan_batch(SinkOptions.of(given), ROWS)
        assert epoch == 5
        assert not commit(planned, epoch, staged(planned, epoch, ["a"])).repeated
    assert (values_in(path), values_in(path, "bills")) == (["a"], ["a"])


def test_changes_without_a_route_are_refused_or_dropped(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    given = {"path": path, "table": "shop.orders", "changes": "delta", "keyColumns": "key"}
    feed = ROWS.append(pa.field("_change_type", pa.string()))
    feed = feed.append(pa.field("_commit_version", pa.int64()))
    feed = feed.append(pa.field("_commit_timestamp", pa.timestamp("us", "UTC")))
    batch = pa.RecordBatch.from_pydict(
        {
            "key": ["a", "b"],
            "value": ["1", "2"],
            "_change_type": ["insert", "delete"],
            "_commit_version": [1, 1],
            "_commit_timestamp": [0, 0],
        },
        feed,
    )
    planned, epoch = plan_batch(SinkOptions.of(given), feed)
    with pytest.raises(InvalidRows, match=r"1 of \d changes of table 'shop.orders' have no route"):
        commit(planned, epoch, [planned.stage.stage([batch], epoch=epoch, turn=0)])
    planned, epoch = plan_batch(SinkOptions.of(given | {"unrouted": "drop"}), feed)
    with caplog.at_level(logging.INFO, "duolog.connector"):
        commit(planned, epoch, [planned.stage.stage([batch], epoch=epoch, turn=0)])
    assert len(values_in(path, "changes")) == 1
    assert "rows=2 records=1 unrouted=1" in caplog.text


@pytest.mark.parametrize(
    ("given", "error", "told"),
    [
        ({"topic": "order"}, UnknownTopic, "order"),
        ({"table": "shop.order"}, UnknownRoute, "No topic has a route for table 'shop.order'"),
        ({"table": "shop.orders", "keyColumns": "id"}, InvalidRows, "Key column 'id'"),
        ({"table": "shop.orders", "changes": "dleta"}, InvalidSetting, "'changes' is 'dleta'"),
        ({"topic": "orders", "path": "/nowhere/log"}, LogNotFound, "There is no log in /nowhere"),
    ],
)
def test_mistakes_show_before_anything_is_staged(
    path: str, given: dict[str, Any], error: type[DuologError], told: str
) -> None:
    with pytest.raises(error, match=told):
        plan_batch(SinkOptions.of({"path": path, **given}), ROWS)


def test_a_part_stays_in_memory_up_to_its_limit(tmp_path: Path, path: str) -> None:
    with duolog.open_log(path) as log:
        topic = log.topic("changes")
    planned = stream(path)
    (_, _, records), *_ = planned.stage.rows.records(rows(["a" * 100] * 10), now_ms=1, turn=0)  # type: ignore[union-attr]
    small = StagedPart(LocalStaging(tmp_path / "s"), inline_bytes=records.nbytes)
    small.add(topic, 0, records)
    small.count(topic, Fingerprint(filtered_out=2))
    inside = small.finish()
    assert inside.path is None
    assert not (tmp_path / "s").exists()
    large = StagedPart(LocalStaging(tmp_path / "s"), inline_bytes=records.nbytes)
    for order in (0, 1):
        large.add(topic, 0, records, order=order)
    outside = large.finish()
    assert outside.path is not None
    assert Path(outside.path).parent == tmp_path / "s"
    assert [staged.order for staged in outside.batches] == [0, 1]
    assert inside.topics[0].fingerprint.routed == 10
    assert inside.topics[0].fingerprint.filtered_out == 2
    large.abort()
    assert not Path(outside.path).exists()
