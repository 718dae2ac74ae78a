"""A stream's driver side on a real log, called in the order in which Spark 4.1 calls it."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

import duolog
from duolog.connector.place import LogPlace
from duolog.connector.source.options import SourceOptions
from duolog.connector.source.stream import Stream
from duolog.errors import InvalidSetting, OffsetOutOfRange, RecordsLost, UnknownTopic
from duolog.log import EmbeddedLog
from duolog.log.access import LogAccess
from duolog.log.model import Record, TopicSettings
from tests.support.host_server import Host

Offset = dict[str, Any]
Taken = dict[tuple[str, int], tuple[int, int]]


class Checkpoint:
    """What Spark does with a source: a query, its checkpoint, and its restarts."""

    def __init__(self, path: Path, **given: object) -> None:
        self._given = {"path": str(path), "subscribe": "orders", **given}
        self._given = {name: value for name, value in self._given.items() if value is not None}
        self.ends: list[str] = []
        self.start()

    def start(self, **given: object) -> Stream:
        """A run of the query, with what is in the checkpoint."""
        self._given |= given
        options = SourceOptions.of(self._given, streaming=True)
        self.stream = Stream(options, lambda: 0.0)
        if self.ends:
            self.stream.ranges(json.loads(self.ends[-1]), json.loads(self.ends[-1]))
        return self.stream

    def batch(self) -> Taken | None:
        """One trigger; None where there is nothing new."""
        end = json.dumps(self.stream.latest())
        if self.ends and end == self.ends[-1]:
            return None
        self.ends.append(end)
        if len(self.ends) > 1:
            self.stream.commit(json.loads(self.ends[-2]))
        return self.again()

    def again(self) -> Taken:
        """The last batch, planned once more."""
        begin = json.loads(self.ends[-2]) if len(self.ends) > 1 else self.stream.initial()
        return {
            (range_.place.topic, range_.place.partition): (range_.start, range_.end)
            for range_ in self.stream.ranges(begin, json.loads(self.ends[-1]))
        }


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with duolog.open_log(tmp_path / "log") as log:
        log.create_topic("orders", TopicSettings(partitions=2))
        publish(log, 0, 6)
        publish(log, 1, 2)
    return tmp_path / "log"


def publish(log: EmbeddedLog, partition: int, count: int, topic: str = "orders") -> None:
    log.publish(topic, [Record(b"v", partition=partition) for _ in range(count)])


def more(path: Path, partition: int, count: int) -> None:
    with duolog.open_log(path) as log:
        publish(log, partition, count)


def test_a_new_stream_begins_at_latest_and_goes_on(path: Path) -> None:
    query = Checkpoint(path)
    assert query.batch() == {}
    assert query.batch() is None
    more(path, 1, 3)
    assert query.batch() == {("orders", 1): (2, 5)}
    assert query.batch() is None


def test_limits_hold_and_all_is_read(path: Path) -> None:
    query = Checkpoint(path, startingOffsets="earliest", maxOffsetsPerTrigger=4)
    assert query.batch() == {("orders", 0): (0, 3), ("orders", 1): (0, 1)}
    assert query.batch() == {("orders", 0): (3, 6), ("orders", 1): (1, 2)}
    assert query.batch() is None


def test_a_restart_goes_on_from_the_checkpoint(path: Path) -> None:
    query = Checkpoint(path, startingOffsets="earliest")
    query.batch()
    query.start()
    assert query.batch() is None
    more(path, 0, 1)
    assert query.batch() == {("orders", 0): (6, 7)}


def test_a_first_batch_that_failed_is_run_again_as_it_was(path: Path) -> None:
    """Its beginning was `latest`, which has moved on since; Spark keeps only its end."""
    query = Checkpoint(path)
    query.stream.initial()
    more(path, 0, 1)
    taken = query.batch()
    assert taken == {("orders", 0): (6, 7)}
    more(path, 0, 5)
    query.start()
    assert query.again() == taken
    assert query.batch() == {("orders", 0): (7, 12)}


def test_the_log_is_not_opened_while_nothing_is_committed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = Checkpoint(path)
    query.batch()
    opened = []
    original = LogPlace.opened

    def counted(place: LogPlace) -> LogAccess:
        opened.append(place)
        return original(place)

    monkeypatch.setattr(LogPlace, "opened", counted)
    for _ in range(5):
        assert query.batch() is None
    assert not opened
    more(path, 0, 1)
    assert query.batch() == {("orders", 0): (6, 7)}
    assert len(opened) == 1


def test_partitions_that_come_later_are_read_from_their_start(path: Path) -> None:
    query = Checkpoint(path)
    query.batch()
    with duolog.open_log(path) as log:
        log.set_partitions("orders", 3)
        publish(log, 2, 2)
    assert query.batch() == {("orders", 2): (0, 2)}


def test_a_pattern_finds_topics_that_come_later(path: Path) -> None:
    query = Checkpoint(path, subscribe=None, subscribePattern="orders|new.*")
    assert query.batch() == {}
    with duolog.open_log(path) as log:
        for topic in ("newer", "old"):
            log.create_topic(topic)
            publish(log, 0, 3, topic)
    assert query.batch() == {("newer", 0): (0, 3)}


def test_tasks_are_cut_as_asked(path: Path) -> None:
    query = Checkpoint(path, startingOffsets="earliest", maxRecordsPerPartition=2)
    ranges = query.stream.ranges(query.stream.initial(), query.stream.latest())
    assert [(range_.start, range_.end) for range_ in ranges] == [(0, 2), (2, 4), (4, 6), (0, 2)]


# -- what is gone


def test_records_that_retention_took_first_stop_the_stream(path: Path) -> None:
    query = Checkpoint(path, startingOffsets="earliest", maxOffsetsPerTrigger=4)
    query.batch()
    with duolog.open_log(path) as log:
        log.clear_topic("orders")
    with pytest.raises(RecordsLost, match=r"Offsets 3 to 5 of topic 'orders' partition 0 were"):
        query.batch()


def test_a_stream_goes_on_with_what_is_there_when_told_so(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    query = Checkpoint(
        path, startingOffsets="earliest", maxOffsetsPerTrigger=4, failOnDataLoss="false"
    )
    query.batch()
    with duolog.open_log(path) as log:
        log.clear_topic("orders")
        publish(log, 0, 2)
    with caplog.at_level(logging.WARNING, "duolog.connector"):
        # The task passes over what is gone, with a warning of its own.
        assert query.batch() == {("orders", 0): (3, 8), ("orders", 1): (1, 2)}
    assert "Offsets 3 to 5 of topic 'orders' partition 0 were removed" in caplog.text


def test_a_topic_that_was_made_again_stops_the_stream(path: Path) -> None:
    query = Checkpoint(path, startingOffsets="earliest")
    query.batch()
    with duolog.open_log(path) as log:
        log.drop_topic("orders")
        log.create_topic("orders")
        publish(log, 0, 9)
    with pytest.raises(RecordsLost, match="Topic 'orders' was dropped and made again"):
        query.batch()
    query.start(failOnDataLoss="false")
    assert query.batch() == {("orders", 0): (0, 9)}


def test_a_topic_that_is_gone_stops_the_stream(path: Path) -> None:
    query = Checkpoint(path)
    query.batch()
    with duolog.open_log(path) as log:
        log.drop_topic("orders")
    with pytest.raises(UnknownTopic, match="orders"):
        query.batch()


def test_a_topic_of_a_pattern_that_is_gone_stops_the_stream(path: Path) -> None:
    query = Checkpoint(path, subscribe=None, subscribePattern="or.*")
    query.batch()
    with duolog.open_log(path) as log:
        log.drop_topic("orders")
    with pytest.raises(RecordsLost, match="The topic 'orders' partition 0 is gone"):
        query.batch()
    query.start(failOnDataLoss="false")
    assert query.batch() == {}
    assert query.batch() is None


def test_a_checkpoint_of_another_log_is_refused(path: Path, tmp_path: Path) -> None:
    query = Checkpoint(path)
    query.batch()
    with duolog.open_log(path) as log:
        log.backup(tmp_path / "restored")
    query.start(path=str(tmp_path / "restored"))
    with pytest.raises(RecordsLost, match="The checkpoint is of log"):
        query.batch()
    query.start(failOnDataLoss="false")
    assert query.batch() == {}
    more(tmp_path / "restored", 0, 1)
    assert query.batch() == {("orders", 0): (6, 7)}


def test_a_start_that_is_not_kept_is_refused(path: Path) -> None:
    query = Checkpoint(path, startingOffsets='{"orders": {"0": 7, "1": 0}}')
    with pytest.raises(OffsetOutOfRange, match="Offset 7 of topic 'orders' partition 0"):
        query.batch()


# -- triggers that take one batch


def test_available_now_stops_where_the_log_was_at_the_start(path: Path) -> None:
    query = Checkpoint(
        path, startingOffsets="earliest", maxOffsetsPerTrigger=4, availableNow="true"
    )
    assert query.batch() == {("orders", 0): (0, 3), ("orders", 1): (0, 1)}
    more(path, 0, 10)
    assert query.batch() == {("orders", 0): (3, 6), ("orders", 1): (1, 2)}
    assert query.batch() is None
    query.start()
    assert query.batch() == {("orders", 0): (6, 10)}


def test_sparks_own_wrapper_for_available_now_reads_all_in_one_batch(path: Path) -> None:
    """It asks how far to go before it says where the stream is, and goes there and no further."""
    query = Checkpoint(path, startingOffsets="earliest")
    query.batch()
    more(path, 0, 4)
    fresh = Checkpoint(path, startingOffsets="earliest").stream
    prepared = fresh.latest()
    fresh.ranges(json.loads(query.ends[-1]), json.loads(query.ends[-1]))
    (range_,) = fresh.ranges(json.loads(query.ends[-1]), prepared)
    assert (range_.start, range_.end) == (6, 10)


def test_a_limit_under_that_wrapper_is_refused_where_it_would_go_back(path: Path) -> None:
    query = Checkpoint(path, startingOffsets="earliest")
    query.batch()
    limited = Checkpoint(path, startingOffsets="earliest", maxOffsetsPerTrigger=2).stream
    prepared = limited.latest()
    seen = json.loads(query.ends[-1])
    limited.ranges(seen, seen)
    with pytest.raises(
        InvalidSetting, match=r"use option availableNow and duolog\.connector\.run_"
    ):
        limited.ranges(seen, prepared)


# -- groups


def positions(path: Path) -> dict[int, int]:
    with duolog.open_log(path) as log:
        return {found.partition: found.position for found in log.group_positions("g", "orders")}


def test_a_batch_is_acknowledged_when_it_is_done_and_not_before(path: Path) -> None:
    query = Checkpoint(path, startingOffsets="earliest", maxOffsetsPerTrigger=4, group="g")
    query.batch()
    assert positions(path) == {}
    query.batch()
    assert positions(path) == {0: 3, 1: 1}
    assert query.batch() is None
    assert positions(path) == {0: 6, 1: 2}


def test_a_batch_that_failed_is_not_acknowledged_by_the_restart(path: Path) -> None:
    query = Checkpoint(path, startingOffsets="earliest", group="g")
    query.batch()
    query.start()
    query.again()
    assert positions(path) == {}
    assert query.batch() is None
    assert positions(path) == {0: 6, 1: 2}


def test_what_the_last_run_left_is_acknowledged_by_commit(path: Path) -> None:
    query = Checkpoint(path, startingOffsets="earliest", group="g")
    query.batch()
    query.stream.latest()
    with duolog.open_log(path) as log:
        log.delete_group("g")
    query.start().latest()
    query.stream.commit(json.loads(query.ends[-1]))
    assert positions(path) == {0: 6, 1: 2}


def test_a_group_is_never_moved_back(path: Path) -> None:
    with duolog.open_log(path) as log:
        log.ack("g", "orders", 5, 0)
    query = Checkpoint(path, startingOffsets="earliest", maxOffsetsPerTrigger=4, group="g")
    query.batch()
    query.batch()
    assert positions(path) == {0: 6, 1: 1}


# -- a log that a host owns


def test_a_hosted_log_is_asked_each_time_and_says_when_there_is_more(path: Path) -> None:
    with Host(path) as host:
        query = Checkpoint(path, startingOffsets="earliest", group="g")
        assert query.batch() == {("orders", 0): (0, 6), ("orders", 1): (0, 2)}
        assert query.batch() is None
        assert [found.position for found in host.log.group_positions("g")] == [6, 2]
        publish(host.log, 0, 1)
        assert query.batch() == {("orders", 0): (6, 7)}
        host.log.drop_topic("orders")
        with pytest.raises(UnknownTopic, match="orders"):
            query.batch()


def test_a_stream_goes_on_when_a_host_takes_over_and_leaves(path: Path) -> None:
    query = Checkpoint(path)
    assert query.batch() == {}
    with Host(path) as host:
        publish(host.log, 0, 1)
        assert query.batch() == {("orders", 0): (6, 7)}
        assert query.batch() is None
    assert query.batch() is None
    more(path, 1, 1)
    assert query.batch() == {("orders", 1): (2, 3)}
