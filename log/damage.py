"""Which stored batches cannot be decoded. What was met is remembered in memory, and looked at again
before anybody is told of it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from duolog.errors import DamagedBatch, DamagedLog
from duolog.log.batch import decode
from duolog.log.damage_model import reason_of
from duolog.log.hole import decode_hole, is_hole
from duolog.log.keys import record_base_offset, record_key
from duolog.log.model import Head, TopicPartition
from duolog.log.store import Store
from duolog.log.stored_batches import batch_at
from duolog.log.times import entry_at, entry_from

_NOT_GIVEN_BACK: Final = (
    "The disk does not give it back as it was written: RocksDB's checksum does not match."
)
_MISSING: Final = "No batch is stored there, although one was durable."


@dataclass(frozen=True, slots=True)
class Damage:
    """A damaged batch, or offsets without one."""

    first_offset: int
    next_offset: int
    reason: str
    batch_bytes: int = 0

    def error(self, topic: str, partition: int) -> DamagedBatch:
        """What a reader of it is told."""
        return DamagedBatch(
            topic=topic,
            partition=partition,
            first_offset=self.first_offset,
            next_offset=self.next_offset,
            reason=self.reason,
        )


@dataclass(frozen=True, slots=True)
class Known:
    """A damage that was met, and when first."""

    damage: Damage
    found_at_ms: int


class KnownDamage:
    """The damage that readers have met since the log was opened."""

    def __init__(self) -> None:
        self._known: dict[tuple[TopicPartition, int], Known] = {}
        self._guard = threading.Lock()
        self.when_new: Callable[[TopicPartition, Known], object] = lambda _where, _known: None

    def note(self, where: TopicPartition, damage: Damage, now_ms: int) -> Known:
        """It was met; what is remembered of it."""
        with self._guard:
            before = self._known.get((where, damage.first_offset))
            known = Known(damage, now_ms if before is None else before.found_at_ms)
            self._known[where, damage.first_offset] = known
        if before is None:
            self.when_new(where, known)
        return known

    def forget(self, where: TopicPartition, first_offset: int) -> None:
        with self._guard:
            self._known.pop((where, first_offset), None)

    def all(self) -> list[tuple[TopicPartition, Known]]:
        """All of them, in order."""
        with self._guard:
            return [(where, known) for (where, _), known in sorted(self._known.items())]


def damage_at(store: Store, where: TopicPartition, head: Head, offset: int) -> Damage | None:
    """The damage at a published offset; None where a record or a hole is readable."""
    try:
        found = batch_at(store, where, offset)
    except DamagedLog as error:
        entry = entry_at(store, where, offset)
        if entry is None or "Corruption" not in str(error):  # another time it may be readable
            raise
        stop = min(entry.base_offset + entry.size.records, head.next_offset)
        return Damage(entry.base_offset, stop, _NOT_GIVEN_BACK, entry.size.length)
    if found is None:
        return Damage(head.start, _next_base(store, where, head, 0), _MISSING)
    base, encoded = found
    stop = _next_base(store, where, head, base + 1)
    try:
        reached = base + stored_count(encoded)
    except DamagedLog as error:
        return Damage(base, stop, reason_of(error), len(encoded))
    if reached > stop:
        reason = f"It claims {reached - base} records, and there is room for {stop - base}."
        return Damage(base, stop, reason, len(encoded))
    return Damage(max(reached, head.start), stop, _MISSING) if offset >= reached else None


def _next_base(store: Store, where: TopicPartition, head: Head, offset: int) -> int:
    """Where the first batch from an offset on begins, or the end."""
    upper = record_key(where, head.next_offset)
    try:
        following = store.scan("records", record_key(where, offset), upper, limit=1)
    except DamagedLog:
        entry = entry_from(store, where, offset)
        return head.next_offset if entry is None else min(entry.base_offset, head.next_offset)
    return record_base_offset(following[0][0]) if following else head.next_offset


def damage_before(
    store: Store, where: TopicPartition, head: Head, offset: int, known: Iterable[Damage]
) -> list[Damage]:
    """The damage that ends there, what is directly before it, and what is known before it."""
    found: dict[int, Damage] = {}
    at = offset - 1
    while at >= head.start:
        damage = damage_at(store, where, head, at)
        if damage is None:
            break
        found[damage.first_offset] = damage
        at = damage.first_offset - 1
    for each in known:
        if head.start < each.next_offset <= offset:
            damage = damage_at(store, where, head, max(each.first_offset, head.start))
            if damage is not None:
                found[damage.first_offset] = damage
    return [found[first] for first in sorted(found)]


def stored_count(encoded: bytes) -> int:
    """How many offsets a readable batch or a hole has; DamagedLog for any other."""
    if is_hole(encoded):
        return decode_hole(encoded)[0]
    return int(decode(encoded).num_rows)
