"""Publishing single records, on every form of a log."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from duolog.errors import (
    InvalidRecord,
    InvalidRequest,
    RecordTooLarge,
    SequenceContentMismatch,
    SequenceTooOld,
    UnknownPartition,
    UnknownRoute,
    UnknownTopic,
)
from duolog.log.access import LogAccess
from duolog.log.model import Envelope, Op, PayloadMode, Record, Route, TopicSettings
from duolog.log.published import REMEMBERED_SEQUENCES
from tests.contract.conftest import Form


def values(log: LogAccess, topic: str, partition: int = 0) -> list[bytes | None]:
    (offsets,) = [o for o in log.offsets(topic) if o.partition == partition]
    return [record.value for record in log.fetch(topic, partition, offsets.start)]


def test_what_is_published_is_read_back_whole(form: Form) -> None:
    log = form.open()
    log.create_topic("orders")
    sent = [
        Record(b"full", b"key", (("h", b"1"), ("empty", b""), ("none", None)), 0, 5),
        Record(b"", b""),
        Record(None, b"gone", op=Op.DELETE, table="shop.orders", payload=PayloadMode.KEY),
        Record(b"\xff\x00", None, table="naïve"),
    ]
    log.publish("orders", sent)
    for opened in form.now_and_restarted(log):
        got = list(opened.fetch("orders", 0, 0))
        assert [(r.value, r.key, r.headers, r.op, r.table, r.payload) for r in got] == [
            (r.value, r.key, r.headers, r.op, r.table, r.payload) for r in sent
        ]
        assert [r.ts_ms for r in got] == [5, *[form.clock.at_ms] * 3]


def test_offsets_are_gapless_and_in_order(log: LogAccess) -> None:
    log.create_topic("orders")
    placed = [log.publish("orders", Record(b"%d" % n))[0].offset for n in range(20)]
    assert placed == list(range(20))
    assert values(log, "orders") == [b"%d" % n for n in range(20)]


def test_a_key_always_goes_to_one_partition(log: LogAccess) -> None:
    log.create_topic("orders", TopicSettings(partitions=8))
    seen = {log.publish("orders", Record(b"v", b"key-21"))[0].partition for _ in range(10)}
    assert len(seen) == 1


def test_records_without_key_take_turns(log: LogAccess) -> None:
    log.create_topic("orders", TopicSettings(partitions=4))
    seen = [log.publish("orders", Record(b"v"))[0].partition for _ in range(8)]
    assert sorted(seen) == [0, 0, 1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize("partitions", [1, 4])
def test_24_publishers_of_20_events_make_480_distinct_ones(form: Form, partitions: int) -> None:
    log = form.open()
    log.create_topic("orders", TopicSettings(partitions=partitions))

    def publish(publisher: int) -> list[tuple[int, int]]:
        return [
            (placed.partition, placed.offset)
            for event in range(20)
            for placed in log.publish("orders", Record(b"%d/%d" % (publisher, event)))
        ]

    with ThreadPoolExecutor(24) as pool:
        places = [place for answered in pool.map(publish, range(24)) for place in answered]
    log = form.restart()
    stored = [value for p in range(partitions) for value in values(log, "orders", p)]
    assert len(stored) == len(set(stored)) == 480
    assert set(stored) == {b"%d/%d" % (p, e) for p in range(24) for e in range(20)}
    expected = [(o.partition, n) for o in log.offsets("orders") for n in range(o.next_offset)]
    assert sorted(places) == expected


def test_records_that_no_topic_takes(form: Form) -> None:
    form.configure(max_record_bytes=100)
    log = form.open()
    log.create_topic("orders", TopicSettings(partitions=2))
    with pytest.raises(RecordTooLarge, match="100"):
        log.publish("orders", [Record(b"fine"), Record(b"x" * 101)])
    with pytest.raises(InvalidRecord):
        log.publish("orders", Record("text"))  # type: ignore[arg-type]
    with pytest.raises(InvalidRecord):
        log.publish("orders", Record(b"", ts_ms=-1))
    with pytest.raises(InvalidRecord):
        log.publish("orders", Record(b"", headers=(("h", "text"),)))  # type: ignore[arg-type]
    with pytest.raises(UnknownPartition):
        log.publish("orders", Record(b"", partition=2))
    with pytest.raises(UnknownTopic):
        log.publish("nope", Record(b""))
    with pytest.raises(UnknownTopic):
        log.publish(None, Record(b""))  # type: ignore[arg-type]
    assert [o.next_offset for o in log.offsets("orders")] == [0, 0]
    log.publish("orders", Record(b"x" * 100))


def test_nothing_to_publish_is_nothing(log: LogAccess) -> None:
    log.create_topic("orders")
    assert log.publish("orders", []) == ()


def test_a_repeated_sequence_gets_its_first_answer(form: Form) -> None:
    log = form.open()
    log.create_topic("orders", TopicSettings(partitions=3))
    records = [Record(b"a", b"k1"), Record(b"b", b"k2"), Record(b"c")]
    first = log.publish("orders", records, writer="w", sequence=7)
    assert log.publish("orders", records, writer="w", sequence=7) == first
    log = form.restart()
    assert log.publish("orders", records, writer="w", sequence=7) == first
    assert sum(o.next_offset for o in log.offsets("orders")) == 3
    assert log.publish("orders", records, writer="other", sequence=7) != first


def test_records_sent_again_in_other_groups_are_written_once(form: Form) -> None:
    log = form.open()
    log.create_topic("orders")
    records = [Record(b"%d" % n) for n in range(10)]
    assert log.last_sequence("w") is None
    for start, end in ((0, 4), (2, 3), (3, 7), (0, 10)):
        placed = log.publish("orders", records[start:end], writer="w", sequence=start)
        assert [p.offset for p in placed] == list(range(start, end))
    log = form.restart()
    assert log.last_sequence("w") == 9
    log.publish("orders", records, writer="w", sequence=0)
    assert values(log, "orders") == [record.value for record in records]


def test_a_repeat_at_the_same_moment_is_written_once(log: LogAccess) -> None:
    log.create_topic("orders")
    with ThreadPoolExecutor(16) as pool:
        answers = list(
            pool.map(
                lambda _: log.publish("orders", Record(b"once"), writer="w", sequence=1), range(64)
            )
        )
    assert len(set(answers)) == 1
    assert values(log, "orders") == [b"once"]


def test_a_sequence_with_other_records_is_refused(log: LogAccess) -> None:
    log.create_topic("orders")
    log.publish("orders", Record(b"a"), writer="w", sequence=1)
    with pytest.raises(SequenceContentMismatch):
        log.publish("orders", Record(b"b"), writer="w", sequence=1)
    log.create_topic("other")
    with pytest.raises(SequenceContentMismatch, match="another topic"):
        log.publish("other", Record(b"a"), writer="w", sequence=1)
    log.drop_topic("orders")
    with pytest.raises(SequenceContentMismatch, match="another topic"):
        log.publish("other", Record(b"a"), writer="w", sequence=1)


def test_a_writer_and_its_sequence_belong_together(log: LogAccess) -> None:
    log.create_topic("orders")
    with pytest.raises(InvalidRequest):
        log.publish("orders", Record(b"b"), writer="w")
    with pytest.raises(InvalidRequest):
        log.publish("orders", Record(b"b"), writer="w", sequence=-1)


def test_sequences_may_come_out_of_order_but_not_from_long_ago(form: Form) -> None:
    log = form.open()
    log.create_topic("orders")
    for sequence in (5, 3, 4, REMEMBERED_SEQUENCES * 3):
        log.publish("orders", Record(b"%d" % sequence), writer="w", sequence=sequence)
    for opened in form.now_and_restarted(log):
        with pytest.raises(SequenceTooOld):
            opened.publish("orders", Record(b"?"), writer="w", sequence=6)
    assert len(values(form.restart(), "orders")) == 4


def test_rows_go_to_every_topic_with_a_route(log: LogAccess) -> None:
    for name in ("orders", "audit", "deletes"):
        log.create_topic(name)
    log.add_route("orders", Route("shop.orders", frozenset({Op.INSERT})))
    log.add_route("audit", Route("shop.orders", frozenset({Op.INSERT}), payload=PayloadMode.KEY))
    log.add_route("deletes", Route("shop.orders", frozenset({Op.DELETE})))
    placed = log.publish_rows(
        "shop.orders", Op.INSERT, [{"id": 1, "amount": 5}, {"id": 2, "amount": 7}], ["id"]
    )
    assert sorted((p.topic, p.offset) for p in placed) == [
        ("audit", 0), ("audit", 1), ("orders", 0), ("orders", 1),
    ]  # fmt: skip
    (first, _) = list(log.fetch("orders", 0, 0))
    assert (first.op, first.table, first.payload) == (
        Op.INSERT, "shop.orders", PayloadMode.FULL,
    )  # fmt: skip
    assert first.key == b'{"id":1}'
    with pytest.raises(UnknownRoute, match=r"shop\.orders"):
        log.publish_rows("shop.order", Op.INSERT, [{"id": 1}], ["id"])


def test_a_repeat_of_a_keys_latest_change_is_left_out(form: Form) -> None:
    log = form.open()
    log.create_topic("orders", TopicSettings(dedup_window_seconds=60))

    def change(key: bytes, value: bytes) -> int:
        record = Record(value, key, op=Op.UPDATE, table="shop.orders")
        return log.publish("orders", record)[0].offset

    assert [change(b"k", v) for v in (b"A", b"A", b"B", b"B", b"A")] == [0, 0, 1, 1, 2]
    assert change(b"other", b"A") == 3
    assert log.stats().duplicates_dropped == 2
    log = form.restart()
    assert change(b"k", b"A") == 2
    form.clock.advance(seconds=61)
    assert change(b"k", b"A") == 4
    log.publish("orders", [Record(b"plain", b"k"), Record(b"plain", b"k")])
    assert values(log, "orders") == [b"A", b"B", b"A", b"A", b"A", b"plain", b"plain"]


@pytest.mark.parametrize("count", [REMEMBERED_SEQUENCES - 1, REMEMBERED_SEQUENCES, 2500])
def test_a_log_opens_again_whatever_number_a_writer_came_to(form: Form, count: int) -> None:
    log = form.open()
    log.create_topic("orders")
    log.publish("orders", [Record(b"%d" % n) for n in range(count)], writer="w", sequence=0)
    again = form.restart()
    assert again.last_sequence("w") == count - 1
    assert again.offsets("orders")[0].next_offset == count


@pytest.mark.parametrize(
    "other",
    [
        Record(b"v", b"k", op=Op.DELETE, table="a.b"),
        Record(b"v", b"k", op=Op.INSERT, table="a.c"),
        Record(b"v", b"k", op=Op.INSERT, table="a.b", payload=PayloadMode.KEY),
        Record(b"v", b"k", op=Op.INSERT, table="a.b", partition=1),
        Record(b"w", b"k", op=Op.INSERT, table="a.b"),
        Record(b"v", b"l", op=Op.INSERT, table="a.b"),
    ],
)
def test_another_change_under_a_known_sequence_is_refused(form: Form, other: Record) -> None:
    log = form.open()
    log.create_topic("orders", TopicSettings(partitions=2))
    first = Record(b"v", b"k", (("h", b"1"),), op=Op.INSERT, table="a.b", partition=0)
    placed = log.publish("orders", first, writer="w", sequence=7)
    for opened in form.now_and_restarted(log):
        with pytest.raises(SequenceContentMismatch):
            opened.publish("orders", other, writer="w", sequence=7)
        again = Record(b"v", b"k", (("h", b"2"),), op=Op.INSERT, table="a.b", ts_ms=5)
        assert opened.publish("orders", again, writer="w", sequence=7) == placed


@pytest.mark.parametrize("envelope", list(Envelope))
def test_rows_that_come_again_are_known_although_their_payload_has_the_time(
    form: Form, envelope: Envelope
) -> None:
    log = form.open()
    log.create_topic("orders", TopicSettings(envelope=envelope))
    log.add_route("orders", Route("shop.orders", frozenset({Op.INSERT})))
    rows = [{"id": number} for number in range(3)]

    def publish(opened: LogAccess) -> list[int]:
        placed = opened.publish_rows("shop.orders", Op.INSERT, rows, ["id"], writer="w", sequence=0)
        return [each.offset for each in placed]

    assert publish(log) == [0, 1, 2]
    for opened in form.now_and_restarted(log):
        form.clock.advance(seconds=60)
        assert publish(opened) == [0, 1, 2]
    assert len(values(opened, "orders")) == 3
