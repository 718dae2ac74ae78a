"""How long a change is remembered, and how many are: pure."""

from __future__ import annotations

import random

import pytest

from duolog.log.dedup import LatestChanges, LatestOfPartition
from duolog.log.model import Head, Op, Topic, TopicPartition, TopicSettings

WHERE = TopicPartition(1, 0)
START_MS = 1_700_000_000_000
SECOND = 1000
TOPIC = Topic(1, "orders", TopicSettings(dedup_window_seconds=1.0), (), 0, 0)


class Written:
    """A partition whose topic leaves out repeats within a second."""

    def __init__(self) -> None:
        self.changes = LatestChanges()
        self.offset = 0
        self.start = 0
        self.now_ms = START_MS

    def view(self) -> LatestOfPartition:
        head = Head(self.start, self.offset, 0, 0)
        return self.changes.of(TOPIC, WHERE, head, self.now_ms, lambda *_: [])

    def write(self, key: bytes, ts_ms: int | None = None, value: bytes = b"v") -> bool:
        """Write a change in a round of its own; False when it is left out."""
        view = self.view()
        wrote = self.put(view, key, self.now_ms if ts_ms is None else ts_ms, value)
        view.keep()
        return wrote

    def put(self, view: LatestOfPartition, key: bytes, ts_ms: int, value: bytes = b"v") -> bool:
        change = (key, ts_ms, int(Op.UPDATE), "t", value)
        if view.repeats(*change) is not None:
            return False
        view.note(*change, self.offset)
        self.offset += 1
        return True


def test_under_steady_load_only_a_window_of_changes_is_kept() -> None:
    partition = Written()
    for n in range(60_000):
        assert partition.write(b"%d" % n)
        partition.now_ms += 1
    assert 1000 <= len(partition.changes) <= 1002


def test_an_epoch_keeps_only_a_window_of_its_changes() -> None:
    partition = Written()
    partition.now_ms = START_MS + 60 * SECOND
    view = partition.view()
    for n in range(60_000):
        assert partition.put(view, b"%d" % n, START_MS + n)
    assert len(view._new.latest) <= 1002
    view.keep()
    assert len(partition.changes) <= 1002


def test_a_key_that_changes_all_the_time_is_one_entry() -> None:
    partition = Written()
    for n in range(1000):
        partition.write(b"k", value=b"%d" % n)
    assert len(partition.changes) == 1


def test_changes_below_the_start_go_with_the_next_writes() -> None:
    partition = Written()
    for n in range(1000):
        partition.write(b"%d" % n)
    partition.start = 990
    assert partition.write(b"5")
    assert not partition.write(b"995")
    assert len(partition.changes) == 11


@pytest.mark.parametrize("jump_seconds", [-3600, 3600, 10 * 365 * 86_400])
def test_a_clock_that_jumps_and_comes_back_leaves_memory_bounded(jump_seconds: int) -> None:
    partition = Written()
    for n in range(5000):
        partition.write(b"a%d" % n)
        partition.now_ms += 1
    before = partition.now_ms
    partition.now_ms += jump_seconds * SECOND
    for n in range(100):
        partition.write(b"b%d" % n)
        partition.now_ms += 1
    partition.now_ms = before
    for n in range(5000):
        partition.write(b"c%d" % n)
        partition.now_ms += 1
    assert len(partition.changes) <= 1101
    assert not partition.write(b"c4999")


def test_one_timestamp_far_ahead_keeps_what_is_remembered_and_is_forgotten_itself() -> None:
    partition = Written()
    partition.write(b"k")
    partition.write(b"ahead", START_MS + 3600 * SECOND)
    assert not partition.write(b"k")
    for n in range(5000):
        partition.write(b"%d" % n)
        partition.now_ms += 1
    assert len(partition.changes) <= 1002


def test_a_single_write_forgets_a_bounded_number() -> None:
    partition = Written()
    for n in range(20_000):
        partition.write(b"%d" % n)
    partition.now_ms += 3600 * SECOND
    partition.write(b"next")
    assert len(partition.changes) > 18_000
    for n in range(20):
        partition.write(b"after%d" % n)
    assert len(partition.changes) == 21


def test_what_is_left_out_does_not_depend_on_when_memory_is_freed() -> None:
    # Against a model that never forgets: whatever timestamps and clocks do, in rounds of any size.
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    partition = Written()
    last: dict[bytes, tuple[int, bytes, int]] = {}
    time_ms = 0
    for _ in range(3000):
        partition.now_ms += rng.choice([0, 1, 200, 700])
        view = partition.view()
        for _ in range(rng.choice([1, 1, 5])):
            key, value = b"%d" % rng.randrange(20), b"%d" % rng.randrange(2)
            ts_ms = partition.now_ms + rng.choice([0, 0, -300, -900, -5000, 400, 100_000])
            at_ms = min(partition.now_ms, max(time_ms, ts_ms))
            seen = last.get(key)
            is_news = not (
                seen is not None
                and seen[1] == value
                and abs(ts_ms - seen[0]) <= SECOND
                and abs(at_ms - seen[2]) <= SECOND
            )
            assert partition.put(view, key, ts_ms, value) is is_news
            if is_news:
                last[key], time_ms = (ts_ms, value, at_ms), at_ms
        view.keep()
