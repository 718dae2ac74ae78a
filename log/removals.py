"""Removes records in two steps, so that no reader misses one that it may still ask for.

The round that raises a start, or drops a topic, notes what is to go. When that is durable, readers
are shown it, and then the records go, in a write of their own together with the note. That write
needs no sync: opening the log removes what a note still names. So a start that a reader was told
never goes back, and what is gone lies below a start that readers can see.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

from duolog.errors import UnsupportedFormat
from duolog.log.keys import (
    LAST_OFFSET,
    hole_key,
    parse_partition_key,
    partition_key,
    record_key,
    time_key,
)
from duolog.log.model import TopicPartition
from duolog.log.store import Store, WriteBatch

_VERSION = 1
_UPTO = struct.Struct(">BQQQ")
_NOTES = b"removing/"
_AFTER_NOTES = b"removing0"  # "0" follows "/"


class Removal(NamedTuple):
    """Batches that go: those below an offset, and their entries in the index of times."""

    where: TopicPartition
    start: int
    last_running_max_ms: int  # of the last entry of times that goes
    last_base_offset: int


def all_below(where: TopicPartition, start: int) -> Removal:
    """Everything that the partition has, all of it below this offset."""
    return Removal(where, start, LAST_OFFSET, LAST_OFFSET)


def note_removals(batch: WriteBatch, removals: Iterable[Removal]) -> None:
    """Note what is to go, in the write that raises the start."""
    for where, start, running_max_ms, base_offset in removals:
        noted = _UPTO.pack(_VERSION, start, running_max_ms, base_offset)
        batch.put("meta", _NOTES + partition_key(where), noted)


def remove(store: Store, batch: WriteBatch, removals: Iterable[Removal]) -> None:
    """Remove it, with the note, and with what is remembered of holes among it."""
    for where, start, running_max_ms, base_offset in removals:
        batch.delete_range("records", record_key(where, 0), record_key(where, start))
        for key in store.scan_keys("meta", hole_key(where, 0), hole_key(where, start)):
            batch.delete("meta", key)
        last = time_key(where, running_max_ms, base_offset)
        batch.delete_range("times", time_key(where, 0, 0), last + b"\0")
        batch.delete("meta", _NOTES + partition_key(where))


def finish_removals(store: Store) -> int:
    """Remove what is noted, before anybody writes; how many partitions that was about."""
    removals = load_removals(store)
    if removals:
        batch = WriteBatch()
        remove(store, batch, removals)
        store.commit(batch)
    return len(removals)


def load_removals(store: Store) -> list[Removal]:
    """What is noted and not gone yet."""
    found = []
    for key, noted in store.scan("meta", _NOTES, _AFTER_NOTES):
        if noted[0] != _VERSION:
            raise UnsupportedFormat(
                f"A removal of records is noted as version {noted[0]}. Use a newer Duolog."
            )
        _, start, running_max_ms, base_offset = _UPTO.unpack(noted)
        where = parse_partition_key(key[len(_NOTES) :])
        found.append(Removal(where, start, running_max_ms, base_offset))
    return found
