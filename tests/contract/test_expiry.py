"""What is remembered of writers goes when they have not written for a week, on every form."""

from __future__ import annotations

import pytest

from duolog.errors import EpochTooOld, SequenceTooOld
from duolog.log.access import LogAccess
from duolog.log.model import Record
from duolog.log.published import REMEMBERED_SEQUENCES
from tests.contract.conftest import Form
from tests.support.records import BATCH, STREAM, part_of

DAY_SECONDS = 24 * 3600


def publish(log: LogAccess, writer: str, sequence: int) -> int:
    record = Record(b"%d" % sequence)
    return log.publish("orders", record, writer=writer, sequence=sequence)[0].offset


def look_twice(form: Form, log: LogAccess) -> None:
    """Whoever is idle at both looks is forgotten."""
    form.do_duties(log)
    form.clock.advance(seconds=3601)
    form.do_duties(log)


def test_a_publisher_is_remembered_for_a_week_after_it_published_last(form: Form) -> None:
    log = form.open()
    log.create_topic("orders")
    for sequence, writer in enumerate(("idle", "alive", "alive")):
        publish(log, writer, sequence)
        form.clock.advance(seconds=3 * DAY_SECONDS)
    log = form.restart()
    look_twice(form, log)
    assert log.last_sequence("idle") is None
    assert log.last_sequence("alive") == 2
    assert [publish(log, "alive", sequence) for sequence in (1, 2)] == [1, 2]
    stats = log.stats()
    assert (stats.publishers_remembered, stats.publishers_expired) == (1, 1)
    assert publish(log, "idle", 0) == 3


def test_a_publisher_is_alive_by_whichever_sequence_it_published_last(form: Form) -> None:
    log = form.open()
    log.create_topic("orders")
    publish(log, "w", 9)
    form.clock.advance(seconds=6 * DAY_SECONDS)
    publish(log, "w", 5)
    form.clock.advance(seconds=6 * DAY_SECONDS)
    look_twice(form, log)
    assert [publish(log, "w", sequence) for sequence in (9, 5)] == [0, 1]


def test_a_batch_writer_is_forgotten_after_a_week_and_a_stream_never(form: Form) -> None:
    log = form.open()
    topic = log.create_topic("orders")
    part = part_of(topic, {0: [b"v"]})
    log.append(STREAM, 0, [part])
    log.append(BATCH, 7, [part])
    form.clock.advance(seconds=6 * DAY_SECONDS)
    look_twice(form, log)
    with pytest.raises(EpochTooOld):
        log.append(BATCH, 6, [part])
    form.clock.advance(seconds=365 * DAY_SECONDS)
    look_twice(form, log)
    assert log.last_epoch(BATCH) is None
    assert log.append(STREAM, 0, [part]).repeated
    stats = log.stats()
    assert (stats.batch_writers_remembered, stats.batch_writers_expired) == (0, 1)
    assert stats.stream_writers_remembered == 1


def test_the_time_is_an_option(form: Form) -> None:
    form.configure(writer_expiration_seconds=60)
    log = form.open()
    log.create_topic("orders")
    publish(log, "w", 0)
    for seconds, last in ((59, 0), (2, 0), (29, 0), (29, 0), (1, None)):  # two looks, 30 s apart
        form.clock.advance(seconds=seconds)
        form.do_duties(log)
        assert log.last_sequence("w") == last


def test_a_clock_that_is_wrong_at_one_look_makes_nobody_forgotten(form: Form) -> None:
    log = form.open()
    topic = log.create_topic("orders")
    part = part_of(topic, {0: [b"v"]})
    publish(log, "w", 0)
    log.append(BATCH, 7, [part])
    for days_ahead in (30, 31, 29):
        form.clock.advance(seconds=days_ahead * DAY_SECONDS)
        form.do_duties(log)
        form.clock.advance(seconds=60 - days_ahead * DAY_SECONDS)
        form.do_duties(log)
        log = form.restart()
        form.clock.advance(seconds=2 * 3600)
    assert publish(log, "w", 0) == 0
    assert log.append(BATCH, 7, [part]).repeated


def test_who_wrote_between_two_looks_is_alive(form: Form) -> None:
    log = form.open()
    topic = log.create_topic("orders")
    part = part_of(topic, {0: [b"v"]})
    for writer in ("idle", "alive"):
        publish(log, writer, 0)
    log.append(BATCH, 7, [part])
    form.clock.advance(seconds=8 * DAY_SECONDS)
    form.do_duties(log)
    publish(log, "alive", 1)
    log.append(BATCH, 8, [part])
    log = form.restart()
    form.clock.advance(seconds=3601)
    form.do_duties(log)
    assert [log.last_sequence(writer) for writer in ("idle", "alive")] == [None, 1]
    last = log.last_epoch(BATCH)
    assert last is not None
    assert last.epoch == 8


def test_looking_for_idle_writers_costs_no_sync(form: Form) -> None:
    log = form.open()
    topic = log.create_topic("orders")
    publish(log, "w", 0)
    log.append(BATCH, 7, [part_of(topic, {0: [b"v"]})])
    before = log.stats().syncs
    form.do_duties(log)
    assert log.stats().syncs == before
    assert log.stats().publishers_remembered == 1


def test_a_call_of_thousands_of_records_can_be_sent_again(form: Form) -> None:
    log = form.open()
    log.create_topic("orders")
    publish(log, "w", 0)
    records = [Record(b"%d" % sequence) for sequence in range(1, 6 * REMEMBERED_SEQUENCES)]
    first = log.publish("orders", records, writer="w", sequence=1)
    for opened in form.now_and_restarted(log):
        assert opened.publish("orders", records, writer="w", sequence=1) == first
        assert (
            opened.publish("orders", records[100:200], writer="w", sequence=101) == (first[100:200])
        )
    log = form.restart()
    for sequence in range(6 * REMEMBERED_SEQUENCES, 8 * REMEMBERED_SEQUENCES + 1, 64):
        log.publish("orders", [Record(b"next")] * 64, writer="w", sequence=sequence)
    with pytest.raises(SequenceTooOld):
        log.publish("orders", records, writer="w", sequence=1)
