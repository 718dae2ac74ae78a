"""What the log remembers of its mirror in Kafka, on every form of a log."""

from __future__ import annotations

from dataclasses import replace

import pytest

from duolog.errors import (
    InvalidRequest,
    MirrorChanged,
    NotFound,
    UnknownPartition,
    UnknownTopic,
)
from duolog.log.access import LogAccess
from duolog.log.mirror_model import (
    Mirror,
    MirrorChange,
    MirrorProducer,
    MirrorTarget,
    OffsetHeader,
    Run,
    Skip,
    SkipReason,
)
from duolog.log.model import TopicSettings
from tests.contract.conftest import Form

TARGET = MirrorTarget("cluster", "orders", "a-topic-id", 7, 0, 0, 0)


@pytest.fixture
def log(form: Form) -> LogAccess:
    log = form.open()
    log.create_topic("orders", TopicSettings(partitions=2))
    return log


def test_a_mirror_begins_once(form: Form, log: LogAccess) -> None:
    assert log.mirror("orders", 0) is None
    assert log.mirrors() == ()
    begun = log.begin_mirror("orders", 0, TARGET)
    assert begun == Mirror("orders", 0, 1, TARGET)
    with pytest.raises(MirrorChanged, match="has version 1, not 0"):
        log.begin_mirror("orders", 0, TARGET)
    for opened in form.now_and_restarted(log):
        assert opened.mirror("orders", 0) == begun
        assert opened.mirror("orders", 1) is None
        assert opened.mirrors() == opened.mirrors("orders") == (begun,)


def test_runs_and_skips_are_kept(form: Form, log: LogAccess) -> None:
    version = log.begin_mirror("orders", 1, TARGET).version
    first = MirrorChange(version, 0, 0, (Run(0, 5, 10),))
    version = log.change_mirror("orders", 1, first)
    grown = MirrorChange(version, 0, 0, (Run(0, 5, 20),), (Skip(20, 2, SkipReason.TOO_LARGE),))
    version = log.change_mirror("orders", 1, grown)
    beyond = MirrorChange(
        version, 1, 1, (Run(22, 30, 3, 2),), (Skip(25, 1, SkipReason.TIME_REFUSED),)
    )
    version = log.change_mirror("orders", 1, beyond)
    for opened in form.now_and_restarted(log):
        assert opened.mirror("orders", 1) == Mirror(
            "orders",
            1,
            version,
            TARGET,
            (Run(0, 5, 20), Run(22, 30, 3, 2)),
            (Skip(20, 2, SkipReason.TOO_LARGE), Skip(25, 1, SkipReason.TIME_REFUSED)),
        )


def test_runs_that_kafka_lost_are_cut(form: Form, log: LogAccess) -> None:
    version = log.begin_mirror("orders", 0, TARGET).version
    runs = (Run(0, 0, 10), Run(10, 20, 10), Run(20, 40, 10))
    version = log.change_mirror("orders", 0, MirrorChange(version, 0, 0, runs))
    log.change_mirror("orders", 0, MirrorChange(version, 1, 0, (Run(10, 20, 3),)))
    for opened in form.now_and_restarted(log):
        mirror = opened.mirror("orders", 0)
        assert mirror is not None
        assert mirror.runs == (Run(0, 0, 10), Run(10, 20, 3))


def test_who_read_an_older_version_changes_nothing(log: LogAccess) -> None:
    version = log.begin_mirror("orders", 0, TARGET).version
    log.change_mirror("orders", 0, MirrorChange(version, 0, 0, (Run(0, 0, 1),)))
    with pytest.raises(MirrorChanged):
        log.change_mirror("orders", 0, MirrorChange(version, 0, 0, (Run(0, 0, 9),)))
    mirror = log.mirror("orders", 0)
    assert mirror is not None
    assert mirror.runs == (Run(0, 0, 1),)


@pytest.mark.parametrize(
    ("runs", "skips"),
    [
        pytest.param((Run(0, 0, 0),), (), id="empty"),
        pytest.param((Run(0, 0, 5), Run(4, 10, 5)), (), id="overlap in the log"),
        pytest.param((Run(0, 0, 5), Run(5, 4, 5)), (), id="overlap in Kafka"),
        pytest.param((Run(5, 0, 5), Run(0, 10, 5)), (), id="out of order"),
        pytest.param((Run(0, 0, 5),), (Skip(4, 1, SkipReason.GONE),), id="sent and skipped"),
    ],
)
def test_runs_that_cannot_be_are_refused(
    log: LogAccess, runs: tuple[Run, ...], skips: tuple[Skip, ...]
) -> None:
    version = log.begin_mirror("orders", 0, TARGET).version
    with pytest.raises(InvalidRequest):
        log.change_mirror("orders", 0, MirrorChange(version, 0, 0, runs, skips))
    assert log.mirror("orders", 0) == Mirror("orders", 0, version, TARGET)


def test_a_mirror_begins_anew_and_forgets_its_runs(form: Form, log: LogAccess) -> None:
    version = log.begin_mirror("orders", 0, TARGET).version
    version = log.change_mirror("orders", 0, MirrorChange(version, 0, 0, (Run(0, 0, 9),)))
    anew = replace(TARGET, kafka_topic_id="another", begin_kafka_offset=4)
    log.begin_mirror("orders", 0, anew, version=version)
    for opened in form.now_and_restarted(log):
        assert opened.mirror("orders", 0) == Mirror("orders", 0, version + 1, anew)


def test_a_forgotten_mirror_leaves_nothing(form: Form, log: LogAccess) -> None:
    for partition in (0, 1):
        version = log.begin_mirror("orders", partition, TARGET).version
        log.change_mirror("orders", partition, MirrorChange(version, 0, 0, (Run(0, 0, 9),)))
    assert log.forget_mirror("orders", 0)
    assert not log.forget_mirror("orders", 0)
    for opened in form.now_and_restarted(log):
        assert opened.mirror("orders", 0) is None
        assert [mirror.partition for mirror in opened.mirrors()] == [1]
    log = form.restart()
    log.drop_topic("orders")
    log.create_topic("orders", TopicSettings(partitions=2))
    for opened in form.now_and_restarted(log):
        assert opened.mirrors() == ()


def test_what_is_not_there(log: LogAccess) -> None:
    with pytest.raises(UnknownTopic):
        log.mirror("nope", 0)
    with pytest.raises(UnknownPartition):
        log.begin_mirror("orders", 2, TARGET)
    with pytest.raises(NotFound, match="has no mirror"):
        log.change_mirror("orders", 0, MirrorChange(0, 0, 0))


def test_a_log_keeps_one_producer_for_each_cluster(form: Form, log: LogAccess) -> None:
    assert log.mirror_producer("one") is None
    first, other = MirrorProducer("one", 7, 0), MirrorProducer("two", 8, 0)
    assert log.keep_mirror_producer(first) == first
    assert log.keep_mirror_producer(replace(first, producer_id=9)) == first
    assert log.keep_mirror_producer(other) == other
    for opened in form.now_and_restarted(log):
        assert opened.mirror_producer("one") == first
        assert opened.mirror_producer("two") == other


def test_what_both_sides_have_let_go_is_forgotten(form: Form, log: LogAccess) -> None:
    runs = tuple(Run(n * 10, n * 12, 8, n * 2) for n in range(5_000))
    skips = tuple(Skip(n * 10 + 8, 2, SkipReason.TOO_LARGE) for n in range(5_000))
    version = log.begin_mirror("orders", 0, TARGET).version
    version = log.change_mirror("orders", 0, MirrorChange(version, 0, 0, runs, skips))
    before = log.mirror("orders", 0)
    assert before is not None
    gone = before.prunable(log_start=49_970, kafka_start=49_990)
    assert gone == (4_166, 4_166)  # Kafka still has what lies behind them
    change = MirrorChange(version, len(runs), len(skips), (), (), *gone)
    log.change_mirror("orders", 0, change)
    for opened in form.now_and_restarted(log):
        mirror = opened.mirror("orders", 0)
        assert mirror is not None
        assert (mirror.runs, mirror.skips) == (runs[4_166:], skips[4_166:])
        assert mirror.skipped == before.skipped
        assert mirror.skipped_before(49_000) == before.skipped_before(49_000)
        assert mirror.next_log_offset == before.next_log_offset
        assert mirror.prunable(60_000, 70_000) == (833, 833)  # the last one says where it is
    version = form.restart().change_mirror(
        "orders", 0, MirrorChange(version + 1, 834, 834, (Run(50_000, 60_000, 1, 10_000),))
    )
    with pytest.raises(InvalidRequest, match="cannot be forgotten"):
        form.restart().change_mirror(
            "orders", 0, MirrorChange(version, 835, 834, (), (), pruned_runs=835)
        )


def test_which_records_have_their_offset_as_a_header_is_kept(form: Form, log: LogAccess) -> None:
    version = log.begin_mirror("orders", 0, TARGET).version
    headers = (OffsetHeader(0, "at"), OffsetHeader(7, None))
    version = log.change_mirror(
        "orders", 0, MirrorChange(version, 0, 0, (Run(0, 0, 9),), offset_headers=headers)
    )
    log.change_mirror("orders", 0, MirrorChange(version, 0, 0, (Run(0, 0, 10),)))
    for opened in form.now_and_restarted(log):
        mirror = opened.mirror("orders", 0)
        assert mirror is not None
        assert mirror.offset_headers == headers
    with pytest.raises(InvalidRequest, match="cannot follow"):
        form.restart().change_mirror(
            "orders", 0, MirrorChange(version + 1, 1, 0, offset_headers=headers[::-1])
        )
