"""Atomic epochs, on every form of a log."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from duolog.errors import (
    DamagedPart,
    EpochContentMismatch,
    EpochGap,
    EpochTooOld,
    InvalidName,
    InvalidRequest,
    StagedForOtherTopic,
)
from duolog.log.access import LogAccess
from duolog.log.model import Mode, Op, Record, TopicSettings, Writer
from duolog.log.part import Part
from tests.contract.conftest import Form
from tests.contract.test_publishing import values
from tests.support.records import BATCH, STREAM, part_of

NUMBERS = [b"%d" % n for n in range(1000)]


def test_an_epoch_goes_to_many_topics_and_partitions_at_once(form: Form) -> None:
    log = form.open()
    orders = log.create_topic("orders", TopicSettings(partitions=2))
    audit = log.create_topic("audit")
    log.publish("orders", Record(b"before", partition=1))
    parts = [part_of(orders, {0: [b"a", b"b"], 1: [b"c"]}), part_of(audit, {0: [b"d"]})]
    answer = log.append(STREAM, 0, parts)
    assert not answer.repeated
    assert [(r.topic, r.partition, r.start, r.next_offset) for r in answer.ranges] == [
        ("orders", 0, 0, 2), ("orders", 1, 1, 2), ("audit", 0, 0, 1),
    ]  # fmt: skip
    for opened in form.now_and_restarted(log):
        assert values(opened, "orders", 0) == [b"a", b"b"]
        assert values(opened, "orders", 1) == [b"before", b"c"]
        assert values(opened, "audit") == [b"d"]


def test_a_large_epoch_keeps_its_order(form: Form) -> None:
    log = form.open()
    topic = log.create_topic("orders")
    place = log.staging(STREAM, 0)
    content = [random.Random(7).randbytes(4000) for _ in range(1500)]
    parts = [
        part_of(topic, {0: content[at : at + 500]}, folder=place) for at in range(0, 1500, 500)
    ]
    log.append(STREAM, 0, parts)
    log = form.restart()
    read: list[bytes | None] = []
    while len(read) < 1500:
        read += [record.value for record in log.fetch("orders", 0, len(read))]
    assert read == content


def test_an_empty_epoch_counts(log: LogAccess) -> None:
    topic = log.create_topic("orders")
    assert log.append(STREAM, 0, []).ranges == ()
    assert log.append(STREAM, 0, []).repeated
    log.append(STREAM, 1, [part_of(topic, {0: [b"a"]})])
    with pytest.raises(EpochGap):
        log.append(STREAM, 3, [])


def test_lower_orders_come_first_whatever_the_part(log: LogAccess) -> None:
    from duolog.log.part import PartBuilder
    from tests.support.records import record_batch

    topic = log.create_topic("orders")
    parts = []
    for task in range(3):
        builder = PartBuilder()
        for version in (2, 0, 1):
            builder.add(topic, 0, record_batch([b"v%d-t%d" % (version, task)]), order=version)
        parts.append(builder.finish())
    log.append(STREAM, 0, parts)
    assert values(log, "orders") == [b"v%d-t%d" % (v, t) for v in range(3) for t in range(3)]


def test_a_repeat_answers_the_first_offsets(form: Form) -> None:
    log = form.open()
    topic = log.create_topic("orders", TopicSettings(partitions=2))
    first = log.append(STREAM, 0, [part_of(topic, {0: NUMBERS[:500], 1: NUMBERS[500:]})])
    log.publish("orders", Record(b"later", partition=0))
    # The same rows in another order, split otherwise, at another time.
    again = [
        part_of(topic, {1: NUMBERS[:499:-1]}, ts_ms=1),
        part_of(topic, {0: NUMBERS[:100]}, target_bytes=100),
        part_of(topic, {0: NUMBERS[100:500]}),
    ]
    for opened in form.now_and_restarted(log):
        repeat = opened.append(STREAM, 0, again)
        assert repeat.repeated
        assert repeat.ranges == first.ranges
        assert [o.next_offset for o in opened.offsets("orders")] == [501, 500]
        assert opened.last_epoch(STREAM) == replace(repeat, repeated=False)


@pytest.mark.parametrize(
    "other", [[], [b"a"], [b"a", b"c"], [b"a", b"b", b"b"], [b"ab", b""], [b"a", None]]
)
def test_a_repeat_with_other_content_is_refused(log: LogAccess, other: list[bytes | None]) -> None:
    topic = log.create_topic("orders")
    log.append(STREAM, 0, [part_of(topic, {0: [b"a", b"b"]})])
    with pytest.raises(EpochContentMismatch, match="checkpoint"):
        log.append(STREAM, 0, [part_of(topic, {0: other})] if other else [])
    assert values(log, "orders") == [b"a", b"b"]


def test_an_epoch_remembers_when_its_writer_made_it(form: Form, log: LogAccess) -> None:
    topic = log.create_topic("orders")
    made = log.append(STREAM, 0, [part_of(topic, {0: [b"a"]})], at_ms=12_345)
    assert made.at_ms == 12_345
    for opened in form.now_and_restarted(log):
        last = opened.last_epoch(STREAM)
        assert last is not None
        assert last.at_ms == 12_345
        again = opened.append(STREAM, 0, [part_of(topic, {0: [b"a"]})], at_ms=99_999)
        assert (again.repeated, again.at_ms) == (True, 12_345)


def test_an_epoch_without_a_time_takes_the_one_of_its_commit(form: Form, log: LogAccess) -> None:
    assert log.append(STREAM, 0, []).at_ms == form.clock.now_ms()


def test_an_epoch_keeps_its_writers_note(form: Form, log: LogAccess) -> None:
    topic = log.create_topic("orders")
    parts = [part_of(topic, {0: [b"a"]})]
    assert log.append(STREAM, 0, parts, note="version 7").note == "version 7"
    for opened in form.now_and_restarted(log):
        last = opened.last_epoch(STREAM)
        assert last is not None
        assert last.note == "version 7"
        assert opened.append(STREAM, 0, parts, note="another").note == "version 7"
    assert form.restart().append(STREAM, 1, []).note == ""
    with pytest.raises(InvalidRequest):
        form.restart().append(STREAM, 2, [], note="x" * 1001)


def test_a_forgotten_writer_begins_again(form: Form, log: LogAccess) -> None:
    topic = log.create_topic("orders")
    log.append(BATCH, 7, [part_of(topic, {0: [b"a"]})])
    assert log.forget_writer(BATCH)
    assert not log.forget_writer(BATCH)
    for opened in form.now_and_restarted(log):
        assert opened.last_epoch(BATCH) is None
        assert values(opened, "orders") == [b"a"]
    assert not form.restart().append(BATCH, 3, []).repeated


def test_streams_follow_and_batches_grow(log: LogAccess) -> None:
    topic = log.create_topic("orders")

    def append(writer: Writer, epoch: int) -> None:
        log.append(writer, epoch, [part_of(topic, {0: [b"%d" % epoch]})])

    with pytest.raises(EpochGap, match="older than the log"):
        append(STREAM, 4)
    for epoch in (0, 1, 2):
        append(STREAM, epoch)
    with pytest.raises(EpochGap, match="1 are missing"):
        append(STREAM, 4)
    with pytest.raises(EpochTooOld, match="committed 2"):
        append(STREAM, 1)
    for epoch in (17, 18, 500):
        append(BATCH, epoch)
    with pytest.raises(EpochTooOld, match="txnVersion"):
        append(BATCH, 499)
    with pytest.raises(EpochContentMismatch, match="txnVersion"):
        log.append(BATCH, 500, [])
    log.append(replace(STREAM, name="moved here"), 4, [], begin_anywhere=True)
    assert len(values(log, "orders")) == 6


def test_two_targets_of_one_query_are_two_writers(log: LogAccess) -> None:
    topic = log.create_topic("orders")
    for target in ("orders", "audit"):
        writer = Writer(Mode.STREAM, "query", target)
        assert not log.append(writer, 0, [part_of(topic, {0: [target.encode()]})]).repeated
    assert values(log, "orders") == [b"orders", b"audit"]


@pytest.mark.parametrize("epoch", [-1, True, 1.5, None, "0"])
def test_an_epoch_is_a_number(log: LogAccess, epoch: int) -> None:
    with pytest.raises(InvalidRequest):
        log.append(STREAM, epoch, [])


def test_a_writer_needs_a_name(log: LogAccess) -> None:
    with pytest.raises(InvalidName):
        log.append(Writer(Mode.STREAM, "", "orders"), 0, [])
    with pytest.raises(InvalidName):
        log.append(Writer(Mode.STREAM, "query", ""), 0, [])


def test_parts_for_a_topic_that_has_changed_are_refused(log: LogAccess) -> None:
    topic = log.create_topic("orders")
    staged = part_of(topic, {0: [b"a"]})
    log.set_partitions("orders", 2)
    with pytest.raises(StagedForOtherTopic, match="1 partitions; it has 2"):
        log.append(STREAM, 0, [staged])
    staged = part_of(log.topic("orders"), {1: [b"a"]})
    log.drop_topic("orders")
    log.create_topic("orders", TopicSettings(partitions=2))
    with pytest.raises(StagedForOtherTopic, match="dropped"):
        log.append(STREAM, 0, [staged])
    assert log.last_epoch(STREAM) is None


def test_a_damaged_part_is_refused_before_anything_is_written(form: Form, log: LogAccess) -> None:
    topic = log.create_topic("orders")
    place = log.staging(STREAM, 0)
    good = part_of(topic, {0: NUMBERS}, folder=place)
    staged = part_of(topic, {0: NUMBERS}, folder=place)
    file = form.staged_file(staged.path)
    whole = file.read_bytes()
    for damaged in (whole[:-1], whole + b"x", b"", whole[:50] + b"\x00" + whole[51:]):
        file.write_bytes(damaged)
        with pytest.raises(DamagedPart, match="Run the write again"):
            log.append(STREAM, 0, [good, staged])
    file.unlink()
    with pytest.raises(DamagedPart, match="staging folder"):
        log.append(STREAM, 0, [good, staged])
    assert values(log, "orders") == []
    lying = replace(good, batches=tuple(replace(b, count=b.count + 1) for b in good.batches))
    with pytest.raises(DamagedPart):
        log.append(STREAM, 0, [lying])
    file.write_bytes(whole)
    assert log.append(STREAM, 0, [good, staged]).ranges[0].next_offset == 2000


def test_a_failed_append_leaves_nothing_behind(log: LogAccess) -> None:
    topic = log.create_topic("orders")
    good = part_of(topic, {0: NUMBERS}, target_bytes=100)
    assert good.body is not None
    lying = replace(good, batches=(*good.batches[:-1], replace(good.batches[-1], max_ts_ms=1)))
    with pytest.raises(DamagedPart):
        log.append(STREAM, 0, [lying])
    log.publish("orders", Record(b"next"))
    log.append(STREAM, 0, [good])
    assert values(log, "orders") == [b"next", *NUMBERS]


def test_a_part_travels_as_a_message(log: LogAccess, tmp_path: Path) -> None:
    topic = log.create_topic("orders")
    for folder in (None, tmp_path):
        part = part_of(topic, {0: NUMBERS}, folder=folder)
        assert Part.from_message(part.message()) == part


def test_epochs_leave_out_repeats_of_latest_changes(form: Form) -> None:
    log = form.open()
    topic = log.create_topic("orders", TopicSettings(dedup_window_seconds=60))
    now = form.clock.at_ms

    def part(letters: str) -> Part:
        content = [letter.encode() for letter in letters]
        return part_of(
            topic, {0: content}, keys=[b"k"] * len(content), op=Op.UPDATE, table="t", ts_ms=now
        )

    assert log.append(STREAM, 0, [part("AABBA")]).duplicates_dropped == 2
    log = form.restart()
    answer = log.append(STREAM, 1, [part("AAB")])
    assert answer.duplicates_dropped == 2
    assert log.append(STREAM, 1, [part("AAB")]).duplicates_dropped == 2
    assert values(log, "orders") == [b"A", b"B", b"A", b"B"]
    assert log.append(STREAM, 2, [part("B")]).ranges == ()
