"""Is a log whole? Every batch is read and decoded, and all have to join up to the heads.

A batch that is as it was written, and that nobody can read all the same, was let in by a Duolog
that did not look into batches yet. It is counted: to refuse the log would lose all the others.

What lies in the other families is read as well: RocksDB checks its blocks on the way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from duolog.errors import DamagedLog
from duolog.log.batch import check, read_header
from duolog.log.catalogue import partitions_of
from duolog.log.checked import all_unchecked, store_checked
from duolog.log.damage import damage_at, stored_count
from duolog.log.model import Head, Topic, TopicPartition
from duolog.log.state import State
from duolog.log.store import Family
from duolog.log.stored_batches import batches_from
from duolog.log.times import timed_batches

_PAGE_BYTES: Final = 8 << 20
_PAGE_ENTRIES: Final = 10_000
_EVERYTHING: Final = b"\xff" * 64
_OTHER_FAMILIES: Final[tuple[Family, ...]] = ("meta", "epochs", "groups", "mirror", "schemas")


@dataclass(frozen=True, slots=True)
class Whole:
    """What a log holds, all of it read and found good."""

    topics: int = 0
    partitions: int = 0
    records: int = 0
    bytes: int = 0
    unreadable: tuple[str, ...] = ()
    """Batches that are as they were written, and wrong inside: where, and why."""


def check_whole(state: State, advance: Callable[[int], object] = lambda _: None) -> Whole:
    """Read all of a log; DamagedLog says what is not as it was written."""
    partitions = records = size = 0
    unreadable: list[str] = []
    in_doubt: dict[TopicPartition, Head] = {}
    topics = tuple(state.catalogue.by_id.values())
    for topic in topics:
        for where in partitions_of(topic):
            checked = _check_partition(state, topic, where, advance)
            unreadable += checked.unreadable
            if checked.unreadable:
                in_doubt[where] = state.heads.get(where)
            partitions += 1
            records += checked.records
            size += checked.bytes
    for family in _OTHER_FAMILIES:
        _read_through(state, family)
    state.checked = all_unchecked(in_doubt)
    store_checked(state.store, state.checked)
    return Whole(len(topics), partitions, records, size, tuple(unreadable))


def _check_partition(
    state: State, topic: Topic, where: TopicPartition, advance: Callable[[int], object]
) -> Whole:
    while True:
        head = state.heads.get(where)
        unreadable: list[str] = []
        try:
            size = _check_records(state, topic, where, head, advance, unreadable)
        except DamagedLog:
            if state.heads.get(where).start == head.start:
                raise  # else retention was quicker: read what it has left
        else:
            return Whole(records=head.records, bytes=size, unreadable=tuple(unreadable))


def _check_records(
    state: State,
    topic: Topic,
    where: TopicPartition,
    head: Head,
    advance: Callable[[int], object],
    unreadable: list[str],
) -> int:
    named = f"topic '{topic.name}' partition {where.partition}"
    reached = head.start
    size = 0
    while reached < head.next_offset:
        try:
            page = batches_from(
                state.store, where, reached, head.next_offset, max_bytes=_PAGE_BYTES
            )
        except DamagedLog:
            damage = damage_at(state.store, where, head, reached)
            if damage is None:
                raise
            state.damage.note(where, damage, state.options.clock.now_ms())
            raise damage.error(topic.name, where.partition) from None
        page_began_at = reached
        for nth, (first, encoded) in enumerate(page):
            try:
                count = stored_count(encoded)
            except DamagedLog:
                damage = damage_at(state.store, where, head, max(first, head.start))
                if damage is None and first < head.start:  # its removal is under way
                    continue
                if damage is None:
                    raise DamagedLog(
                        f"The records of {named} were changed at offset {first:,} while they were "
                        "checked. Check again."
                    ) from None
                state.damage.note(where, damage, state.options.clock.now_ms())
                if not _is_as_written(encoded):
                    raise damage.error(topic.name, where.partition) from None
                count = read_header(encoded).count
                unreadable.append(f"{named} at offset {first:,}: {damage.reason}")
            # A page's first batch may begin before, since retention cut or batches were merged.
            if nth == 0 and first + count <= reached:
                continue
            fits = first == reached or (nth == 0 and first < reached)
            if not fits:
                _lacks(named, reached, first)
            reached = first + count
            size += len(encoded)
        advance(sum(len(encoded) for _, encoded in page))
        if reached == page_began_at:
            break
    # It may reach further when what was written meanwhile was merged with what was there.
    if not head.next_offset <= reached <= state.heads.get(where).next_offset:
        _lacks(named, reached, head.next_offset)
    with state.one_rearranges:  # a merge between two pages of the index would count wrongly
        timed = sum(each.size.records for each in timed_batches(state.store, where))
    if timed < head.records:
        raise DamagedLog(
            f"The index of times of {named} knows {timed:,} of {head.records:,} records. Take "
            "another backup."
        )
    return size


def _is_as_written(encoded: bytes) -> bool:
    """Whether a batch matches its checksum."""
    try:
        check(encoded)
    except DamagedLog:
        return False
    return True


def _lacks(named: str, first: int, stop: int) -> None:
    raise DamagedLog(
        f"The records of {named} are not whole: between offset {first:,} and {stop:,} they do not "
        "join. Take another backup."
    )


def _read_through(state: State, family: Family) -> None:
    lower = b""
    while page := state.store.scan(family, lower, _EVERYTHING, limit=_PAGE_ENTRIES):
        lower = page[-1][0] + b"\0"
