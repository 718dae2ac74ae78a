"""A settler that ends between two steps, or never learns what became of a write."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from duolog.bridge.kafka.feed.coordinator import GroupCoordinator, KafkaPartition, NewCommit
from duolog.bridge.kafka.feed.reading import GroupFeed
from duolog.bridge.kafka.positions.decisions import Agreed
from duolog.bridge.kafka.positions.settler import NotYet, Settler
from duolog.errors import GroupHasMembers, KafkaUnreachable, UnknownGroup
from duolog.log.embedded import open_log
from duolog.log.groups_seen import KafkaSeen
from tests.support.group_pair import Pair
from tests.support.groups import member, until
from tests.support.kafka import Kafka


@pytest.fixture
def pair(tmp_path: Path, kafka: Kafka) -> Iterator[Pair]:
    with open_log(tmp_path / "log") as log, closing(Pair(log, kafka)) as made:
        made.topic.fill(100)
        yield made


class TroubledCoordinator(GroupCoordinator):
    """The real one, with something that happens around its next write."""

    before: Callable[[], None] | None = None
    answer_is_lost = False
    never_arrives = False

    def forget(self, group: str, partitions: Iterable[KafkaPartition]) -> bool:
        if self.never_arrives:
            raise KafkaUnreachable("The request got lost.")
        is_done = super().forget(group, partitions)
        if self.answer_is_lost:
            raise KafkaUnreachable("The answer got lost.")
        return is_done

    def write(
        self, group: str, commits: Mapping[KafkaPartition, NewCommit]
    ) -> frozenset[KafkaPartition]:
        if self.before is not None:
            happening, self.before = self.before, None
            happening()
        if self.never_arrives:
            raise KafkaUnreachable("The request got lost.")
        refused = super().write(group, commits)
        if self.answer_is_lost:
            raise KafkaUnreachable("The answer got lost.")
        return refused


class Process:
    """A settler with what belongs to it, stepped by hand."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        log = pair.log
        self.coordinator = TroubledCoordinator(pair.settings, log.log_id)
        first = {
            each.group: each.kafka.writing.feed_from
            for each in log.group_positions()
            if each.kafka and each.kafka.writing and each.kafka.writing.feed_from is not None
        }
        self.feed = GroupFeed(pair.settings.for_confluent(), first_offsets=first)
        self.settler = Settler(log, self.coordinator, self.feed)
        self.settler.resume()

    def step(self) -> bool:
        """Whether both sides are at rest after it."""
        for hint in self.feed.poll(0.02):
            self.settler.hear(hint)
        (outcome,) = self.settler.settle(self.pair.group)
        return outcome.step == Agreed() and self.seen.writing is None

    def comes_to_rest(self) -> None:
        until(self.step, "come to rest")

    @property
    def seen(self) -> KafkaSeen:
        position = self.pair.log.group_position(self.pair.group, "orders", 0)
        return (position and position.kafka) or KafkaSeen()

    def close(self) -> None:
        self.feed.close()
        self.coordinator.close()


@pytest.fixture
def process(pair: Pair) -> Iterator[Callable[[], Process]]:
    opened: list[Process] = []

    def start() -> Process:
        opened.append(Process(pair))
        return opened[-1]

    yield start
    for each in opened:
        each.close()


def test_a_write_is_agreed_when_its_echo_is_read(
    pair: Pair, process: Callable[[], Process]
) -> None:
    running = process()
    pair.ack(19)
    running.settler.settle(pair.group)
    assert running.seen.writing is not None
    assert running.seen.ours is None
    running.comes_to_rest()
    assert running.seen == KafkaSeen(ours=20, floor=20)
    assert (pair.native, pair.in_kafka) == (20, 20)


@pytest.mark.parametrize("arrives", [True, False])
@pytest.mark.parametrize("restarted", [True, False])
def test_a_write_whose_answer_is_lost(
    pair: Pair, process: Callable[[], Process], arrives: bool, restarted: bool
) -> None:
    running = process()
    running.coordinator.answer_is_lost = arrives
    running.coordinator.never_arrives = not arrives
    pair.ack(19)
    with pytest.raises(KafkaUnreachable):
        running.settler.settle(pair.group)
    assert pair.in_kafka == (20 if arrives else None)
    running.coordinator.answer_is_lost = running.coordinator.never_arrives = False
    pair.ack(29)
    if restarted:
        running = process()
    running.comes_to_rest()
    assert (pair.native, pair.in_kafka) == (30, 30)
    assert running.seen == KafkaSeen(ours=30, floor=20 if arrives else 30)


@pytest.mark.parametrize("restarted", [True, False])
@pytest.mark.parametrize(("committed", "agreed"), [(50, 50), (15, 20), (5, 5)])
def test_a_commit_that_was_written_over_counts(
    pair: Pair, process: Callable[[], Process], restarted: bool, committed: int, agreed: int
) -> None:
    """A consumer commits between the look at its group and our write: 10 was known, 20 is acked."""
    running = process()
    pair.commit(10)
    running.comes_to_rest()
    pair.ack(19)
    running.coordinator.before = lambda: pair.commit(committed)
    running.settler.settle(pair.group)
    assert pair.in_kafka == 20
    if restarted:
        running = process()
    running.comes_to_rest()
    assert (pair.native, pair.in_kafka) == (agreed, agreed)
    assert running.seen.conflicts == (committed == 15)


def test_a_native_move_meanwhile_is_not_lost(pair: Pair, process: Callable[[], Process]) -> None:
    running = process()
    pair.commit(10)
    running.comes_to_rest()
    pair.ack(19)
    running.coordinator.before = lambda: pair.ack(39)
    running.settler.settle(pair.group)
    assert (pair.native, pair.in_kafka) == (40, 20)
    running.comes_to_rest()
    assert (pair.native, pair.in_kafka) == (40, 40)


def test_a_group_that_gets_a_member_before_the_write_is_left_alone(
    pair: Pair, process: Callable[[], Process]
) -> None:
    running = process()
    pair.commit(10)
    running.comes_to_rest()
    pair.ack(19)
    with ExitStack() as joined:

        def join() -> None:
            joined.enter_context(member(pair.kafka, pair.group, pair.topic.kafka_topic))

        running.coordinator.before = join
        running.settler.settle(pair.group)
        assert pair.in_kafka == 10
        assert running.seen == KafkaSeen(foreign=10, floor=10)
    running.comes_to_rest()
    assert (pair.native, pair.in_kafka) == (20, 20)


@pytest.mark.parametrize("arrives", [True, False])
@pytest.mark.parametrize("restarted", [True, False])
@pytest.mark.parametrize("position", [3, 60])
def test_a_reset_that_is_cut_off_is_undone_and_can_be_sent_again(
    pair: Pair, process: Callable[[], Process], arrives: bool, restarted: bool, position: int
) -> None:
    """Kafka has been told, and the log not yet."""
    running = process()
    pair.ack(19)
    running.comes_to_rest()
    running.coordinator.answer_is_lost = arrives
    running.coordinator.never_arrives = not arrives
    with pytest.raises(KafkaUnreachable):
        running.settler.reset(pair.group, "orders", 0, position)
    assert (pair.native, pair.in_kafka) == (20, position if arrives else 20)
    running.coordinator.answer_is_lost = running.coordinator.never_arrives = False
    if restarted:
        running = process()
    running.comes_to_rest()
    assert (pair.native, pair.in_kafka) == (20, 20)
    running.settler.reset(pair.group, "orders", 0, position)
    running.comes_to_rest()
    assert (pair.native, pair.in_kafka) == (position, position)


@pytest.mark.parametrize("arrives", [True, False])
@pytest.mark.parametrize("restarted", [True, False])
def test_a_deletion_that_is_cut_off_is_undone_and_can_be_sent_again(
    pair: Pair, process: Callable[[], Process], arrives: bool, restarted: bool
) -> None:
    """Kafka has forgotten it, and the log not yet."""
    running = process()
    pair.ack(19)
    running.comes_to_rest()
    running.coordinator.answer_is_lost = arrives
    running.coordinator.never_arrives = not arrives
    with pytest.raises(KafkaUnreachable):
        running.settler.delete(pair.group)
    assert (pair.native, pair.in_kafka) == (20, None if arrives else 20)
    running.coordinator.answer_is_lost = running.coordinator.never_arrives = False
    if restarted:
        running = process()
    running.comes_to_rest()
    assert (pair.native, pair.in_kafka) == (20, 20)
    assert running.settler.delete(pair.group) == 1
    assert (pair.native, pair.in_kafka) == (None, None)
    for _ in range(10):
        running.step()
    assert (pair.native, pair.in_kafka) == (None, None)


def test_a_move_waits_for_the_echo_of_a_write_before_it(
    pair: Pair, process: Callable[[], Process]
) -> None:
    """A commit may have been written over: it is known only with the echo, and would be lost."""
    running = process()
    pair.ack(19)
    running.settler.settle(pair.group)
    for move in (
        lambda: running.settler.reset(pair.group, "orders", 0, 5),
        lambda: running.settler.delete(pair.group),
    ):
        with pytest.raises(NotYet):
            move()
    running.comes_to_rest()
    assert running.settler.reset(pair.group, "orders", 0, 5) is not None
    running.comes_to_rest()
    assert (pair.native, pair.in_kafka) == (5, 5)


def test_a_member_that_comes_in_between_keeps_a_group_from_being_deleted(
    pair: Pair, process: Callable[[], Process]
) -> None:
    running = process()
    pair.ack(19)
    running.comes_to_rest()
    with member(pair.kafka, pair.group, pair.topic.kafka_topic):
        place = KafkaPartition(pair.topic.kafka_topic, 0)
        assert not running.coordinator.forget(pair.group, [place])
        with pytest.raises(GroupHasMembers):
            running.settler.delete(pair.group)
    assert (pair.native, pair.in_kafka) == (20, 20)


def test_offsets_that_kafka_does_not_have_are_forgotten_already(
    pair: Pair, process: Callable[[], Process]
) -> None:
    running = process()
    assert running.coordinator.forget(pair.group, [KafkaPartition("no-such-topic", 3)])
    with pytest.raises(UnknownGroup):
        running.settler.delete(pair.group)
    pair.commit(7)
    with pytest.raises(NotYet):  # were it cut off now, the commit would be lost
        running.settler.delete(pair.group)
    running.comes_to_rest()
    assert running.settler.delete(pair.group) == 1
    assert (pair.native, pair.in_kafka) == (None, None)
