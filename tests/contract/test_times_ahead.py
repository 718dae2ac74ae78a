"""Times far ahead: refused at the door, and no end of retention where an old log holds some."""

from __future__ import annotations

import pytest

from duolog.errors import InvalidTimestamp
from duolog.log import batch_ages, retention
from duolog.log.model import AtTimestamp, Record, Retention, Topic, TopicSettings
from duolog.log.timestamps import LATEST_TIME_MS
from tests.contract.conftest import Form
from tests.contract.test_publishing import values
from tests.support.records import STREAM, part_of

WITHOUT_LIMIT = 1e15
HOUR_SECONDS = 3600


def test_an_epoch_with_a_time_far_ahead_is_refused_whole(form: Form) -> None:
    log = form.open()
    topic = log.create_topic("orders", TopicSettings(partitions=2))
    now_ms = form.clock.at_ms
    for ts_ms in (now_ms + 3_600_001, now_ms * 1000, LATEST_TIME_MS, 2**63 - 1):
        parts = [
            part_of(topic, {0: [b"fine"]}, ts_ms=now_ms),
            part_of(topic, {0: [b"fine"], 1: [b"late"]}, ts_ms=ts_ms),
        ]
        with pytest.raises(InvalidTimestamp):
            log.append(STREAM, 0, parts)
    with pytest.raises(InvalidTimestamp, match="microseconds"):
        log.append(STREAM, 0, [part_of(topic, {0: [b"v"]}, ts_ms=now_ms * 1000)])
    assert [offsets.next_offset for offsets in log.offsets("orders")] == [0, 0]
    assert log.last_epoch(STREAM) is None
    log.append(STREAM, 0, [part_of(topic, {0: [b"v"]}, ts_ms=now_ms + 3_600_000)])
    assert values(form.restart(), "orders") == [b"v"]


def test_an_epoch_that_was_taken_is_a_repeat_whatever_the_clock_says(form: Form) -> None:
    log = form.open()
    topic = log.create_topic("orders")
    part = part_of(topic, {0: [b"v"]}, ts_ms=form.clock.at_ms)
    log.append(STREAM, 0, [part])
    form.clock.advance(seconds=-2 * HOUR_SECONDS)
    assert log.append(STREAM, 0, [part]).repeated


class Poisoned:
    """A log from before times far ahead were refused, a batch every minute, some of them ahead."""

    def __init__(self, form: Form, *, ahead: set[int], batches: int = 10) -> None:
        form.configure(max_timestamp_ahead_seconds=WITHOUT_LIMIT)
        log = form.open()
        self.topic: Topic = log.create_topic("orders")
        for epoch in range(batches):
            form.clock.advance(seconds=60)
            ts_ms = form.clock.at_ms * (1000 if epoch in ahead else 1)
            log.append(STREAM, epoch, [part_of(self.topic, {0: [b"%d" % epoch]}, ts_ms=ts_ms)])
        form.configure(max_timestamp_ahead_seconds=HOUR_SECONDS)
        self.log = form.restart()

    def kept_after(self, seconds: float) -> list[bytes | None]:
        self.log.set_retention("orders", Retention(seconds=seconds))
        self.log.enforce_retention()
        return values(self.log, "orders")


def numbers(first: int, last: int) -> list[bytes | None]:
    return [b"%d" % number for number in range(first, last + 1)]


@pytest.mark.parametrize(
    ("ahead", "first_kept"), [({0}, 4), ({3}, 3), ({0, 1, 2}, 4), ({2, 5, 7}, 4), ({0, 4, 8}, 4)]
)
def test_retention_by_age_goes_on_behind_a_time_far_ahead(
    form: Form, ahead: set[int], first_kept: int
) -> None:
    poisoned = Poisoned(form, ahead=ahead)
    assert poisoned.kept_after(5 * 60 + 1) == numbers(first_kept, 9)
    form.clock.advance(seconds=HOUR_SECONDS)
    assert poisoned.kept_after(60) == []
    poisoned.log.publish("orders", Record(b"young"))
    assert poisoned.kept_after(60) == [b"young"]
    form.clock.advance(seconds=61)
    assert poisoned.kept_after(60) == []
    assert poisoned.log.offsets("orders")[0].start == 11


def test_what_is_ahead_goes_with_the_next_that_is_too_old_and_not_before(form: Form) -> None:
    poisoned = Poisoned(form, ahead={3, 4, 5})
    assert poisoned.kept_after(5 * 60 + 1) == numbers(3, 9)  # the 4 old ones went: 3 is not known
    assert poisoned.kept_after(3 * 60 + 1) == numbers(3, 9)  # 6 is young yet
    assert poisoned.kept_after(2 * 60 + 1) == numbers(7, 9)


def test_what_is_ahead_at_the_end_stays_until_something_later_is_too_old(form: Form) -> None:
    poisoned = Poisoned(form, ahead={8, 9})
    assert poisoned.kept_after(1) == numbers(8, 9)
    poisoned.log.publish("orders", Record(b"later"))
    form.clock.advance(seconds=2)
    assert poisoned.kept_after(1) == []


def test_many_that_are_ahead_are_passed_at_once(
    form: Form, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer of microseconds, for a long time: more than a sweep judges or reads."""
    monkeypatch.setattr(retention, "_BATCHES_AT_ONCE", 4)
    monkeypatch.setattr(batch_ages, "_READ_BYTES", 1)
    poisoned = Poisoned(form, ahead=set(range(20)), batches=20)
    assert poisoned.kept_after(60) == numbers(0, 19)
    poisoned.log.publish("orders", Record(b"later"))
    form.clock.advance(seconds=120)
    assert poisoned.kept_after(180) == [*numbers(0, 19), b"later"]
    monkeypatch.setattr(batch_ages, "_READ_BYTES", 1 << 20)
    assert poisoned.kept_after(60) == []


def test_what_came_late_stays_behind_younger_ones_also_where_times_are_ahead(form: Form) -> None:
    poisoned = Poisoned(form, ahead={0})
    poisoned.log.publish("orders", Record(b"late", ts_ms=0))
    assert poisoned.kept_after(61) == [*numbers(8, 9), b"late"]


def test_a_clock_that_is_behind_for_a_while_removes_nothing(form: Form) -> None:
    poisoned = Poisoned(form, ahead=set())
    form.clock.advance(seconds=-30 * 24 * HOUR_SECONDS)
    assert poisoned.kept_after(1) == numbers(0, 9)
    form.clock.advance(seconds=30 * 24 * HOUR_SECONDS)
    assert poisoned.kept_after(61) == numbers(8, 9)


def test_retention_by_bytes_does_not_ask_for_times(form: Form) -> None:
    poisoned = Poisoned(form, ahead={0, 1, 9})
    poisoned.log.set_retention("orders", Retention(max_bytes=1))
    assert poisoned.log.enforce_retention().total.messages_deleted == 10


def test_clear_forgets_a_time_far_ahead(form: Form) -> None:
    poisoned = Poisoned(form, ahead={9})
    log = poisoned.log
    assert log.clear_topic("orders").messages_deleted == 10
    assert log.offsets("orders")[0].last_ts_ms == 0
    log.publish("orders", Record(b"new"))
    now_ms = form.clock.at_ms
    for opened in form.now_and_restarted(log):
        (offsets,) = opened.offsets("orders")
        assert (offsets.start, offsets.next_offset, offsets.last_ts_ms) == (10, 11, now_ms)
        assert opened.resolve("orders", 0, AtTimestamp(now_ms)) == 10
        assert opened.resolve("orders", 0, AtTimestamp(now_ms + 1)) == 11
    log = form.restart()
    form.clock.advance(seconds=2)
    log.set_retention("orders", Retention(seconds=1))
    log.enforce_retention()
    assert values(log, "orders") == []


def test_an_old_logs_records_can_be_read_by_their_times(form: Form) -> None:
    poisoned = Poisoned(form, ahead={5})
    log, begin_ms = poisoned.log, form.clock.at_ms - 9 * 60_000
    assert log.resolve("orders", 0, AtTimestamp(begin_ms + 4 * 60_000)) == 4
    assert log.resolve("orders", 0, AtTimestamp(begin_ms + 5 * 60_000)) == 5
    assert values(log, "orders") == numbers(0, 9)


def test_how_far_ahead_is_told_to_whoever_writes(form: Form) -> None:
    assert form.open().max_timestamp_ahead_seconds == HOUR_SECONDS
    form.configure(max_timestamp_ahead_seconds=12.5)
    assert form.restart().max_timestamp_ahead_seconds == 12.5
