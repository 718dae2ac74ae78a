"""Watching and writing the groups of a real Kafka."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from confluent_kafka import Producer, TopicPartition

from duolog.bridge.kafka.feed.coordinator import GroupCoordinator, KafkaPartition, NewCommit
from duolog.bridge.kafka.feed.hints import Hint
from duolog.bridge.kafka.feed.reading import GroupFeed
from duolog.bridge.kafka.feed.records import MembersChanged, OffsetCommitted
from duolog.bridge.kafka.positions.decisions import GroupState
from duolog.bridge.kafka.positions.marks import Author, KafkaCommit, mark
from duolog.bridge.kafka.settings import KafkaSettings
from duolog.errors import KafkaRefused, KafkaUnreachable
from tests.support.groups import commit, consumer, fill, member, told, until
from tests.support.kafka import DEADLINE_SECONDS, Kafka

LOG_ID = "0b9f2f60c2d84a2e"


@pytest.fixture
def feed(kafka: Kafka) -> Iterator[GroupFeed]:
    with closing(GroupFeed({"bootstrap.servers": kafka.bootstrap_servers})) as opened:
        yield opened


@pytest.fixture
def coordinator(kafka: Kafka) -> Iterator[GroupCoordinator]:
    settings = KafkaSettings.of(kafka.bootstrap_servers)
    with closing(GroupCoordinator(settings, LOG_ID)) as opened:
        yield opened


@pytest.fixture
def topic(kafka: Kafka) -> str:
    name = kafka.new_topic()
    fill(kafka, name, 20)
    return name


def committed(group: str, topic: str, offset: int) -> Callable[[Hint], bool]:
    wanted = OffsetCommitted(group, topic, 0, offset)

    def is_it(hint: Hint) -> bool:
        change = hint.change
        return isinstance(change, OffsetCommitted) and (
            (change.group, change.topic, change.partition, change.offset)
            == (wanted.group, wanted.topic, wanted.partition, wanted.offset)
        )

    return is_it


@pytest.mark.parametrize("protocol", ["classic", "consumer", "static"])
def test_a_group_is_watched_refuses_while_it_has_members_and_takes_when_it_has_none(
    kafka: Kafka, topic: str, feed: GroupFeed, coordinator: GroupCoordinator, protocol: str
) -> None:
    group, where = kafka.new_group(), KafkaPartition(topic, 0)
    assert coordinator.state(group) is GroupState.EMPTY
    assert coordinator.committed(group, [where]) == {where: None}
    with member(kafka, group, topic, protocol) as joined:
        commit(joined, topic, 7)
        hints = told(feed, committed(group, topic, 7))
        assert MembersChanged(group) in [hint.change for hint in hints]
        assert coordinator.committed(group, [where]) == {where: KafkaCommit(7)}
        assert coordinator.state(group) is GroupState.LIVE
        assert coordinator.write(group, {where: NewCommit(9, "n1")}) == {where}
        assert coordinator.committed(group, [where]) == {where: KafkaCommit(7)}
    if protocol == "static":  # it may come back until its session ends
        assert coordinator.state(group) is GroupState.LIVE
        assert coordinator.write(group, {where: NewCommit(9, "n1")}) == {where}
    told(feed, lambda h: h.change == MembersChanged(group) and is_empty(coordinator, group))
    assert coordinator.write(group, {where: NewCommit(9, "n2")}) == frozenset()
    assert coordinator.committed(group, [where]) == {where: KafkaCommit(9, Author.OURS, "n2")}
    (*_, last) = told(feed, committed(group, topic, 9))
    assert isinstance(last.change, OffsetCommitted)
    assert last.change.metadata == mark(LOG_ID, "n2", 9)
    assert group in coordinator.groups()


def is_empty(coordinator: GroupCoordinator, group: str) -> bool:
    return coordinator.state(group) is GroupState.EMPTY


def test_a_consumer_that_is_no_member_keeps_nobody_out(
    kafka: Kafka, topic: str, feed: GroupFeed, coordinator: GroupCoordinator
) -> None:
    group, where = kafka.new_group(), KafkaPartition(topic, 0)
    with consumer(kafka, group) as reader:
        reader.assign([TopicPartition(topic, 0, 0)])
        commit(reader, topic, 5)
        told(feed, committed(group, topic, 5))
        assert coordinator.state(group) is GroupState.EMPTY
        assert coordinator.write(group, {where: NewCommit(9, "n1")}) == frozenset()
        commit(reader, topic, 6)
        told(feed, committed(group, topic, 6))
        assert coordinator.committed(group, [where]) == {where: KafkaCommit(6)}


def test_a_group_that_is_live_on_another_topic_only_refuses_too(
    kafka: Kafka, topic: str, coordinator: GroupCoordinator
) -> None:
    group, other = kafka.new_group(), kafka.new_topic()
    where = KafkaPartition(topic, 0)
    with member(kafka, group, other):
        assert coordinator.write(group, {where: NewCommit(9, "n1")}) == {where}
    assert coordinator.committed(group, [where]) == {where: None}


def test_an_application_s_metadata_and_our_own_sent_back(
    kafka: Kafka, topic: str, coordinator: GroupCoordinator
) -> None:
    group, where = kafka.new_group(), KafkaPartition(topic, 0)
    with consumer(kafka, group) as reader:
        reader.assign([TopicPartition(topic, 0, 0)])
        commit(reader, topic, 5, metadata="AgAAAZ")
        assert coordinator.committed(group, [where]) == {where: KafkaCommit(5, Author.ONE_WAY)}
        coordinator.write(group, {where: NewCommit(9, "n1")})
        (read,) = reader.committed([TopicPartition(topic, 0)], timeout=DEADLINE_SECONDS)
        commit(reader, topic, 4, metadata=read.metadata or "")
        assert coordinator.committed(group, [where]) == {where: KafkaCommit(4)}


def test_what_a_transaction_takes_back_is_a_hint_and_no_value(
    kafka: Kafka, topic: str, feed: GroupFeed
) -> None:
    group, where = kafka.new_group(), KafkaPartition(topic, 0)
    settings = {"bootstrap.servers": kafka.bootstrap_servers}
    producer = Producer({**settings, "transactional.id": f"tx-{uuid.uuid4().hex}"})
    producer.init_transactions(DEADLINE_SECONDS)
    with consumer(kafka, group) as reader:
        reader.assign([TopicPartition(topic, 0, 0)])
        commit(reader, topic, 5)
        producer.begin_transaction()
        metadata = reader.consumer_group_metadata()
        producer.send_offsets_to_transaction([TopicPartition(topic, 0, 8)], metadata)
        told(feed, committed(group, topic, 8))
        reached = KafkaSettings.of(kafka.bootstrap_servers)
        with closing(GroupCoordinator(reached, LOG_ID, timeout_seconds=1)) as hasty:
            with pytest.raises(KafkaRefused) as refused:
                hasty.committed(group, [where])
            assert refused.value.error == 88
            producer.abort_transaction(DEADLINE_SECONDS)
            until(lambda: stable(hasty, group, where) == KafkaCommit(5), "be as before")


def stable(coordinator: GroupCoordinator, group: str, where: KafkaPartition) -> KafkaCommit | None:
    try:
        return coordinator.committed(group, [where])[where]
    except KafkaRefused:
        return None


def test_what_was_committed_before_is_read_from_where_it_is_wanted(
    kafka: Kafka, topic: str, feed: GroupFeed
) -> None:
    group, other = kafka.new_group(), kafka.new_group()
    first = feed.feed_offset(group)
    assert first is not None
    with consumer(kafka, group) as reader, consumer(kafka, other) as another:
        for made in (reader, another):
            made.assign([TopicPartition(topic, 0, 0)])
        for offset in (3, 4):
            commit(reader, topic, offset)
        told(feed, committed(group, topic, 4))
        settings = {"bootstrap.servers": kafka.bootstrap_servers}
        with closing(GroupFeed(settings, first_offsets={group: first})) as later:
            hints = told(later, committed(group, topic, 4))
            offsets = [
                hint.change.offset
                for hint in hints
                if isinstance(hint.change, OffsetCommitted) and hint.change.group == group
            ]
            assert offsets == [3, 4]
            assert later.feed_offset(group) == (hints[-1].feed_offset or 0) + 1
            commit(another, topic, 1)
            told(later, committed(other, topic, 1))


def test_a_broker_that_does_not_answer_is_named() -> None:
    settings = KafkaSettings.of("127.0.0.1:1")
    started = time.monotonic()
    with closing(GroupCoordinator(settings, LOG_ID, timeout_seconds=0.5)) as coordinator:
        with pytest.raises(KafkaUnreachable, match="did not answer"):
            coordinator.groups()
        with pytest.raises(KafkaUnreachable):
            coordinator.write("billing", {KafkaPartition("orders", 0): NewCommit(1, "n1")})
        with pytest.raises(KafkaUnreachable, match="'billing' did not answer"):
            coordinator.committed("billing", [KafkaPartition("orders", 0)])
    assert time.monotonic() - started < DEADLINE_SECONDS


def test_many_groups_are_told_of_at_once_as_each_by_itself(
    kafka: Kafka, coordinator: GroupCoordinator, topic: str
) -> None:
    where, elsewhere = KafkaPartition(topic, 0), KafkaPartition(topic, 1)
    groups = [f"many-{uuid.uuid4().hex}" for _ in range(5)]
    for offset, group in enumerate(groups[:4]):
        with consumer(kafka, group) as reader:
            reader.assign([TopicPartition(topic, 0, 0)])
            commit(reader, topic, offset, metadata=mark(LOG_ID, f"n{offset}", offset))

    together = coordinator.committed_by_many(groups, [where, elsewhere])

    assert list(together) == groups
    assert [together[group][where] for group in groups] == [
        *(KafkaCommit(offset, Author.OURS, f"n{offset}") for offset in range(4)),
        None,
    ]
    assert together == {group: coordinator.committed(group, [where, elsewhere]) for group in groups}
