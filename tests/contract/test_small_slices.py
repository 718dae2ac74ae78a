"""Many tasks' small slices of a partition are stored as few batches, on every form of a log."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa

from duolog.log.access import LogAccess
from duolog.log.batch import RECORD_SCHEMA
from duolog.log.model import AtTimestamp, Op, TopicSettings
from duolog.log.part import Part, PartBuilder
from tests.contract.conftest import Form
from tests.support.records import STREAM, part_of, record_batch

TASKS = 200
FIRST_TS_MS = 1_700_000_000_000


def stored_batches(log: LogAccess, topic: str, partition: int) -> int:
    return len(log.fetch_encoded(topic, partition, 0).batches)


def odd_records(task: int, chosen: random.Random) -> list[dict[str, Any]]:
    """Records that use every column, with nulls in all that may have them."""
    return [
        {
            "ts": FIRST_TS_MS + chosen.randrange(-5000, 5000) + 10 * task,
            "key": chosen.choice([None, b"", b"key-%d" % chosen.randrange(9)]),
            "value": chosen.choice([None, b"", chosen.randbytes(chosen.randrange(200))]),
            "headers": chosen.choice(
                [None, [{"name": "h", "value": None}, {"name": "", "value": b"%d" % task}]]
            ),
            "op": int(chosen.choice(list(Op))),
            "table": chosen.choice([None, "shop.orders", "naïve"]),
            "payload": chosen.randrange(2),
        }
        for _ in range(chosen.randrange(1, 5))
    ]


def part_from(log: LogAccess, rows: dict[int, list[dict[str, Any]]]) -> Part:
    builder = PartBuilder()
    for partition, records in rows.items():
        builder.add(
            log.topic("orders"),
            partition,
            pa.RecordBatch.from_pylist(records, schema=RECORD_SCHEMA),
        )
    return builder.finish()


def test_what_many_tasks_wrote_is_stored_in_few_batches_and_in_order(form: Form) -> None:
    log = form.open()
    topic = log.create_topic("orders", TopicSettings(partitions=3))
    parts = [
        part_of(topic, {p: [b"%d-%d-%d" % (p, task, n) for n in range(2)] for p in range(3)})
        for task in range(TASKS)
    ]
    log.append(STREAM, 0, parts)
    for opened in form.now_and_restarted(log):
        for partition in range(3):
            assert stored_batches(opened, "orders", partition) == 1
            fetched = opened.fetch("orders", partition, 0)
            assert [record.value for record in fetched] == [
                b"%d-%d-%d" % (partition, task, n) for task in range(TASKS) for n in range(2)
            ]
            assert [record.offset for record in fetched] == list(range(2 * TASKS))


def test_every_column_is_kept_as_it_was(form: Form) -> None:
    log = form.open()
    log.create_topic("orders", TopicSettings(partitions=2))
    chosen = random.Random(17)
    tasks = [
        {partition: odd_records(task, chosen) for partition in range(2)} for task in range(TASKS)
    ]
    log.append(STREAM, 0, [part_from(log, rows) for rows in tasks])
    for opened in form.now_and_restarted(log):
        for partition in range(2):
            read = opened.fetch("orders", partition, 0).table().drop_columns(["offset"])
            assert read.to_pylist() == [row for rows in tasks for row in rows[partition]]


def test_a_read_by_time_finds_the_first_record_within_joined_slices(log: LogAccess) -> None:
    topic = log.create_topic("orders")
    parts = [part_of(topic, {0: [b"a", b"b"]}, ts_ms=1000 * task) for task in range(TASKS)]
    log.append(STREAM, 0, parts)
    assert stored_batches(log, "orders", 0) == 1
    for task in (0, 1, 77, TASKS - 1):
        assert log.resolve("orders", 0, AtTimestamp(1000 * task)) == 2 * task
        assert log.resolve("orders", 0, AtTimestamp(1000 * task + 1)) == 2 * task + 2


def test_slices_of_a_lower_order_come_first_and_large_ones_stay_where_they_belong(
    log: LogAccess,
) -> None:
    topic = log.create_topic("orders")
    chosen = random.Random(3)
    large = [chosen.randbytes(100_000) for _ in range(4)]
    parts = []
    for task in range(4):
        builder = PartBuilder()
        for order in (1, 0):
            rows = [b"%d-%d" % (order, task), large[task] + b"%d-%d" % (order, task)]
            builder.add(topic, 0, record_batch([rows[0]]), order=order)
            builder.add(topic, 0, record_batch([rows[1]] * 3), order=order)
        parts.append(builder.finish())
    log.append(STREAM, 0, parts)
    expected = [
        value
        for order in (0, 1)
        for task in range(4)
        for value in [b"%d-%d" % (order, task)] + [large[task] + b"%d-%d" % (order, task)] * 3
    ]
    read: list[bytes | None] = []
    while len(read) < len(expected):
        read += [record.value for record in log.fetch("orders", 0, len(read))]
    assert read == expected


def test_repeats_are_left_out_across_slices_that_are_joined(form: Form) -> None:
    log = form.open()
    topic = log.create_topic("latest", TopicSettings(dedup_window_seconds=3600))

    def part(value: bytes) -> Part:
        return part_of(
            topic, {0: [value, value]}, keys=[b"k", b"k"], op=Op.UPDATE, table="shop.orders"
        )

    values = [b"%d" % (task // 2) for task in range(TASKS)]
    answer = log.append(STREAM, 0, [part(value) for value in values])
    news = [b"%d" % n for n in range(TASKS // 2)]
    assert answer.duplicates_dropped == 2 * TASKS - len(news)
    assert stored_batches(log, "latest", 0) == 1
    again = log.append(STREAM, 1, [part(news[-1]), part(b"new")])
    assert again.duplicates_dropped == 3
    for opened in form.now_and_restarted(log):
        assert [r.value for r in opened.fetch("latest", 0, 0)] == [*news, b"new"]


def test_the_same_epoch_sent_again_in_other_slices_is_a_repeat(log: LogAccess) -> None:
    topic = log.create_topic("orders")
    values = [b"%d" % n for n in range(100)]
    first = log.append(STREAM, 0, [part_of(topic, {0: [value]}) for value in values])
    again = log.append(
        STREAM, 0, [part_of(topic, {0: values[:50]}), part_of(topic, {0: values[50:]})]
    )
    assert again.repeated
    assert again.ranges == first.ranges
    assert stored_batches(log, "orders", 0) == 1
