"""From which offsets on the batches of a log were checked whole when they came in.

A log that is older than that check has batches below which nobody has looked into. Whoever decodes
checks what it decodes; this says what may be passed on to others undecoded.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from duolog.errors import UnsupportedFormat
from duolog.log.model import Head, TopicPartition
from duolog.log.store import Store, WriteBatch, WriteFailed

CheckedFrom = Mapping[TopicPartition, int]
"""Partitions that are not named are checked from their beginning."""

_KEY: Final = b"batches_checked_from"
_VERSION: Final = 1
_ENTRY: Final = struct.Struct(">IIQ")


def load_checked(store: Store, heads: Mapping[TopicPartition, Head]) -> CheckedFrom:
    """What is stored; where nothing is, only what comes from now on is checked."""
    stored = store.get("meta", _KEY)
    return all_unchecked(heads) if stored is None else unpack_checked(stored)


def all_unchecked(heads: Mapping[TopicPartition, Head]) -> CheckedFrom:
    """Only what comes behind these heads was checked."""
    return {where: head.next_offset for where, head in heads.items() if head.records}


def store_checked(store: Store, checked: CheckedFrom) -> None:
    """Remember it. If it is lost, or the disk is full, less counts as checked the next time."""
    if store.get("meta", _KEY) == pack_checked(checked):
        return
    batch = WriteBatch()
    batch.put("meta", _KEY, pack_checked(checked))
    with suppress(WriteFailed):
        store.write(batch)


def pack_checked(checked: CheckedFrom) -> bytes:
    return bytes([_VERSION]) + b"".join(
        _ENTRY.pack(*where, offset) for where, offset in sorted(checked.items())
    )


def unpack_checked(stored: bytes) -> CheckedFrom:
    if stored[:1] != bytes([_VERSION]):
        raise UnsupportedFormat(
            "The log says in a newer way which of its batches were checked. Use a newer Duolog."
        )
    return {
        TopicPartition(topic_id, partition): offset
        for topic_id, partition, offset in _ENTRY.iter_unpack(stored[1:])
    }
