"""A settler that ends between two steps, or never learns what became of a write."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from duolog.bridge.kafka.feed.coordinator import GroupCoordinator, KafkaPartition, NewCommit
from duolog.bridge.kafka.feed.reading import GroupFeed
from duolog.bridge.kafka.positions.decisions import Agreed
from duolog.bridge.kafka.positions.settler import Settler
from duolog.errors import KafkaUnreachable
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
