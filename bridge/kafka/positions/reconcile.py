"""What brings both sides of a group's position to one place. Pure: no clock, no broker, no log.

Places are compared as the log positions that Kafka offsets stand for, so a step over foreign
records, or over records that Kafka could not take, is no movement.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

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
from duolog.log.groups_seen import KafkaSeen, KafkaWrite
from duolog.log.offset_map import OffsetMap


@dataclass(frozen=True, slots=True)
class Noticed:
    """What Kafka's side alone asks for: a step, if any, and what to remember."""

    step: MoveNative | AwaitMirror | None
    seen: KafkaSeen


def reconcile(
    native: int | None,
    seen: KafkaSeen,
    committed: KafkaCommit | None,
    offsets: OffsetMap,
    group: GroupState,
    *,
    is_first: bool = False,
) -> Decision:
    """The next step for one group and partition; look again after it is done.

    `native` is the position in the log, `seen` what was remembered of Kafka with it, `committed`
    what Kafka holds now. `is_first`: native consumers begin there, and have acknowledged nothing.
    """
    noticed = notice(native, seen, committed, offsets, is_first=is_first)
    if noticed.step is not None:
        return Decision(noticed.step, noticed.seen)
    step = _towards_kafka(native, noticed.seen, committed, offsets, group, is_first=is_first)
    return Decision(step, noticed.seen)


def notice(
    native: int | None,
    seen: KafkaSeen,
    committed: KafkaCommit | None,
    offsets: OffsetMap,
    *,
    is_first: bool = False,
) -> Noticed:
    """Whether Kafka's side has moved, and what that means for the native one."""
    if committed is None:  # never there, expired, deleted: no rewind
        return Noticed(None, replace(seen, foreign=None, ours=None))
    place = offsets.to_log(committed.offset)
    if place is None:
        return Noticed(AwaitMirror(committed.offset), seen)
    if committed.author is Author.OURS:
        floor = seen.floor if seen.writing else _lower(seen.floor, committed.offset)
        echoed = replace(seen, ours=committed.offset, floor=floor)
        # Ours, and nothing is known of it: the group's from before it began here.
        is_older = is_first and seen.held is None and seen.writing is None
        if native is None or (is_older and place != _native_place(native, offsets)):
            return Noticed(MoveNative(place, Moved.ADOPTED), echoed)
        return Noticed(None, echoed)
    known = replace(seen, one_way=committed.author is Author.ONE_WAY)
    if native is not None and place == _place(offsets, _last_seen(seen)):
        after = replace(known, foreign=committed.offset, floor=committed.offset, ours=None)
        return Noticed(None, after)
    return _moved(native, known, committed.offset, place, offsets, is_first=is_first)


def intending(seen: KafkaSeen, write: KafkaWrite) -> KafkaSeen:
    """What to store before a write is sent."""
    return replace(seen, writing=replace(write, floor_before=seen.floor))


def refused(seen: KafkaSeen) -> KafkaSeen:
    """What to store when a write is known not to have come to Kafka."""
    return replace(seen, writing=None)


def concluded(
    native: int | None,
    seen: KafkaSeen,
    overwritten: KafkaCommit | None,
    offsets: OffsetMap,
    *,
    is_first: bool = False,
) -> Noticed:
    """After the echo of a write was read, and with it the commit that it replaced in Kafka.

    A consumer may have committed between our look and our write. Nothing of that is in Kafka any
    more, but it was said, so it counts; what is known of Kafka since then stays.
    """
    write = seen.writing
    if write is None:
        return Noticed(None, seen)
    done = replace(seen, writing=None, floor=_lower(seen.floor, write.offset))
    if overwritten is None or overwritten.author is Author.OURS:
        return Noticed(None, done)
    place = offsets.to_log(overwritten.offset)
    if place is None:
        return Noticed(AwaitMirror(overwritten.offset), seen)
    if place == _place(offsets, write.based_on):
        return Noticed(None, done)
    at_the_time = replace(done, floor=write.floor_before)
    noticed = _moved(native, at_the_time, overwritten.offset, place, offsets, is_first=is_first)
    rewound = isinstance(noticed.step, MoveNative) and noticed.step.why is Moved.REWOUND
    floor = done.floor
    if seen.floor == write.floor_before:  # nobody was heard since
        floor = min(overwritten.offset, write.offset)
    elif rewound:
        floor = _lower(floor, overwritten.offset)
    return Noticed(noticed.step, replace(done, floor=floor, conflicts=noticed.seen.conflicts))


def _moved(
    native: int | None,
    seen: KafkaSeen,
    commit: int,
    place: int,
    offsets: OffsetMap,
    *,
    is_first: bool,
) -> Noticed:
    """A consumer has committed."""
    after = replace(seen, foreign=commit, floor=commit, ours=None)
    # What was acknowledged goes before where somebody has only begun.
    if native is None or (is_first and place != _native_place(native, offsets)):
        return Noticed(MoveNative(place, Moved.ADOPTED), after)
    native_place = _native_place(native, offsets)
    if native_place is None or place == native_place:
        return Noticed(None, after)
    if place > native_place:
        return Noticed(MoveNative(place, Moved.FORWARD), after)
    floor = seen.floor if seen.writing is None else _lower(seen.floor, seen.writing.offset)
    floor_place = _place(offsets, floor)
    if floor is not None and (floor_place is None or place < floor_place):
        return Noticed(MoveNative(place, Moved.REWOUND), after)
    return Noticed(None, replace(after, conflicts=seen.conflicts + 1))


def _towards_kafka(
    native: int | None,
    seen: KafkaSeen,
    committed: KafkaCommit | None,
    offsets: OffsetMap,
    group: GroupState,
    *,
    is_first: bool,
) -> Step:
    """What Kafka's side needs, now that the native one has taken notice."""
    if native is None:
        return Agreed()
    wanted = offsets.to_kafka(native)
    if committed is not None and offsets.to_log(committed.offset) == offsets.to_log(wanted):
        return Agreed(max(0, native - offsets.next_log_offset))
    if seen.one_way:
        return OneWay()
    if seen.writing is not None:
        return AwaitEcho(seen.writing)
    if group is GroupState.LIVE:
        return AwaitEmptyGroup(wanted, is_first)
    return WriteKafka(wanted)


def _native_place(native: int, offsets: OffsetMap) -> int | None:
    return offsets.to_log(offsets.to_kafka(native))


def _last_seen(seen: KafkaSeen) -> int | None:
    """What Kafka held when it was looked at last."""
    return seen.foreign if seen.ours is None else seen.ours


def _place(offsets: OffsetMap, kafka_offset: int | None) -> int | None:
    return None if kafka_offset is None else offsets.to_log(kafka_offset)


def _lower(floor: int | None, offset: int) -> int:
    return offset if floor is None else min(floor, offset)
