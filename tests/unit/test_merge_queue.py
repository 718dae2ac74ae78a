"""When the small batches of a partition are merged."""

from __future__ import annotations

from duolog.log.merge_queue import ENOUGH, MANY, MergeQueue
from duolog.log.model import TopicPartition

ONE, OTHER = TopicPartition(1, 0), TopicPartition(1, 1)


class Told:
    def __init__(self, queue: MergeQueue) -> None:
        self.times = 0
        queue.when_ready(self)

    def __call__(self) -> None:
        self.times += 1


def test_a_partition_is_ready_once_it_has_enough() -> None:
    queue = MergeQueue()
    told = Told(queue)
    for _ in range(ENOUGH - 1):
        queue.note(ONE, 1)
    assert (queue.is_empty, told.times) == (True, 0)
    queue.note(ONE, 1)
    assert (queue.is_empty, told.times) == (False, 1)
    queue.note(ONE, 1)
    assert told.times == 1


def test_while_others_write_only_partitions_with_many_are_taken() -> None:
    queue = MergeQueue()
    told = Told(queue)
    queue.note(ONE, ENOUGH)
    queue.note(OTHER, MANY - 1)
    assert queue.take(only_many=True) is None
    queue.note(OTHER, 1)
    assert told.times == 3
    assert queue.take(only_many=True) == OTHER
    assert queue.take(only_many=True) is None
    assert queue.take(only_many=False) == ONE
    assert queue.take(only_many=False) is None


def test_what_was_taken_counts_from_the_beginning() -> None:
    queue = MergeQueue()
    queue.note(ONE, ENOUGH)
    assert queue.take(only_many=False) == ONE
    queue.note(ONE, ENOUGH - 1)
    assert queue.is_empty
    queue.note(ONE, 1)
    assert queue.take(only_many=False) == ONE


def test_a_partition_that_is_gone_is_not_taken() -> None:
    queue = MergeQueue()
    queue.note(ONE, MANY)
    queue.note(OTHER, ENOUGH)
    queue.forget({ONE})
    assert queue.take(only_many=False) == OTHER
    assert queue.is_empty
