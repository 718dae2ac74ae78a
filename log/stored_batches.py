"""Reads a partition's stored batches page by page, while small ones are merged.

A merge puts one batch in the place of several, so the offset at which a page should begin may lie
within a batch by then. A page therefore begins with the batch that holds its first offset, and is
read from one snapshot of the store.

RocksDB has checksums of its own, for blocks that may hold several batches. Where one does not
match, nothing that walks over it goes on. The index of times then says which batches there are, and
each of them is asked for by its key: so what lies beside the damage is read, and the damage has its
offsets.
"""

from __future__ import annotations

from duolog.errors import DamagedLog
from duolog.log.keys import record_base_offset, record_key
from duolog.log.model import TopicPartition
from duolog.log.store import Store
from duolog.log.times import entry_at


def batches_from(
    store: Store, tp: TopicPartition, offset: int, stop: int, *, max_bytes: int
) -> list[tuple[int, bytes]]:
    """Base offsets and bytes of batches before `stop`; at least one from `offset` on, if there is.

    If no batch begins at `offset`, the one before comes first: it holds `offset`, or ends before.
    """
    try:
        page = store.scan_holding(
            "records",
            record_key(tp, offset),
            record_key(tp, 0),
            record_key(tp, stop),
            max_bytes=max_bytes,
        )
    except DamagedLog:
        found = _batch_by_index(store, tp, offset)
        return [] if found is None else [found]
    return [(record_base_offset(key), encoded) for key, encoded in page]


def batch_at(store: Store, tp: TopicPartition, offset: int) -> tuple[int, bytes] | None:
    """The last batch that begins at an offset or before it: its base offset and bytes. DamagedLog
    when the batch that holds the offset cannot be read from the disk.
    """
    try:
        found = store.last_at_or_before("records", record_key(tp, offset), record_key(tp, 0))
    except DamagedLog:
        return _batch_by_index(store, tp, offset)
    return None if found is None else (record_base_offset(found[0]), found[1])


def _batch_by_index(store: Store, tp: TopicPartition, offset: int) -> tuple[int, bytes] | None:
    entry = entry_at(store, tp, offset)
    if entry is None:
        return None
    encoded = store.get("records", record_key(tp, entry.base_offset))
    return None if encoded is None else (entry.base_offset, encoded)
