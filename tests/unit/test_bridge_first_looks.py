"""Which polls ask Kafka where their group is."""

from __future__ import annotations

from duolog.bridge.first_looks import FirstLooks


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_who_polls_on_and_on_asks_once() -> None:
    clock = Clock()
    looks = FirstLooks(clock, recent_seconds=1.0)
    asked = 0
    for _ in range(100):
        asked += looks.is_due("g", 1, None)
        looks.answered("g", 1, None)
        clock.now += 0.9
    assert asked == 1
    clock.now += 0.2
    assert looks.is_due("g", 1, None)


def test_groups_topics_and_partitions_are_apart() -> None:
    looks = FirstLooks(Clock())
    looks.answered("g", 1, 0)
    assert not looks.is_due("g", 1, 0)
    for other in (("h", 1, 0), ("g", 2, 0), ("g", 1, 1), ("g", 1, None)):
        assert looks.is_due(*other)


def test_a_group_that_was_handed_over_asks_again_at_once() -> None:
    looks = FirstLooks(Clock())
    for place in (0, 1, None):
        looks.answered("g", 1, place)
        looks.answered("h", 1, place)
    looks.handed_over("g", 1, 0)
    assert [looks.is_due("g", 1, place) for place in (0, 1, None)] == [True, False, True]
    looks.handed_over("g", 1, None)
    assert looks.is_due("g", 1, 1)
    assert not any(looks.is_due("h", 1, place) for place in (0, 1, None))
    looks.handed_over("nobody", 1, None)


def test_what_is_long_ago_takes_no_memory() -> None:
    clock = Clock()
    looks = FirstLooks(clock, recent_seconds=1.0)
    for number in range(1000):
        looks.answered(f"g{number}", 1, None)
        clock.now += 0.1
    assert len(looks._answered_at) <= 12
