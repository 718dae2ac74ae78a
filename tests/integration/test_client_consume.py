"""Consumers against a real host."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest

from duolog.bridge.metrics.names import POLLS_WAITING
from duolog.client import ConsumedRecord, Consumer, RecordTable
from duolog.errors import (
    AttemptsExhausted,
    ClientClosed,
    InvalidRequest,
    InvalidSetting,
    PartitionHeld,
    PartitionRevoked,
    TopicRecreated,
    Undecodable,
    UnknownPartition,
    UnknownTopic,
)
from duolog.log.model import AtOffset, Format, Op, Record, Retention, TopicSettings
from tests.integration.serve_host import DEADLINE_SECONDS, ServedLog, served, until
from tests.support.clock import ManualClock


@pytest.fixture(scope="module")
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory, clock: ManualClock) -> Iterator[ServedLog]:
    """One host for all of these; each test makes topics of its own."""
    with served(tmp_path_factory.mktemp("served") / "log", clock=clock) as running:
        yield running


@pytest.fixture
def topic(host: ServedLog, request: pytest.FixtureRequest) -> str:
    """A topic with two partitions and six records, the even ones in partition 0."""
    name = re.sub(r"\W", "-", request.node.name)[:200]
    host.log.create_topic(name, TopicSettings(partitions=2))
    fill(host, name, range(6))
    return name


def fill(host: ServedLog, topic: str, numbers: range) -> None:
    for number in numbers:
        host.log.publish(topic, Record(b"%d" % number, partition=number % 2))


def consumer(host: ServedLog, topics: Any, **options: Any) -> Consumer:
    given = {"group": "g", "start": "earliest", "idle_timeout_seconds": 0}
    return Consumer(topics, url=host.url, **{**given, **options})


def until_read(reading: Consumer, count: int, found: list[Any] | None = None) -> list[Any]:
    """The values of so many records, or more."""
    values = list(found or [])
    deadline = time.monotonic() + DEADLINE_SECONDS
    while len(values) < count and time.monotonic() < deadline:
        values += [record.value for record in reading.poll(1)]
    return values


def positions(host: ServedLog, topic: str, group: str = "g") -> dict[int, int]:
    """What is acknowledged."""
    found = host.log.group_positions(group, topic)
    return {each.partition: each.position for each in found if not each.is_first}


def test_a_loop_gives_all_records_in_the_order_of_partitions_and_acknowledges(
    host: ServedLog, topic: str
) -> None:
    with consumer(host, topic) as reading:
        found = [(record.partition, record.value) for record in reading]
    assert sorted(found) == [(0, 0), (0, 2), (0, 4), (1, 1), (1, 3), (1, 5)]
    assert positions(host, topic) == {0: 3, 1: 3}
    with consumer(host, topic) as reading:
        assert list(reading) == []
    with consumer(host, topic, group="another", max_records=1) as reading:
        assert len(list(reading)) == 6


def test_a_record_has_all_that_was_published(host: ServedLog) -> None:
    topic_id = host.log.create_topic("whole").id
    host.log.publish(
        "whole",
        Record(
            b'{"qty":2}', b"k", (("trace", b"1"), ("none", None)), None, 1_600_000_000_000,
            Op.UPDATE, "shop.orders",
        ),
    )  # fmt: skip
    host.log.publish("whole", Record(None))
    with consumer(host, "whole") as reading:
        first, second = reading.poll()
    assert (first.key, first.payload, first.value) == (b"k", b'{"qty":2}', {"qty": 2})
    assert first.headers == (("trace", b"1"), ("none", None))
    assert (first.ts_ms, first.op, first.table) == (1_600_000_000_000, "update", "shop.orders")
    assert (first.message_id, first.attempt) == (f"{topic_id}:0:0", 1)
    assert (second.value, second.payload, second.op, second.key) == (None, None, None, None)


def test_what_a_loop_was_left_with_comes_again_and_what_came_before_does_not(
    host: ServedLog, topic: str
) -> None:
    with consumer(host, {topic: [0]}) as reading:
        for record in reading:
            if record.value == 2:
                break
        assert [record.value for record in reading] == [2, 4]
    with pytest.raises(ZeroDivisionError), consumer(host, {topic: [1]}) as reading:
        assert all(record.value / (record.value - 3) for record in reading)
    assert positions(host, topic) == {0: 3, 1: 1}


@pytest.mark.parametrize("seconds", [0, 60])
def test_a_member_goes_ahead_of_its_acknowledgements_as_far_as_it_may(
    host: ServedLog, topic: str, seconds: int
) -> None:
    with consumer(host, topic, max_records=1, ack_interval_seconds=seconds) as reading:
        found: list[ConsumedRecord] = []
        while len(found) < 6:
            done = len(found)
            found += reading.poll()
            told = sum(positions(host, topic).values())
            assert told == done if seconds == 0 else told <= done
    assert sorted(each.value for each in found) == list(range(6))
    assert sum(positions(host, topic).values()) == 5  # the last one is given back


def test_polls_acknowledge_what_the_poll_before_gave(host: ServedLog, topic: str) -> None:
    with consumer(host, {topic: [0]}, max_records=2) as reading:
        assert [each.value for each in reading.poll()] == [0, 2]
        assert positions(host, topic) == {}
        assert [each.value for each in reading.poll()] == [4]
        assert positions(host, topic) == {0: 2}
    assert positions(host, topic) == {0: 2}


def test_without_auto_ack_only_what_is_acknowledged_counts(host: ServedLog, topic: str) -> None:
    with consumer(host, {topic: [0]}, auto_ack=False) as reading:
        zero, two, four = reading.poll()
        assert reading.poll(0) == []
        reading.ack(two)
        assert positions(host, topic) == {}
        reading.ack([zero])
        assert positions(host, topic) == {0: 2}
        fill(host, topic, range(6, 7))
        assert [each.value for each in reading.poll()] == [6]
        reading.ack()
        assert positions(host, topic) == {0: 4}
    assert four.value == 4


def test_a_consumer_that_is_gone_leaves_what_was_not_acknowledged(
    host: ServedLog, topic: str
) -> None:
    with consumer(host, topic, auto_ack=False) as reading:
        assert len(reading.poll()) == 6
    with consumer(host, topic) as reading:
        assert len(list(reading)) == 6


def test_an_ack_in_a_loop_is_sent_when_its_interval_is_over(host: ServedLog, topic: str) -> None:
    with consumer(host, {topic: [0]}, ack_interval_seconds=0) as reading:
        loop = iter(reading)
        next(loop)
        assert positions(host, topic) == {}
        next(loop)
        assert positions(host, topic) == {0: 1}


def test_a_poll_is_answered_by_the_append(host: ServedLog, topic: str) -> None:
    waiting = host.host.tally.number(POLLS_WAITING)
    with consumer(host, topic, start="latest") as reading, ThreadPoolExecutor() as threads:
        poll = threads.submit(reading.poll, 60)
        until(lambda: host.host.tally.number(POLLS_WAITING) == waiting + 1)
        fill(host, topic, range(7, 8))
        assert [each.value for each in poll.result(60)] == [7]


def test_latest_means_where_the_topic_ended_when_the_consumer_began(
    host: ServedLog, topic: str
) -> None:
    with consumer(host, topic, start="latest") as reading:
        assert reading.poll(0) == []
        fill(host, topic, range(8, 9))
        assert [each.value for each in reading.poll(0)] == [8]


def test_several_topics_are_read_at_once(host: ServedLog, topic: str) -> None:
    host.log.create_topic("beside", TopicSettings(alias="next-door"))
    with consumer(host, [topic, "next-door"], start="latest") as reading:
        assert reading.poll(0) == []
        with ThreadPoolExecutor() as threads:
            for name in ("beside", topic, "beside"):
                poll = threads.submit(reading.poll, 60)
                host.log.publish(name, Record(b'"here"', partition=0))
                assert [each.topic for each in poll.result(60)] == [name]
        reading.ack()
    assert positions(host, "beside") == {0: 2}
    assert positions(host, topic) == {0: 4}


def test_a_partition_that_the_topic_gets_is_read_from_its_first_record(host: ServedLog) -> None:
    host.log.create_topic("growing")
    with consumer(host, "growing", start="latest") as reading:
        assert reading.poll(0) == []
        host.log.set_partitions("growing", 2)
        host.log.publish("growing", Record(b"1", partition=1))
        assert [each.partition for each in reading.poll()] == [1]


def test_a_refused_record_comes_again_before_anything_new_of_its_partition(
    host: ServedLog, topic: str
) -> None:
    seen: list[tuple[int, int, int]] = []
    with consumer(host, topic, retry_pause_seconds=0, idle_timeout_seconds=0.3) as reading:
        for record in reading:
            seen.append((record.partition, record.offset, record.attempt))
            if record.value == 2 and record.attempt < 3:
                reading.nack(record)
    assert [each for each in seen if each[0] == 0] == [
        (0, 0, 1), (0, 1, 1), (0, 1, 2), (0, 1, 3), (0, 2, 1)
    ]  # fmt: skip
    assert positions(host, topic) == {0: 3, 1: 3}


def test_a_loop_does_not_end_before_what_it_refused_has_come_again(
    host: ServedLog, topic: str
) -> None:
    attempts: list[int] = []
    with consumer(host, {topic: [0]}, retry_pause_seconds=0.2, max_attempts=3) as reading:
        for record in reading:
            if record.value == 4:
                attempts.append(record.attempt)
                if record.attempt < 3:
                    reading.nack(record)
    assert attempts == [1, 2, 3]
    assert positions(host, topic) == {0: 3}


def test_a_record_that_failed_too_often_goes_to_the_dead_letters(
    host: ServedLog, topic: str
) -> None:
    host.log.create_topic("dead")
    options = {"dead_letter_topic": "dead", "max_attempts": 2, "retry_pause_seconds": 0}
    host.log.publish(topic, Record(b"no JSON", b"key", (("own", b"header"),), 0))
    for _ in range(2):  # the second time as after a crash before the ack
        with consumer(host, {topic: [0]}, **options, idle_timeout_seconds=0.3) as reading:
            for record in reading:
                try:
                    assert record.value is not None
                except Undecodable as error:
                    reading.nack(record, error)
        assert positions(host, topic) == {0: 4}
        host.log.seek("g", topic, 0, 3)
    (letter,) = host.log.fetch("dead", 0, 0)
    assert (letter.key, letter.value) == (b"key", b"no JSON")
    headers = dict(letter.headers)
    assert headers.pop("own") == b"header"
    told = {name.removeprefix("__connect.errors."): value for name, value in headers.items()}
    assert told.pop("exception.message") == (
        f"The value of {topic}:0:3 is not JSON: Expecting value: line 1 column 1 (char 0)".encode()
    )
    assert told == {
        "topic": topic.encode(),
        "partition": b"0",
        "offset": b"3",
        "connector.name": b"g",
        "attempts": b"2",
        "exception.class.name": b"Undecodable",
    }


def test_a_dead_letter_that_is_too_large_by_its_headers_is_cut(host: ServedLog) -> None:
    host.log.create_topic("largest", TopicSettings(value_format=Format.RAW))
    host.log.create_topic("dead-large")
    host.log.publish("largest", Record(b"x" * (1 << 20)))
    with consumer(host, "largest", dead_letter_topic="dead-large", max_attempts=1) as reading:
        for record in reading:
            reading.nack(record, "too large for me")
    (letter,) = host.log.fetch("dead-large", 0, 0)
    assert letter.value == b"x" * (1 << 19)
    assert dict(letter.headers)["__connect.errors.value.bytes"] == b"1048576"


def test_a_record_that_no_log_takes_any_more_goes_to_the_dead_letters_too(
    host: ServedLog, clock: ManualClock
) -> None:
    """Of a log from before times far ahead were refused, with as many headers as go in."""
    host.log.create_topic("old", TopicSettings(value_format=Format.RAW))
    host.log.create_topic("dead-old")
    ts_ms = clock.at_ms * 1000
    option = "max_timestamp_ahead_seconds"
    object.__setattr__(host.log.options, option, 1e15)
    host.log.publish("old", Record(b"v", ts_ms=ts_ms, headers=(("own", b""),) * 1000))
    host.log.publish("old", Record(b"x" * ((1 << 20) - 1), ts_ms=ts_ms))
    object.__setattr__(host.log.options, option, 3600.0)
    with consumer(host, "old", dead_letter_topic="dead-old", max_attempts=1) as reading:
        for record in reading:
            reading.nack(record)
    small, large = host.log.fetch("dead-old", 0, 0)
    assert (small.value, small.ts_ms, len(large.value or b"")) == (b"v", clock.at_ms, (1 << 19) - 1)
    for letter in (small, large):
        assert dict(letter.headers)["__connect.errors.timestamp"] == b"%d" % ts_ms
    assert positions(host, "old") == {0: 2}


def test_without_a_place_for_dead_letters_it_is_an_error(host: ServedLog, topic: str) -> None:
    with consumer(host, {topic: [0]}, max_attempts=1) as reading:
        record = next(iter(reading))
        with pytest.raises(
            AttemptsExhausted, match=rf"Offset 0 of topic '{topic}' partition 0 failed 1"
        ):
            reading.nack(record)
        reading.ack(record)
        assert next(reading).offset == 1
    assert positions(host, topic) == {0: 1}


def test_a_topic_for_dead_letters_that_is_missing_is_told_before_the_first_record(
    host: ServedLog, topic: str
) -> None:
    reading = consumer(host, topic, dead_letter_topic="nowhere")
    with reading, pytest.raises(UnknownTopic, match="nowhere"):
        reading.poll()
    with pytest.raises(InvalidSetting, match="is to take the dead letters too"):
        consumer(host, topic, dead_letter_topic=topic)


def test_seek_and_position(host: ServedLog, topic: str) -> None:
    with consumer(host, topic) as reading:
        assert (reading.position(topic, 1), reading.position(topic)) == (0, 0)
        reading.seek(topic, 2, partition=1)
        assert [each.value for each in reading.poll()] == [0, 2, 4]
        assert [each.value for each in reading.poll()] == [5]
        assert reading.position(topic, 1) == 3
        reading.ack()
        reading.seek(topic, 0, partition=1)
        assert [each.value for each in reading.poll()] == [1, 3, 5]
        assert positions(host, topic) == {0: 3, 1: 3}
        with pytest.raises(UnknownPartition, match="has no partition 7"):
            reading.position(topic, 7)
        with pytest.raises(InvalidRequest, match="does not read topic 'other' partition 0"):
            reading.seek("other", 0)
        with pytest.raises(InvalidRequest, match="whole number from 0; got -1"):
            reading.seek(topic, -1)


def test_a_group_that_was_moved_back_is_followed(host: ServedLog, topic: str) -> None:
    with consumer(host, {topic: [0]}) as reading:
        assert len(reading.poll()) == 3
        assert reading.poll(0) == []
        host.log.seek("g", topic, 0, host.log.resolve(topic, 0, AtOffset(1)))
        assert [each.value for each in reading.poll(0)] == [2, 4]


def test_what_retention_removed_is_passed_over(host: ServedLog, clock: ManualClock) -> None:
    host.log.create_topic("kept", TopicSettings(retention=Retention(seconds=60)))
    host.log.publish("kept", [Record(b"1"), Record(b"2")])
    with consumer(host, "kept", auto_ack=False, max_records=1) as reading:
        assert [each.value for each in reading.poll()] == [1]
        clock.advance(seconds=120)
        host.log.publish("kept", Record(b"3"))
        host.log.enforce_retention("kept")
        assert [each.value for each in reading.poll()] == [3]
        reading.ack()
    assert positions(host, "kept") == {0: 3}


def test_another_consumer_of_the_group_is_named_or_waited_for(host: ServedLog, topic: str) -> None:
    waiting = host.host.tally.number(POLLS_WAITING)
    with (
        consumer(host, {topic: [0]}, start="latest") as first,
        consumer(host, {topic: [0]}, held_wait_seconds=0) as hasty,
        consumer(host, {topic: [0]}) as patient,
        ThreadPoolExecutor() as threads,
    ):
        poll = threads.submit(first.poll, 60)
        until(lambda: host.host.tally.number(POLLS_WAITING) == waiting + 1)
        for use in (hasty.poll, lambda: hasty.position(topic)):
            with pytest.raises(PartitionHeld, match="group 'g' is being answered from topic"):
                use()
        assert patient.poll(0.01) == []
        other = threads.submit(patient.poll, 60)
        fill(host, topic, range(6, 8))
        assert len(poll.result(60)) >= 1
        first.ack()
        fill(host, topic, range(8, 10))  # the first may have had all of those
        assert other.result(60)


def test_consumers_of_a_group_share_the_partitions_by_themselves(
    host: ServedLog, topic: str
) -> None:
    with consumer(host, topic) as first:
        assert len(first.poll()) == 6
        with consumer(host, topic) as second, ThreadPoolExecutor() as threads:
            poll = threads.submit(second.poll, 60)
            until(lambda: len(host.host.members.shown()[0].state.members) == 2)
            assert first.poll(0) == []  # acknowledges, and lets go of one of the two
            fill(host, topic, range(6, 10))
            found = [record.value for record in poll.result(60)]
            assert until_read(second, 2, found) == [7, 9]
            second.ack()
            assert until_read(first, 2) == [6, 8]
        until(lambda: len(host.host.members.shown()[0].state.members) == 1)
        fill(host, topic, range(10, 12))
        assert sorted(until_read(first, 2)) == [10, 11]
    assert host.host.members.shown() == ()


def test_what_becomes_anothers_is_refused_by_name_and_the_rest_is_kept(
    host: ServedLog, topic: str
) -> None:
    with consumer(host, topic, auto_ack=False) as first:
        records = first.poll()
        with consumer(host, topic, auto_ack=False) as second:
            assert second.poll(0) == []
            assert first.poll(0) == []  # it does not wait for what is in hand
            with pytest.raises(PartitionRevoked, match="partition 1 has become another"):
                first.ack(*records)
            assert positions(host, topic) == {0: 3}
            assert [record.value for record in second.poll(30)] == [1, 3, 5]


def test_consumers_of_a_group_may_divide_the_partitions(host: ServedLog, topic: str) -> None:
    with consumer(host, {topic: [0]}) as even, consumer(host, {topic: [1]}) as odd:
        assert [each.value for each in even] == [0, 2, 4]
        assert [each.value for each in odd] == [1, 3, 5]


def test_a_group_gets_past_what_another_of_its_consumers_has_done(
    host: ServedLog, topic: str
) -> None:
    with consumer(host, {topic: [0]}, auto_ack=False, max_records=1) as reading:
        (first,) = reading.poll()
        host.log.ack("g", topic, 1, 0)
        reading.ack(first)
        assert [each.value for each in reading.poll()] == [4]


@dataclass
class Order:
    item: str
    qty: int = 1


def test_values_become_what_is_wished(host: ServedLog) -> None:
    host.log.create_topic("typed")
    host.log.publish("typed", [Record(b'{"item":"tea","qty":2,"more":0}'), Record(None)])
    host.log.publish("typed", [Record(b'{"qty":2}'), Record(b'{"item":"jam"}')])
    with consumer(host, "typed", value_type=Order) as reading:
        tea, none, bad, jam = reading.poll()
    assert (tea.value, none.value, jam.value) == (Order("tea", 2), None, Order("jam", 1))
    assert bad.payload == b'{"qty":2}'
    with pytest.raises(Undecodable, match=r"typed:0:2 is not a Order: .*\nitem\n  Field required"):
        print(bad.value)
    with consumer(host, "typed", value_format="raw") as reading:
        assert reading.poll()[3].value == b'{"item":"jam"}'


def test_what_was_never_handed_out_cannot_be_acknowledged(host: ServedLog, topic: str) -> None:
    with consumer(host, topic) as reading, consumer(host, topic, group="h") as other:
        (first, *_) = other.poll()
        with pytest.raises(InvalidRequest, match="was not handed out by this consumer"):
            reading.ack(first)
        strange: Any = "orders:0:1"
        with pytest.raises(InvalidRequest, match=r"can be acknowledged.*; not a str"):
            reading.ack(strange)
        with pytest.raises(InvalidRequest, match="timeout_seconds is 0 or more; got -1"):
            reading.poll(-1)


@pytest.mark.parametrize("named", [True, False], ids=["a partition", "a member"])
def test_what_is_published_between_a_consumer_and_the_next_one_is_read(
    host: ServedLog, topic: str, named: bool
) -> None:
    source = {topic: [0, 1]} if named else topic
    with consumer(host, source, start="latest") as first:
        assert first.poll(0) == []
    fill(host, topic, range(10, 14))
    with consumer(host, source, start="latest") as second:
        assert sorted(until_read(second, 4)) == [10, 11, 12, 13]


def made_again(host: ServedLog, topic: str, *values: int, drop: bool = True) -> None:
    """Another topic of the same name, with these records in partition 0."""
    if drop:
        host.log.drop_topic(topic)
    host.log.create_topic(topic, TopicSettings(partitions=2))
    for value in values:
        host.log.publish(topic, Record(b"%d" % value, partition=0))


@pytest.mark.parametrize("group", ["g", None])
@pytest.mark.parametrize("named", [True, False], ids=["a partition", "a member or all"])
def test_a_topic_that_was_made_again_is_read_from_its_first_record(
    host: ServedLog, topic: str, group: str | None, named: bool
) -> None:
    source = {topic: [0]} if named else topic
    with consumer(host, source, group=group, start="latest") as reading:
        assert reading.poll(0) == []
        fill(host, topic, range(10, 16))
        old = until_read(reading, 3 if named else 6)
        assert set(old) >= {10, 12, 14}
        host.log.drop_topic(topic)
        with pytest.raises(UnknownTopic):
            reading.poll(0)
        host.log.create_topic(topic, TopicSettings(partitions=2))
        for value in range(5):
            host.log.publish(topic, Record(b"%d" % value, partition=0))
        assert until_read(reading, 5) == [0, 1, 2, 3, 4]
        assert reading.poll(0) == []
    if group is not None:
        assert positions(host, topic)[0] == 5


def test_a_topic_that_is_made_again_while_a_poll_waits_is_read_from_its_first_record(
    host: ServedLog, topic: str
) -> None:
    with consumer(host, {topic: [0]}) as reading, ThreadPoolExecutor() as threads:
        assert len(list(reading)) == 3
        waiting = host.host.tally.number(POLLS_WAITING)
        poll = threads.submit(reading.poll, 60)
        until(lambda: host.host.tally.number(POLLS_WAITING) == waiting + 1)
        made_again(host, topic, 7)
        try:
            found = poll.result(60)
        except UnknownTopic:  # it was looked for between the two
            found = reading.poll(60)
        assert [each.value for each in found] == [7]


def test_what_was_read_of_the_topic_before_counts_for_nothing_in_the_new_one(
    host: ServedLog, topic: str
) -> None:
    with consumer(host, {topic: [0]}, auto_ack=False) as reading:
        old = reading.poll()
        made_again(host, topic, 7, 8, 9)
        with pytest.raises(TopicRecreated, match="dropped and made again"):
            reading.ack(old[0])
        new = reading.poll()
        assert [each.value for each in new] == [7, 8, 9]
        assert {each.topic_id for each in new} == {host.log.topic(topic).id}
        assert new[0].message_id != old[0].message_id
        for refuse in (reading.ack, reading.nack):
            with pytest.raises(TopicRecreated):
                refuse(old[1])
        assert positions(host, topic) == {}
        reading.ack(new[1], new[0])
        assert positions(host, topic) == {0: 2}


def test_a_topic_that_is_missing_for_a_moment_is_waited_for(host: ServedLog, topic: str) -> None:
    with consumer(host, {topic: [0]}, auto_ack=False) as reading:
        assert reading.poll()
        host.log.drop_topic(topic)
        made = threading.Timer(0.5, lambda: made_again(host, topic, 7, drop=False))
        made.start()
        try:
            assert [each.value for each in reading.poll(DEADLINE_SECONDS)] == [7]
        finally:
            made.join()
        host.log.drop_topic(topic)
        with pytest.raises(UnknownTopic):
            reading.poll(DEADLINE_SECONDS)


def test_who_wants_to_be_told_is_told_that_a_topic_was_made_again(
    host: ServedLog, topic: str
) -> None:
    with consumer(host, {topic: [0]}, auto_ack=False, topic_recreated="raise") as reading:
        reading.poll()
        reading.ack()
        made_again(host, topic, 7)
        for _ in range(2):
            with pytest.raises(TopicRecreated) as told:
                reading.poll(0)
        assert told.value.topic_id == host.log.topic(topic).id
    with consumer(host, {topic: [0]}, topic_recreated="raise") as other:
        assert [each.value for each in other.poll()] == [7]


def test_tables_know_their_topic(host: ServedLog, topic: str) -> None:
    with consumer(host, {topic: [0]}, auto_ack=False) as reading:
        (table,) = reading.poll_tables()
        assert table.topic_id == host.log.topic(topic).id
        made_again(host, topic, 7)
        with pytest.raises(TopicRecreated):
            reading.ack(table)


def test_a_large_page_is_decoded_beside_the_event_loop(host: ServedLog) -> None:
    host.log.create_topic("long")
    host.log.publish("long", [Record(b"%d" % at) for at in range(3000)])
    with consumer(host, "long", max_records=5000) as reading:
        assert [each.value for each in reading.poll()] == list(range(3000))


def test_tables_are_acknowledged_as_wholes(host: ServedLog, topic: str) -> None:
    with consumer(host, topic, auto_ack=False) as reading:
        (first,) = reading.poll_tables()
        assert isinstance(first, RecordTable)
        assert (first.topic, len(first)) == (topic, 6)
        assert sorted(first.table.column("payload").to_pylist()) == [b"%d" % at for at in range(6)]
        assert sorted(first.table.column("value").to_pylist()) == list(range(6))
        reading.ack(first)
        assert reading.poll_tables(0) == []
    assert positions(host, topic) == {0: 3, 1: 3}


def test_json_objects_become_a_column_of_structs(host: ServedLog) -> None:
    host.log.create_topic("objects")
    values = [b'{"a":1}', None, b'{"a":2,"b":"x"}']
    host.log.publish("objects", [Record(value) for value in values])
    with consumer(host, "objects") as reading:
        (found,) = reading.poll_tables()
        assert found.table.column("value").to_pylist() == [
            {"a": 1, "b": None}, None, {"a": 2, "b": "x"}
        ]  # fmt: skip
        host.log.publish("objects", Record(b"no JSON"))
        with pytest.raises(Undecodable, match="not JSON of one shape"):
            reading.poll_tables()
        (bad,) = reading.poll()
        assert bad.payload == b"no JSON"


def test_a_consumer_without_a_group_acknowledges_nothing(host: ServedLog, topic: str) -> None:
    with consumer(host, topic, group=None) as reading:
        assert len(list(reading)) == 6
        with pytest.raises(InvalidRequest, match="has no group"):
            reading.ack()


def test_a_closed_consumer_says_so(host: ServedLog, topic: str) -> None:
    reading = consumer(host, topic)
    threads = threading.active_count()
    reading.close()
    reading.close()
    assert threading.active_count() == threads - 1
    for use in (reading.poll, reading.ack, reading.commit, lambda: next(reading)):
        with pytest.raises(ClientClosed):
            use()


def test_a_poll_that_waits_is_ended_by_closing(host: ServedLog, topic: str) -> None:
    waiting = host.host.tally.number(POLLS_WAITING)
    with ThreadPoolExecutor() as threads:
        reading = consumer(host, topic, start="latest")
        poll = threads.submit(reading.poll, 60)
        until(lambda: host.host.tally.number(POLLS_WAITING) == waiting + 1)
        reading.close()
        assert isinstance(poll.exception(60), ClientClosed)
    until(lambda: host.host.tally.number(POLLS_WAITING) == waiting)
