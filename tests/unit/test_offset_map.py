"""Every offset of a partition translated both ways, whatever holes there are."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duolog.bridge.kafka.runs import extended
from duolog.log.mirror_model import Mirror, MirrorTarget, Run, Skip, SkipReason
from duolog.log.offset_map import OffsetMap

OURS, SKIPPED, FOREIGN = "ours", "skipped", "foreign"
FATES = st.lists(st.sampled_from([OURS, OURS, OURS, SKIPPED, FOREIGN]), max_size=40)


def mapped(fates: list[str], log: int = 0, kafka: int = 0) -> OffsetMap:
    """The map after these things have happened, one after another."""
    begin = (log, kafka)
    runs: tuple[Run, ...] = ()
    for fate in fates:
        if fate == OURS:
            runs = extended(runs, Run(log, kafka, 1))
        log += fate != FOREIGN
        kafka += fate != SKIPPED
    return OffsetMap(runs, *begin, log, kafka)


def ours(offsets: OffsetMap) -> dict[int, int]:
    """The log offset of each Kafka offset that holds a record of ours."""
    return {
        run.first_kafka_offset + n: run.first_log_offset + n
        for run in offsets.runs
        for n in range(run.count)
    }


@pytest.mark.parametrize("length", range(8))
def test_every_offset_of_every_partition_of_up_to_seven_things(length: int) -> None:
    for fates in product([OURS, SKIPPED, FOREIGN], repeat=length):
        for begin in ((0, 0), (5, 0), (0, 5)):
            check_every_offset(mapped(list(fates), *begin))


@given(FATES, st.integers(0, 100), st.integers(0, 100))
def test_every_offset_of_long_partitions(fates: list[str], log: int, kafka: int) -> None:
    check_every_offset(mapped(fates, log, kafka))


def check_every_offset(offsets: OffsetMap) -> None:
    """Against the plain words of what the two functions are."""
    lies_at = ours(offsets)
    kafka_of = {log: kafka for kafka, log in lies_at.items()}
    for position in range(offsets.next_log_offset + 3):
        following = [kafka for log, kafka in kafka_of.items() if log >= position]
        assert offsets.to_kafka(position) == min(following, default=offsets.mirrored_end)
        back = offsets.to_log(offsets.to_kafka(position))
        assert back is not None
        between = range(min(back, position), max(back, position))
        assert not any(log in kafka_of for log in between), "only what Kafka has not"
    for kafka_offset in range(offsets.known_kafka_end + 1):
        before = [log for kafka, log in lies_at.items() if kafka < kafka_offset]
        place = offsets.to_log(kafka_offset)
        assert place == (max(before) + 1 if before else offsets.begin_log_offset)
        again = offsets.to_kafka(place)
        assert not any(kafka in lies_at for kafka in range(kafka_offset, again))
        if kafka_offset in lies_at or kafka_offset == offsets.mirrored_end:
            assert again == kafka_offset
    assert offsets.to_log(offsets.known_kafka_end + 1) is None
    for position in range(offsets.next_log_offset + 3):
        for kafka_offset in range(offsets.known_kafka_end + 3):
            before = [log < position for log in lies_at.values()]
            is_same = sum(before) == sum(kafka < kafka_offset for kafka in lies_at)
            assert offsets.is_same_place(position, kafka_offset) == is_same


HOLES = OffsetMap((Run(0, 10, 5), Run(7, 15, 3), Run(10, 20, 2)), 0, 10, 13, 23)
"""Log 5, 6 and 12 were skipped; 18, 19 and 22 in Kafka are foreign."""


@pytest.mark.parametrize(("position", "kafka_offset"), [
    (0, 10), (4, 14), (5, 15), (6, 15), (7, 15), (8, 16), (9, 17), (10, 20), (11, 21), (12, 22),
    (13, 22), (50, 22),
])  # fmt: skip
def test_to_kafka(position: int, kafka_offset: int) -> None:
    assert HOLES.to_kafka(position) == kafka_offset


@pytest.mark.parametrize(("kafka_offset", "position"), [
    (0, 0), (10, 0), (11, 1), (15, 5), (16, 8), (18, 10), (19, 10), (20, 10), (21, 11), (22, 12),
    (23, 12), (24, None),
])  # fmt: skip
def test_to_log(kafka_offset: int, position: int | None) -> None:
    assert HOLES.to_log(kafka_offset) == position


def test_a_mirror_that_began_later_knows_nothing_before() -> None:
    target = MirrorTarget("cluster", "orders", "id", 1, 0, 100, 40)
    empty = OffsetMap.of_mirror(Mirror("orders", 0, 1, target))
    assert [empty.to_kafka(position) for position in (0, 100, 200)] == [40, 40, 40]
    assert [empty.to_log(kafka) for kafka in (0, 40, 41)] == [100, 100, None]
    skips = (Skip(100, 2, SkipReason.TOO_LARGE), Skip(104, 1, SkipReason.TOO_LARGE))
    filled = OffsetMap.of_mirror(Mirror("orders", 0, 2, target, (Run(102, 40, 2),), skips))
    assert (filled.next_log_offset, filled.known_kafka_end) == (105, 42)
    assert [filled.to_kafka(position) for position in (0, 102, 103, 104)] == [40, 40, 41, 42]
    assert [filled.to_log(kafka) for kafka in (39, 40, 41, 42, 43)] == [100, 100, 103, 104, None]
    further = OffsetMap.of_mirror(Mirror("orders", 0, 2, target), known_kafka_end=50)
    assert further.to_log(50) == 100


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 4)), min_size=2, max_size=6), st.data())
def test_what_is_pruned_changes_no_place_behind_it(
    lengths: list[tuple[int, int]], data: st.DataObject
) -> None:
    runs, at, kafka = [], 0, 3
    for count, hole in lengths:
        runs.append(Run(at, kafka, count))
        at, kafka = at + count, kafka + count + hole
    target = MirrorTarget("c", "t", "id", 1, 0, 0, 3)
    mirror = Mirror("t", 0, 1, target, tuple(runs))
    pruned = mirror.pruned_by(data.draw(st.integers(0, len(runs) - 1)), 0)
    before, after = OffsetMap.of_mirror(mirror), OffsetMap.of_mirror(pruned)
    first = pruned.runs[0]
    for position in range(first.first_log_offset, at + 2):
        assert after.to_kafka(position) == before.to_kafka(position)
    for offset in range(first.first_kafka_offset, kafka + 2):
        assert after.to_log(offset) == before.to_log(offset)
    # A group that stands before them is not moved: both sides are the same place still.
    for position in range(first.first_log_offset):
        assert after.is_same_place(position, before.to_kafka(position))
