"""Removes what lies beyond the heads: records of an append that never became one."""

from __future__ import annotations

from collections.abc import Mapping

from duolog.errors import DamagedLog
from duolog.log.catalogue import Catalogue, partitions_of
from duolog.log.keys import LAST_OFFSET, record_key
from duolog.log.model import Head, TopicPartition
from duolog.log.store import Store, WriteBatch

_EMPTY = Head()


def remove_debris(store: Store, catalogue: Catalogue, heads: Mapping[TopicPartition, Head]) -> int:
    """Delete batches that no head covers; how many there were."""
    return sum(
        remove_beyond(store, where, heads.get(where, _EMPTY))
        for topic in catalogue.by_id.values()
        for where in partitions_of(topic)
    )


def remove_beyond(store: Store, where: TopicPartition, head: Head) -> int:
    """Delete one partition's batches beyond its head; how many are known to have been there."""
    first, last = record_key(where, head.next_offset), record_key(where, LAST_OFFSET)
    try:
        keys = store.scan_keys("records", first, last)
    except DamagedLog:  # a block with records beside them: whatever is there goes unseen
        _delete(store, first, last)
        return 0
    if keys:
        _delete(store, keys[0], keys[-1] + b"\0")
    return len(keys)


def _delete(store: Store, lower: bytes, upper: bytes) -> None:
    batch = WriteBatch()
    batch.delete_range("records", lower, upper)
    store.commit(batch)
