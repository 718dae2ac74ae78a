"""The table of what happens on the two sides, row by row."""

from __future__ import annotations

from dataclasses import replace

import pytest

from duolog.bridge.kafka.positions.decisions import (
    Agreed,
    AwaitEcho,
    AwaitEmptyGroup,
    AwaitMirror,
    Decision,
    GroupState,
    Moved,
    MoveNative,
    OneWay,
    Step,
    WriteKafka,
)
from duolog.bridge.kafka.positions.marks import Author, KafkaCommit
from duolog.bridge.kafka.positions.reconcile import concluded, intending, reconcile, refused
from duolog.log.groups_seen import KafkaSeen, KafkaWrite
from duolog.log.mirror_model import Run
from duolog.log.offset_map import OffsetMap

# Log 0-49 lie at Kafka 0-49, log 50-51 were skipped, Kafka 50-59 are foreign, log 52-99 at 60-107.
OFFSETS = OffsetMap((Run(0, 0, 50), Run(52, 60, 48)), 0, 0, 100, 108)
FRESH = KafkaSeen()
EMPTY, LIVE = GroupState.EMPTY, GroupState.LIVE


def consumer(offset: int) -> KafkaCommit:
    return KafkaCommit(offset)


def ours(offset: int, nonce: str = "n1") -> KafkaCommit:
    return KafkaCommit(offset, Author.OURS, nonce)


def streams(offset: int) -> KafkaCommit:
    return KafkaCommit(offset, Author.ONE_WAY)


def written(offset: int) -> KafkaSeen:
    return KafkaSeen(ours=offset, floor=offset)


def foreign(offset: int, **other: int | None) -> KafkaSeen:
    return KafkaSeen(foreign=offset, floor=other.pop("floor", offset), **other)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("native", "seen", "committed", "step", "after"),
    [
        # nothing anywhere
        (None, FRESH, None, Agreed(), FRESH),
        # a foreign commit equal to to_kafka(native): nothing
        (20, FRESH, consumer(20), Agreed(), foreign(20)),
        (50, FRESH, consumer(50), Agreed(), foreign(50)),
        (51, FRESH, consumer(55), Agreed(), foreign(55)),
        (52, FRESH, consumer(60), Agreed(), foreign(60)),
        # a first one is taken over
        (None, FRESH, consumer(20), MoveNative(20, Moved.ADOPTED), foreign(20)),
        (None, FRESH, ours(20), MoveNative(20, Moved.ADOPTED), written(20)),
        # beyond native: native follows
        (20, foreign(20), consumer(30), MoveNative(30, Moved.FORWARD), foreign(30)),
        (20, foreign(20), consumer(61), MoveNative(53, Moved.FORWARD), foreign(61)),
        (20, foreign(40), consumer(30), MoveNative(30, Moved.FORWARD), foreign(30)),
        # below the last foreign one: a rewind
        (40, foreign(40), consumer(39), MoveNative(39, Moved.REWOUND), foreign(39)),
        (80, KafkaSeen(40, 88, 40), consumer(0), MoveNative(0, Moved.REWOUND), foreign(0)),
        # the same after we wrote and no consumer has committed yet
        (80, written(88), consumer(5), MoveNative(5, Moved.REWOUND), foreign(5)),
        # between the last foreign one and ours: native stays, a conflict, ours again
        (80, KafkaSeen(20, 88, 20), consumer(20), WriteKafka(88), foreign(20, conflicts=1)),
        (80, KafkaSeen(20, 88, 20), consumer(30), WriteKafka(88), foreign(30, conflicts=1)),
        (80, foreign(20), consumer(30), WriteKafka(88), foreign(30, conflicts=1)),
        (80, FRESH, consumer(30), WriteKafka(88), foreign(30, conflicts=1)),
        # what was seen before is no movement, also when native went back meanwhile
        (80, foreign(20), consumer(20), WriteKafka(88), foreign(20)),
        (10, foreign(20), consumer(20), WriteKafka(10), foreign(20)),
        (10, KafkaSeen(5, 20, 5), consumer(20), WriteKafka(10), foreign(20)),
        # a step over foreign records is no movement
        (10, foreign(50), consumer(57), WriteKafka(10), foreign(57)),
        # a native ack
        (30, written(20), ours(20), WriteKafka(30), written(20)),
        (50, written(20), ours(20), WriteKafka(60), written(20)),
        # beyond the mirrored end: the end now, the rest later
        (150, written(20), ours(20), WriteKafka(108), written(20)),
        (150, FRESH, ours(108), Agreed(unmirrored=50), written(108)),
        # our echo is no movement, wherever native is
        (20, FRESH, ours(20), Agreed(), written(20)),
        (10, FRESH, ours(20), WriteKafka(10), written(20)),
        (30, foreign(5), ours(20), WriteKafka(30), KafkaSeen(5, 20, 5)),
        # absent: native stands and is written again
        (30, FRESH, None, WriteKafka(30), FRESH),
        (30, foreign(20), None, WriteKafka(30), KafkaSeen(floor=20)),
        (30, KafkaSeen(20, 30, 20), None, WriteKafka(30), KafkaSeen(floor=20)),
        # beyond what is known to be mirrored: waits, never clamped
        (30, foreign(20), consumer(109), AwaitMirror(109), foreign(20)),
        (None, FRESH, consumer(10**9), AwaitMirror(10**9), FRESH),
        (30, written(120), ours(120), AwaitMirror(120), written(120)),
    ],
)  # fmt: skip
def test_rows(
    native: int | None,
    seen: KafkaSeen,
    committed: KafkaCommit | None,
    step: Step,
    after: KafkaSeen,
) -> None:
    assert reconcile(native, seen, committed, OFFSETS, EMPTY) == Decision(step, after)
    live = AwaitEmptyGroup(step.offset) if isinstance(step, WriteKafka) else step
    assert reconcile(native, seen, committed, OFFSETS, LIVE) == Decision(live, after)


@pytest.mark.parametrize(
    ("native", "seen", "committed", "step"),
    [
        (None, FRESH, streams(20), MoveNative(20, Moved.ADOPTED)),
        (10, foreign(10), streams(20), MoveNative(20, Moved.FORWARD)),
        (30, foreign(30), streams(20), MoveNative(20, Moved.REWOUND)),
        (20, foreign(20), streams(20), Agreed()),
        (30, foreign(20), streams(20), OneWay()),
        (10, foreign(20), streams(20), OneWay()),
        (30, KafkaSeen(foreign=20, floor=20, one_way=True), None, OneWay()),
    ],
)
@pytest.mark.parametrize("group", GroupState)
def test_an_application_that_keeps_metadata_is_followed_and_never_written(
    native: int | None,
    seen: KafkaSeen,
    committed: KafkaCommit | None,
    step: Step,
    group: GroupState,
) -> None:
    decision = reconcile(native, seen, committed, OFFSETS, group)
    assert decision.step == step
    assert decision.seen.one_way


def test_a_group_that_was_one_way_becomes_an_ordinary_one() -> None:
    seen = KafkaSeen(foreign=20, floor=20, one_way=True)
    decision = reconcile(30, seen, consumer(20), OFFSETS, EMPTY)
    assert decision == Decision(WriteKafka(30), foreign(20))


# -- writes on their way

WRITE = KafkaWrite("n1", 30, based_on=20, feed_from=7)


def test_nothing_is_written_while_a_write_is_on_its_way() -> None:
    seen = intending(foreign(20), WRITE)
    waiting = reconcile(40, seen, consumer(20), OFFSETS, EMPTY)
    assert waiting.step == AwaitEcho(replace(WRITE, floor_before=20))
    assert reconcile(40, seen, ours(30), OFFSETS, EMPTY).step == waiting.step
    assert reconcile(30, seen, ours(30), OFFSETS, EMPTY).step == Agreed()
    assert reconcile(30, seen, consumer(45), OFFSETS, EMPTY).step == MoveNative(45, Moved.FORWARD)


def test_nothing_is_agreed_before_the_echo() -> None:
    seen = intending(foreign(20), WRITE)
    assert (seen.ours, seen.foreign, seen.floor) == (None, 20, 20)
    assert refused(seen) == foreign(20)
    assert refused(FRESH) == FRESH


def test_the_echo_of_a_lower_write_lowers_the_floor() -> None:
    seen = intending(foreign(50), replace(WRITE, offset=10, based_on=50))
    done = concluded(10, seen, None, OFFSETS)
    assert (done.step, done.seen) == (None, KafkaSeen(foreign=50, floor=10))
    while_on_its_way = reconcile(40, seen, consumer(20), OFFSETS, EMPTY)
    assert while_on_its_way.seen.conflicts == 1, "it may have gone on from ours"


@pytest.mark.parametrize(
    ("overwritten", "step", "floor", "conflicts"),
    [
        (None, None, 20, 0),
        (ours(25, "n0"), None, 20, 0),
        (consumer(20), None, 20, 0),  # what the write was based on
        (consumer(45), MoveNative(45, Moved.FORWARD), 30, 0),
        (consumer(25), None, 25, 1),
        (consumer(5), MoveNative(5, Moved.REWOUND), 5, 0),
    ],
)
def test_a_commit_that_we_wrote_over_counts(
    overwritten: KafkaCommit | None, step: Step | None, floor: int, conflicts: int
) -> None:
    noticed = concluded(30, intending(foreign(20), WRITE), overwritten, OFFSETS)
    assert noticed.step == step
    assert noticed.seen == KafkaSeen(foreign=20, floor=floor, conflicts=conflicts)


def test_what_we_wrote_over_is_not_judged_by_what_came_later() -> None:
    """A consumer went on from 30 to 48 before we learned that 25 had been committed."""
    seen = replace(intending(foreign(20), WRITE), foreign=48, floor=48)
    noticed = concluded(49, seen, consumer(25), OFFSETS)
    assert noticed.step is None
    assert noticed.seen == KafkaSeen(foreign=48, floor=30, conflicts=1)


def test_what_we_wrote_over_waits_for_the_mirror_too() -> None:
    seen = intending(foreign(20), WRITE)
    noticed = concluded(30, seen, consumer(200), OFFSETS)
    assert (noticed.step, noticed.seen) == (AwaitMirror(200), seen)


def test_there_is_nothing_to_conclude_without_a_write() -> None:
    noticed = concluded(30, foreign(20), consumer(25), OFFSETS)
    assert (noticed.step, noticed.seen) == (None, foreign(20))


def test_a_kafka_log_that_was_cut_makes_positions_wait() -> None:
    cut = OffsetMap((Run(0, 0, 10),), 0, 0, 10, 10)
    for committed in (consumer(20), ours(20)):
        assert reconcile(20, foreign(20), committed, cut, EMPTY).step == AwaitMirror(20)
    assert reconcile(20, foreign(20), consumer(5), cut, EMPTY).step == MoveNative(5, Moved.REWOUND)


@pytest.mark.parametrize(
    ("native", "seen", "committed", "step", "after"),
    [
        # Kafka learns where native consumers begin, as an offset of its own
        (20, FRESH, None, WriteKafka(20), FRESH),
        (50, FRESH, None, WriteKafka(60), FRESH),
        # what Kafka holds of the group goes before it, wherever that is and whoever wrote it
        (100, FRESH, consumer(20), MoveNative(20, Moved.ADOPTED), foreign(20)),
        (0, FRESH, consumer(20), MoveNative(20, Moved.ADOPTED), foreign(20)),
        (100, FRESH, ours(20), MoveNative(20, Moved.ADOPTED), written(20)),
        (20, FRESH, consumer(20), Agreed(), foreign(20)),
        (20, FRESH, ours(20), Agreed(), written(20)),
        (20, FRESH, consumer(200), AwaitMirror(200), FRESH),
        # our own write of it is no news
        (100, written(108), ours(108), Agreed(), written(108)),
        (90, written(60), ours(60), WriteKafka(98), written(60)),
        # the first commit behind ours
        (20, written(20), consumer(30), MoveNative(30, Moved.ADOPTED), foreign(30)),
        (20, written(20), consumer(10), MoveNative(10, Moved.ADOPTED), foreign(10)),
    ],
)
def test_where_a_group_begins_is_no_acknowledgement(
    native: int, seen: KafkaSeen, committed: KafkaCommit | None, step: Step, after: KafkaSeen
) -> None:
    decision = reconcile(native, seen, committed, OFFSETS, EMPTY, is_first=True)
    assert decision == Decision(step, after)
    if isinstance(step, WriteKafka):
        decision = reconcile(native, seen, committed, OFFSETS, LIVE, is_first=True)
        assert decision.step == AwaitEmptyGroup(step.offset, has_time=True)


def test_a_commit_that_we_wrote_over_goes_before_where_a_group_begins() -> None:
    seen = intending(FRESH, WRITE)
    noticed = concluded(WRITE.offset, seen, consumer(5), OFFSETS, is_first=True)
    assert noticed.step == MoveNative(5, Moved.ADOPTED)
