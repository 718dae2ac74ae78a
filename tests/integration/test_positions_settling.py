"""One position of a group, in a log and in a real Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest
from confluent_kafka import Consumer, TopicPartition

from duolog.bridge.kafka.feed.coordinator import KafkaPartition
from duolog.bridge.kafka.feed.filters import GroupFilter
from duolog.bridge.kafka.positions.decisions import (
    Agreed,
    AwaitEmptyGroup,
    AwaitMirror,
    OneWay,
)
from duolog.bridge.kafka.positions.settling import GroupSettling, SettlingStatus
from duolog.errors import AckBeyondHead, GroupHasMembers, InvalidRequest
from duolog.log.embedded import EmbeddedLog, open_log
from duolog.log.model import Side
from duolog.log.offset_map import OffsetMap
from tests.support.group_pair import Pair
from tests.support.groups import PROTOCOLS, commit, consumer, member, until
from tests.support.kafka import DEADLINE_SECONDS, Kafka
from tests.support.mirrored import MirroredTopic


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    with open_log(tmp_path / "log") as opened:
        yield opened


@pytest.fixture
def pair(log: EmbeddedLog, kafka: Kafka) -> Iterator[Pair]:
    with closing(Pair(log, kafka)) as made:
        yield made


def test_both_sides_take_turns(pair: Pair) -> None:
    pair.topic.fill(100)
    with pair.settling() as running:
        pair.ack(19)
        pair.comes_to(20, 20)
        pair.commit(50)
        pair.comes_to(50, 50)
        position = pair.log.group_position(pair.group, "orders", 0)
        assert position is not None
        assert position.changed_by is Side.KAFKA
        pair.ack(69)
        pair.comes_to(70, 70)
        pair.reset_in_kafka(10)
        pair.comes_to(10, 10)
        at_rest = SettlingStatus(True, (), {}, None, running=True)
        until(lambda: running.status() == at_rest, "be at rest")
    assert not running.status().running
    assert running.settle(pair.group).cancelled()


def test_holes_are_stepped_over(pair: Pair) -> None:
    pair.topic.fill(10)
    pair.topic.foreign(5)
    pair.topic.fill(10)
    with pair.settling() as running:
        pair.ack(9)
        pair.comes_to(10, 15)
        pair.commit(20)
        pair.comes_to(15, 20)
        pair.topic.foreign(3)
        pair.commit(28)
        pair.comes_to(20, 28)
        until(lambda: pair.step(running) is None, "be at rest")


def test_a_group_with_members_is_left_alone_until_it_has_none(pair: Pair) -> None:
    pair.topic.fill(100)
    with pair.settling() as running:
        with member(pair.kafka, pair.group, pair.topic.kafka_topic) as joined:
            commit(joined, pair.topic.kafka_topic, 10)
            pair.comes_to(10, 10)
            pair.ack(39)
            until(lambda: pair.step(running) == AwaitEmptyGroup(40), "be pending")
            assert pair.in_kafka == 10
            commit(joined, pair.topic.kafka_topic, 30)
            until(lambda: conflicts(pair) == 1, "be counted")
            assert (pair.native, pair.in_kafka) == (40, 30)
        pair.comes_to(40, 40)
        until(lambda: pair.step(running) is None, "be at rest")


def conflicts(pair: Pair) -> int:
    position = pair.log.group_position(pair.group, "orders", 0)
    return position.kafka.conflicts if position and position.kafka else 0


def test_a_reset_goes_to_both_sides_or_to_none(pair: Pair) -> None:
    pair.topic.fill(100)
    with pair.settling() as running:
        with member(pair.kafka, pair.group, pair.topic.kafka_topic) as joined:
            commit(joined, pair.topic.kafka_topic, 50)
            pair.comes_to(50, 50)
            with pytest.raises(GroupHasMembers, match="Stop its consumers"):
                running.reset(pair.group, "orders", 0, 5).result(DEADLINE_SECONDS)
            assert (pair.native, pair.in_kafka) == (50, 50)
        moved = running.reset(pair.group, "orders", 0, 5).result(DEADLINE_SECONDS)
        assert moved is not None
        assert moved.position == 5
        pair.comes_to(5, 5)
        with pytest.raises(AckBeyondHead):
            running.reset(pair.group, "orders", 0, 101).result(DEADLINE_SECONDS)
        pair.commit(7)
        pair.comes_to(7, 7)


def test_what_is_not_mirrored_yet_waits(pair: Pair) -> None:
    pair.topic.fill(50)
    with pair.settling() as running:
        pair.topic.publish(50)
        run = pair.topic.send(30)
        pair.commit(70)
        until(lambda: pair.step(running) == AwaitMirror(70), "wait for the mirror")
        assert pair.native is None
        pair.topic.tell(run)
        pair.comes_to(70, 70)
        pair.ack(99)
        pair.comes_to(100, 80)
        pair.topic.tell(pair.topic.send(20))
        pair.comes_to(100, 100)


def test_what_kafka_forgets_is_written_again(pair: Pair) -> None:
    pair.topic.fill(50)
    with pair.settling():
        pair.commit(20)
        pair.comes_to(20, 20)
        (done,) = pair.admin.delete_consumer_groups([pair.group]).values()
        done.result(DEADLINE_SECONDS)
        pair.comes_to(20, 20)


def test_an_application_with_metadata_of_its_own_is_only_followed(pair: Pair) -> None:
    pair.topic.fill(50)
    with pair.settling() as running:
        pair.commit(20, metadata="AgAAAZ")
        pair.comes_to(20, 20)
        pair.ack(29)
        (outcome,) = running.settle(pair.group).result(DEADLINE_SECONDS)
        assert outcome.step == OneWay()
        with pytest.raises(InvalidRequest, match="its own tool"):
            running.reset(pair.group, "orders", 0, 5).result(DEADLINE_SECONDS)
        pair.commit(40, metadata="AgAAAZ")
        pair.comes_to(40, 40)


def test_groups_that_are_left_out(pair: Pair) -> None:
    pair.topic.fill(50)
    left_out = pair.group
    with pair.settling(groups=GroupFilter.of(groups_exclude=left_out)):
        pair.commit(20)
        pair.log.ack(left_out, "orders", 4)
        pair.group = pair.kafka.new_group()
        pair.ack(9)
        pair.comes_to(10, 10)
        pair.group = left_out
        assert (pair.native, pair.in_kafka) == (5, 20)


def test_a_new_one_goes_on_where_the_last_stopped(pair: Pair) -> None:
    pair.topic.fill(100)
    with pair.settling():
        pair.ack(19)
        pair.comes_to(20, 20)
    pair.ack(39)
    with pair.settling():
        pair.comes_to(40, 40)
    pair.commit(60)
    with pair.settling():
        pair.comes_to(60, 60)
    pair.reset_in_kafka(30)
    with pair.settling() as running:
        pair.comes_to(30, 30)
        before = pair.log.group_position(pair.group, "orders", 0)
        running.settle(pair.group).result(DEADLINE_SECONDS)
    with pair.settling() as running:
        running.settle(pair.group).result(DEADLINE_SECONDS)
        assert pair.log.group_position(pair.group, "orders", 0) == before


def test_a_topic_that_is_mirrored_later_brings_its_groups(pair: Pair) -> None:
    pair.topic.fill(10)
    later = MirroredTopic(pair.log, pair.kafka, "later", begun=False)
    later.publish(10)
    run = later.send(10)
    with consumer(pair.kafka, pair.group) as reader:
        reader.assign([TopicPartition(later.kafka_topic, 0, 0)])
        commit(reader, later.kafka_topic, 4)
    with pair.settling():
        pair.ack(2)
        pair.comes_to(3, 3)
        assert pair.log.group_position(pair.group, "later", 0) is None
        later.begin()
        later.tell(run)

        def adopted() -> bool:
            position = pair.log.group_position(pair.group, "later", 0)
            return position is not None and position.position == 4

        until(adopted, "be taken over")


def test_a_native_position_from_before_its_topic_was_mirrored_comes_to_kafka(pair: Pair) -> None:
    later = MirroredTopic(pair.log, pair.kafka, "later", begun=False)
    later.publish(10)
    pair.log.ack(pair.group, "later", 5)
    with pair.settling() as running:
        for _ in range(3):  # what was on the agenda at the start was looked at, and all was well
            running.settle(pair.group).result(DEADLINE_SECONDS)
        later.begin()
        later.tell(later.send(10))
        where = KafkaPartition(later.kafka_topic, 0)

        def told() -> bool:
            held = pair.coordinator.committed(pair.group, [where])[where]
            return held is not None and held.offset == 6

        until(told, "be told to Kafka")


@pytest.mark.parametrize("seed", [1, 2])
def test_taking_turns_each_record_is_processed_once(pair: Pair, seed: int) -> None:
    """A native consumer and members of both protocols, in portions of random size."""
    random = Random(seed)
    for _ in range(3):
        pair.topic.fill(random.randrange(20, 60))
        pair.topic.foreign(random.randrange(3))
    records = pair.log.offsets("orders")[0].next_offset
    processed: list[int] = []
    with pair.settling() as running:
        while len(processed) < records:
            portion = random.randrange(1, 40)
            turn = random.choice(["native", "classic", "consumer"])
            if turn == "native":
                begin = pair.native or 0
                end = min(begin + portion, records)
                processed += range(begin, end)
                pair.ack(end - 1)
            else:
                processed += in_kafka(pair, portion, turn)
            until(lambda: settled(pair, running), "settle")
    assert processed == list(range(records))


def in_kafka(pair: Pair, portion: int, protocol: str) -> list[int]:
    """Some records as a member of the group reads them, and commits them; ours alone."""
    offsets = OffsetMap.of_mirror(pair.topic.mirror)
    ours: list[int] = []
    with consumer(pair.kafka, pair.group, **PROTOCOLS[protocol]) as reader:
        reader.subscribe([pair.topic.kafka_topic])
        while len(ours) < portion:
            message = reader.poll(0.5)
            if message is None:
                if reader.assignment():
                    break
                continue
            offset = message.offset()
            assert offset is not None
            before, after = offsets.to_log(offset), offsets.to_log(offset + 1)
            if before is not None and before != after and after is not None:
                ours.append(after - 1)
            commit(reader, pair.topic.kafka_topic, offset + 1)
    return ours


def settled(pair: Pair, running: GroupSettling) -> bool:
    (outcome,) = running.settle(pair.group).result(DEADLINE_SECONDS)
    return outcome.step == Agreed()


def polled(reader: Consumer) -> list[int]:
    message = reader.poll(0.2)
    return [] if message is None or message.error() else [message.offset() or 0]


def begins(pair: Pair, position: int) -> None:
    """A native consumer of the group polls for the first time."""
    pair.log.begin_group(pair.group, "orders", {0: position})


def test_kafka_learns_where_a_group_begins_that_nobody_has_read_for(pair: Pair) -> None:
    pair.topic.fill(10)
    pair.topic.foreign(5)
    pair.topic.fill(10)
    with pair.settling() as running:
        begins(pair, 12)
        pair.comes_to(12, 17)
        until(lambda: pair.step(running) is None, "be at rest")
        position = pair.log.group_position(pair.group, "orders", 0)
        assert position is not None
        assert (position.is_first, position.last_acked_offset) == (True, None)
        found: list[int] = []
        with consumer(pair.kafka, pair.group) as reader:  # which would begin with the first record
            reader.subscribe([pair.topic.kafka_topic])

            def has_read() -> bool:
                found.extend(polled(reader))
                return bool(found)

            until(has_read, "read a record")
        assert found[0] == 17


def test_what_a_consumer_has_committed_goes_before_where_a_group_begins(pair: Pair) -> None:
    pair.topic.fill(100)
    pair.commit(30)
    begins(pair, 100)
    with pair.settling():
        pair.comes_to(30, 30)
        position = pair.log.group_position(pair.group, "orders", 0)
        assert position is not None
        assert position.changed_by is Side.KAFKA
        assert position.kafka is not None
        assert position.kafka.conflicts == 0


def test_a_group_that_begins_while_it_has_members_in_kafka_is_written_when_they_leave(
    pair: Pair,
) -> None:
    pair.topic.fill(100)
    with pair.settling() as running:
        with member(pair.kafka, pair.group, pair.topic.kafka_topic):
            begins(pair, 40)
            outcome = running.settle(pair.group).result(DEADLINE_SECONDS)[0]
            assert outcome.step == AwaitEmptyGroup(40, has_time=True)
            assert running.status().pending == ()
        pair.comes_to(40, 40)
